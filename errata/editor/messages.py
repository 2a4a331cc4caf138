"""Results in the words of the protocol."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from lsprotocol import types as lsp
from pygls import uris

from errata.core.diagnostics import Diagnostic, Label
from errata.editor.completion import Completion
from errata.editor.fixes import Fix, region_of
from errata.editor.items import Item, ItemKind
from errata.editor.outline import Kind, Symbol
from errata.editor.positions import Edit, Region
from errata.yaml import SourceText


def uri_of(file: str) -> str:
    """Return the address of a file."""
    return uris.from_fs_path(os.path.abspath(file)) or ""  # noqa: PTH100 - links are not followed


Sources = Callable[[str], SourceText]
"""Gives the text of a file."""

_ITEMS: Mapping[ItemKind, lsp.CompletionItemKind] = {
    "key": lsp.CompletionItemKind.Property, "word": lsp.CompletionItemKind.EnumMember, "node": lsp.CompletionItemKind.Class, "port": lsp.CompletionItemKind.Interface,
    "column": lsp.CompletionItemKind.Field, "type": lsp.CompletionItemKind.TypeParameter, "qualifier": lsp.CompletionItemKind.Struct,
    "variable": lsp.CompletionItemKind.Variable, "parameter": lsp.CompletionItemKind.Variable, "keyword": lsp.CompletionItemKind.Keyword,
    "method": lsp.CompletionItemKind.Method, "function": lsp.CompletionItemKind.Function, "local": lsp.CompletionItemKind.Variable,
    "module": lsp.CompletionItemKind.Module, "namespace": lsp.CompletionItemKind.Module,
}  # fmt: skip
_SYMBOLS: Mapping[Kind, lsp.SymbolKind] = {
    "pipeline": lsp.SymbolKind.Module, "node": lsp.SymbolKind.Class, "source": lsp.SymbolKind.Interface, "output": lsp.SymbolKind.Object,
    "column": lsp.SymbolKind.Field, "branch": lsp.SymbolKind.EnumMember, "emit": lsp.SymbolKind.Field, "let": lsp.SymbolKind.Variable,
    "function": lsp.SymbolKind.Function, "variable": lsp.SymbolKind.Variable, "port": lsp.SymbolKind.Interface, "parameter": lsp.SymbolKind.Variable,
}  # fmt: skip


def range_of(region: Region) -> lsp.Range:
    """Return a part of a text."""
    start, end = region.range
    return lsp.Range(lsp.Position(*start), lsp.Position(*end))


def diagnostic(one: Diagnostic, source: SourceText, sources: Sources) -> lsp.Diagnostic:
    """Return a diagnostic at its place; at the beginning of the file where it has none."""
    region = region_of(one, source) or Region(source, 0, 0)
    severity = lsp.DiagnosticSeverity.Error if one.is_error else lsp.DiagnosticSeverity.Warning
    message = f"{one.message}\n{one.help}" if one.help else one.message
    related = [found for label in one.labels if (found := _related(label, sources)) is not None]
    return lsp.Diagnostic(range_of(region), message, severity, one.code, source="errata", related_information=related or None)


def _related(label: Label, sources: Sources) -> lsp.DiagnosticRelatedInformation | None:
    source = sources(label.file) if label.file else None
    place = Diagnostic("", "", file=label.file, line=label.line, column=label.column, length=label.length)
    region = region_of(place, source) if source is not None else None
    return None if region is None else lsp.DiagnosticRelatedInformation(lsp.Location(uri_of(label.file), range_of(region)), label.text or "here")


def completions(found: Completion, position: lsp.Position) -> list[lsp.CompletionItem]:
    """Return what may stand at a place; what is typed is replaced."""
    start = lsp.Position(position.line, max(position.character - found.typed, 0))
    return [_item(one, lsp.Range(start, position)) for one in found.items]


def _item(one: Item, place: lsp.Range) -> lsp.CompletionItem:
    text = lsp.MarkupContent(lsp.MarkupKind.Markdown, one.text) if one.text else None
    edit = lsp.TextEdit(place, one.insert or one.label)
    return lsp.CompletionItem(
        one.label, kind=_ITEMS[one.kind], detail=one.detail or None, documentation=text, sort_text=f"{one.rank}{one.label}", filter_text=one.label, text_edit=edit
    )


def symbol(one: Symbol) -> lsp.DocumentSymbol:
    """Return an entry of the outline, with those below it."""
    children = [symbol(child) for child in one.children]
    return lsp.DocumentSymbol(one.name, _SYMBOLS[one.kind], range_of(one.region), range_of(one.name_region), one.detail or None, children=children)


def text_edit(edit: Edit) -> lsp.TextEdit:
    """Return an edit."""
    return lsp.TextEdit(range_of(edit.region), edit.text)


def changes(edits: Iterable[Edit]) -> dict[str, list[lsp.TextEdit]]:
    """Return edits by the address of their files."""
    found: dict[str, list[lsp.TextEdit]] = {}
    for edit in edits:
        found.setdefault(uri_of(edit.region.file), []).append(text_edit(edit))
    return found


def action(fix: Fix, source: SourceText, sources: Sources) -> lsp.CodeAction:
    """Return a quick fix."""
    edit = lsp.WorkspaceEdit(changes=changes([fix.edit]))
    return lsp.CodeAction(fix.title, lsp.CodeActionKind.QuickFix, [diagnostic(fix.diagnostic, source, sources)], is_preferred=True, edit=edit)
