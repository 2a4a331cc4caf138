"""The language server: what `errata lsp` speaks with an editor, over standard input and output.

Checks run on a thread of their own, some time after the last change of a text, and end when the text changes again. Answers come from the last check; an
answer that has to be exact waits for a check of the current text.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from errata.core.diagnostics import Diagnostic
from errata.editor import messages
from errata.editor.analysis import Superseded, analyse
from errata.editor.completion import Completion, complete
from errata.editor.cxl_file import complete_cxl, hover_cxl
from errata.editor.fixes import fixes
from errata.editor.formatting import format_cxl, format_yaml
from errata.editor.hover import hover
from errata.editor.navigation import definitions, references
from errata.editor.outline import outline, outline_cxl
from errata.editor.positions import Edit, Region, offset_at
from errata.editor.rename import Refused, rename, renamed_thing
from errata.editor.session import Session, View
from errata.yaml import Document, SourceText, parse_yaml

DELAY = 0.15
"""Seconds from the last change of a text to its check."""
_Answer = TypeVar("_Answer")


class _Protocol(LanguageServerProtocol):
    """Counts characters in UTF-16 units, which every client can do."""

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> Generator[Any, Any, lsp.InitializeResult]:
        """Answer the client's first request."""
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = None
        return (yield from super().lsp_initialize(params))


class ErrataServer(LanguageServer):
    """The server, with what the editor has open."""

    def __init__(self, version: str, delay: float = DELAY) -> None:
        super().__init__("errata", version, lsp.TextDocumentSyncKind.Incremental, protocol_cls=_Protocol)
        self.session = Session()
        self.delay = delay
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="check")
        self._turn = 0
        self._waiting: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()

    # Texts ------------------------------------------------------------------------------------------------------------------

    def changed(self, uri: str) -> None:
        """Take a text of the editor, and check it after the delay."""
        file = file_of(uri)
        if file is not None:
            self.session.put(file, self.workspace.get_text_document(uri).source)
            self.check_soon()

    def closed(self, uri: str) -> None:
        """Forget a text."""
        file = file_of(uri)
        if file is not None:
            self.session.close(file)
            self.check_soon()

    def check_soon(self) -> None:
        """Check what is due after the delay; a check that is under way ends."""
        self._turn += 1
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = asyncio.ensure_future(self._check_later())

    async def _check_later(self) -> None:
        await asyncio.sleep(self.delay)
        await self.check_now()
        for file in [one for one in self.session.texts if self.session.current(one) is not None]:
            await self._look(file)  # so that the first answer does not have to

    async def check_now(self) -> None:
        """Check every open file that is due, and publish what was found."""
        async with self._busy:
            for file in await self.beside(self.session.due):
                await self._check(file)
            self._publish()

    async def _check(self, file: str) -> None:
        turn, texts = self._turn, self.session.snapshot()
        text = self.session.source(file).text
        try:
            found = await self.beside(lambda: analyse(file, texts, text, lambda: self._turn == turn))
        except Superseded:
            return
        self.session.take(found, texts.unsaved)

    def _publish(self) -> None:
        for file, found in self.session.to_publish():
            source = self.session.source(file)
            shown = [messages.diagnostic(one, source, self.session.source) for one in found]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(messages.uri_of(file), shown))

    async def beside(self, work: Callable[[], _Answer]) -> _Answer:
        """Run work on the thread for checks, so that the editor is heard meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    async def view(self, uri: str) -> View | None:
        """Return a file with a check of its current text; None for one that is nothing of ours."""
        file = file_of(uri)
        if file is None or file not in self.session.texts or self.session.kind(file) == "other":
            return None
        if self.session.current(file) is None:
            await self.check_now()
        return await self._look(file)

    async def _look(self, file: str) -> View:
        async with self._busy:
            return await self.beside(lambda: self.session.view(file))


def file_of(uri: str) -> str | None:
    """Return the absolute path of a file; None for a text that is no file."""
    if urlsplit(uri).scheme != "file":
        return None
    path = uris.to_fs_path(uri)
    return None if path is None or "\0" in path else os.path.abspath(path)  # noqa: PTH100 - links are not followed


def make_server(version: str, delay: float = DELAY) -> ErrataServer:
    """Return a server that is ready to be started."""
    server = ErrataServer(version, delay)
    _texts(server)
    _looks(server)
    _names(server)
    _renames(server)
    _edits(server)
    return server


def _texts(server: ErrataServer) -> None:
    """Messages of the editor about its texts."""

    @server.feature(lsp.INITIALIZED)
    def initialized(params: lsp.InitializedParams) -> None:
        folders = [one.uri for one in server.workspace.folders.values()] or [server.workspace.root_uri or ""]
        server.session.roots = tuple(Path(file) for uri in folders if uri and (file := file_of(uri)) is not None)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        _on_disk(server, [params.text_document.uri])

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: lsp.DidChangeWatchedFilesParams) -> None:
        _on_disk(server, [one.uri for one in params.changes])


def _on_disk(server: ErrataServer, addresses: list[str]) -> None:
    server.session.changed_on_disk(file for uri in addresses if (file := file_of(uri)) is not None)
    server.check_soon()


def _looks(server: ErrataServer) -> None:
    """Hover, completion, outline."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        view = await server.view(params.text_document.uri)
        if view is None:
            return None
        offset = _offset(view.source, params.position)
        found = hover(view.analysis, view.names, view.document, offset) if view.document is not None else hover_cxl(view, offset)
        return None if found is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text), messages.range_of(found.region))

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "$", ":", " ", "-"], resolve_provider=False))
    def completed(params: lsp.CompletionParams) -> lsp.CompletionList | None:
        file = file_of(params.text_document.uri)
        if file is None or file not in server.session.texts:
            return None
        text = server.session.texts[file]
        offset = _offset(SourceText(text, file), params.position)
        if server.session.kind(file) == "cxl":
            found: Completion = complete_cxl(server.session.last(file), file, text, offset)
        else:
            found = complete(server.session.last(file), file, text, offset)
        return lsp.CompletionList(False, messages.completions(found, params.position))

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def outlined(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol] | None:
        found = await _of_text(server, params.text_document.uri, outline, outline_cxl)
        return None if found is None else [messages.symbol(one) for one in found]


async def _of_text(server: ErrataServer, uri: str, of_yaml: Callable[[Document], list[_Answer]], of_cxl: Callable[[str, str], list[_Answer]]) -> list[_Answer] | None:
    """The answer of the function for an open file's kind, made beside the loop; None for a file that is not open."""
    file = file_of(uri)
    if file is None or file not in server.session.texts:
        return None
    text, kind = server.session.texts[file], server.session.kind(file)

    def made() -> list[_Answer]:
        if kind == "cxl":
            return of_cxl(text, file)
        return [] if kind == "other" else of_yaml(parse_yaml(text, file=file))

    return await server.beside(made)


def _names(server: ErrataServer) -> None:
    """Definition, references, highlights."""

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def defined(params: lsp.DefinitionParams) -> list[lsp.Location] | None:
        view = await server.view(params.text_document.uri)
        if view is None:
            return None
        found = definitions(view.analysis, view.names, view.document, view.file, _offset(view.source, params.position))
        return [_location(one) for one in found]

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def referred(params: lsp.ReferenceParams) -> list[lsp.Location] | None:
        view = await server.view(params.text_document.uri)
        if view is None:
            return None
        found = references(view.names, view.file, _offset(view.source, params.position), declarations=params.context.include_declaration)
        return [_location(one) for one in found]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlighted(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight] | None:
        view = await server.view(params.text_document.uri)
        if view is None:
            return None
        found = references(view.names, view.file, _offset(view.source, params.position))
        return [lsp.DocumentHighlight(messages.range_of(one)) for one in found if one.file == view.file]


def _renames(server: ErrataServer) -> None:
    """Register the requests for names that can be renamed, and for the rename."""

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepared(params: lsp.PrepareRenameParams) -> lsp.PrepareRenamePlaceholder | None:
        view = await server.view(params.text_document.uri)
        if view is None:
            return None
        try:
            found = renamed_thing(view.analysis, view.names, view.file, _offset(view.source, params.position))
        except Refused as refused:
            raise JsonRpcInvalidParams(str(refused)) from None
        return lsp.PrepareRenamePlaceholder(messages.range_of(found.region), found.region.text)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def renamed(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        view = await server.view(params.text_document.uri)
        if view is None:
            return None
        place = (view.file, _offset(view.source, params.position))
        try:
            edits = await server.beside(lambda: _renamed(server.session, view, place, params.new_name))
        except Refused as refused:
            raise JsonRpcInvalidParams(str(refused)) from None
        return lsp.WorkspaceEdit(changes=messages.changes(edits))


def _renamed(session: Session, view: View, place: tuple[str, int], new: str) -> list[Edit]:
    """The edits of a rename. Raises Refused, also where another pipeline uses a file that would change."""
    edits = rename(view.analysis, view.names, session.snapshot(), place, new)
    for file in dict.fromkeys(edit.region.file for edit in edits):
        other = next((one for one in session.users(file) if one not in view.analysis.documents), None) if file != view.analysis.file else None
        if other is not None:
            raise Refused(f"{other} uses {Path(file).name} too; rename there by hand, or copy the file")
    return edits


def _edits(server: ErrataServer) -> None:
    """Quick fixes and formatting."""

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
    async def acted(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        view = await server.view(params.text_document.uri)
        if view is None:
            return None
        own: list[Diagnostic] = [one for one in view.analysis.diagnostics if one.file == view.file]
        start, end = (_offset(view.source, one) for one in (params.range.start, params.range.end))
        found = [one for one in fixes(own, view.source) if one.edit.region.start <= end and start <= one.edit.region.end]
        return [messages.action(one, view.source, server.session.source) for one in found]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def formatted(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        edits = await _of_text(server, params.text_document.uri, format_yaml, format_cxl)
        return None if edits is None else [messages.text_edit(one) for one in edits]


def _offset(source: SourceText, position: lsp.Position) -> int:
    return offset_at(source, position.line, position.character)


def _location(region: Region) -> lsp.Location:
    return lsp.Location(messages.uri_of(region.file), messages.range_of(region))
