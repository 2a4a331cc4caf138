"""The open files of an editor: their texts, what was last found of each, and which have to be checked again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from errata.core.diagnostics import Diagnostic
from errata.editor.analysis import Analysis, analyse
from errata.editor.collect import names_of
from errata.editor.files import FileKind, kind_of
from errata.editor.names import Names
from errata.project.texts import Texts
from errata.yaml import Document, SourceText

MOST_FILES = 2_000
"""How many YAML files of a workspace are looked at for the users of a composition."""
LARGEST = 1_000_000
_SKIPPED = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class View:
    """A file with what is known of it and of the files around it."""

    file: str
    analysis: Analysis
    names: Names
    document: Document | None
    source: SourceText


@dataclass(slots=True)
class Session:
    """The files that an editor has open.

    Args:
        roots: The folders of the workspace.
        texts: The texts of open files, by absolute path.
    """

    roots: tuple[Path, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    _found: dict[str, Analysis] = field(default_factory=dict)
    _good: dict[str, Analysis] = field(default_factory=dict)
    _names: dict[str, tuple[Analysis, Names]] = field(default_factory=dict)
    _stale: set[str] = field(default_factory=set)
    _shown: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    _users: dict[str, str | None] = field(default_factory=dict)

    # Texts ------------------------------------------------------------------------------------------------------------------

    def put(self, file: str, text: str) -> None:
        """Take the text of a file that is open. What depends on it has to be checked again."""
        if file not in self.texts:
            self._users = {}
        self.texts[file] = text
        self._stale |= {file, *self._dependents(file)}

    def close(self, file: str) -> None:
        """Forget a file that is no longer open: from now on the one on the disk counts."""
        self.texts.pop(file, None)
        self._stale.discard(file)
        self._stale |= self._dependents(file) - {file}
        self._forget(file)
        for one, analysis in list(self._found.items()):
            if one not in self.texts and not any(other in self.texts for other in analysis.files):
                self._forget(one)

    def _forget(self, file: str) -> None:
        for kept in (self._found, self._good, self._names):
            kept.pop(file, None)

    def changed_on_disk(self, files: Iterable[str]) -> None:
        """Note that files changed that may not be open."""
        self._users = {}
        for file in files:
            self._stale |= self._dependents(file)

    def _dependents(self, file: str) -> set[str]:
        return {one for one, analysis in list(self._found.items()) if file in analysis.files}

    def source(self, file: str) -> SourceText:
        """Return the text of a file, also of one that is not open; empty where it cannot be read."""
        text = self.texts.get(file)
        if text is None:
            try:
                data = Path(file).read_bytes()[: LARGEST + 1]
            except (OSError, ValueError):
                data = b""
            text = data.decode("utf-8", errors="replace")
        return SourceText(text.removeprefix("\ufeff"), file)

    def kind(self, file: str) -> FileKind:
        """Return what an open file is."""
        return kind_of(file, self.texts.get(file, ""))

    # Checks -----------------------------------------------------------------------------------------------------------------

    def due(self) -> tuple[str, ...]:
        """Return the files to check again: open ones, and the pipelines of open compositions and modules. May look through the workspace."""
        owners = {owner for one in list(self.texts) if (owner := self.owner(one)) != one}
        new = {one for one in owners if one not in self._found}
        return tuple(one for one in sorted(self._stale | new) if one in self.texts or one in owners)

    def snapshot(self) -> Texts:
        """Return the texts as they are now, for a check beside the editor."""
        return Texts(dict(self.texts))

    def take(self, analysis: Analysis, texts: Mapping[str, str]) -> None:
        """Keep what a check of some texts found. It stays due where a text changed since."""
        self._found[analysis.file] = analysis
        if analysis.draft is not None and analysis.draft.specs:
            self._good[analysis.file] = analysis
        if all(self.texts.get(one) == texts.get(one) for one in analysis.files):
            self._stale.discard(analysis.file)

    def check(self, file: str) -> Analysis:
        """Check a file now, in turn, and keep what was found."""
        texts = self.snapshot()
        found = analyse(file, texts, self.texts.get(file, self.source(file).text))
        self.take(found, texts.unsaved)
        return found

    def to_publish(self) -> Iterator[tuple[str, tuple[Diagnostic, ...]]]:
        """Yield the files whose diagnostics changed since they were last yielded, with all that they have now."""
        found: dict[str, dict[Diagnostic, None]] = {file: {} for file in (*self._shown, *(one for one in self._found if one in self.texts))}
        for analysis in self._found.values():
            for one in analysis.diagnostics:
                if one.file in self.texts or analysis.file in self.texts:
                    found.setdefault(one.file, {})[one] = None
        for file, diagnostics in found.items():
            now = tuple(self._of_file(file, diagnostics))
            if self._shown.get(file, ()) != now or (file in self._found and file not in self._shown):
                self._shown[file] = now
                yield file, now

    def _of_file(self, file: str, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """The diagnostics of a file; of a composition that a checked pipeline uses, the ones that the pipeline gives it."""
        own = self._found.get(file)
        others = [analysis for name, analysis in self._found.items() if name != file]
        used = own is not None and own.signature is not None and any(file in one.documents for one in others)
        given = {one for analysis in others for one in analysis.diagnostics}
        yield from (one for one in diagnostics if not used or one in given)

    # Answers ----------------------------------------------------------------------------------------------------------------

    def owner(self, file: str) -> str:
        """Return the file whose check says most of a file: of a composition or a module the pipeline that uses it. May look through the workspace."""
        return self._known_owner(file) or self._user(file) or file

    def _known_owner(self, file: str) -> str | None:
        """The owner of a file where it is known; None where the workspace has to be looked through."""
        if self.kind(file) not in ("composition", "cxl"):
            return file
        known = min((one for one, analysis in list(self._found.items()) if one != file and file in analysis.files), default=None)
        users = self._users
        return (users[file] or file) if known is None and file in users else known

    def last(self, file: str) -> Analysis | None:
        """Return what was last known of a file, of a text that could be read. Looks at nothing else."""
        owner = self._known_owner(file) or file
        return self._good.get(owner) or self._found.get(owner) or self._found.get(file)

    def current(self, file: str) -> Analysis | None:
        """Return what was found in the current text of a file; None where a check is due, or its owner is not known yet."""
        owner = self._known_owner(file)
        return None if owner is None or owner in self._stale else self._found.get(owner)

    def view(self, file: str) -> View:
        """Return a file with what is known of it now; checks it where that is due. May look through the workspace."""
        owner = self.owner(file)
        analysis = None if owner in self._stale else self._found.get(owner)
        analysis = analysis or self.check(owner)
        kept = self._names.get(analysis.file)
        names = kept[1] if kept is not None and kept[0] is analysis else names_of(analysis)
        self._names[analysis.file] = (analysis, names)
        document = analysis.documents.get(file)
        return View(file, analysis, names, document, document.source if document is not None else self.source(file))

    # The workspace ----------------------------------------------------------------------------------------------------------

    def _user(self, file: str) -> str | None:
        """A pipeline of the workspace that uses a composition or module; None where there is none."""
        users = self._users  # another dictionary takes its place when files change meanwhile
        if file not in users:
            users[file] = next((user for user in self.users(file) if self._uses(user, file)), None)
        return users[file]

    def _uses(self, user: str, file: str) -> bool:
        """Whether a pipeline uses a file; what was found of one that does not, and is not open, is forgotten."""
        if file in self.check(user).files:
            return True
        if user not in self.texts:
            self._forget(user)
        return False

    def users(self, file: str) -> Iterator[str]:
        """Yield the pipelines of the workspace whose texts name a file."""
        name = Path(file).stem if file.endswith(".cxl") else Path(file).name
        pattern = re.compile(re.escape(name))
        for one in self._yaml_files(Path(file)):
            text = self.source(one).text
            if one != file and pattern.search(text) and kind_of(one, text) == "pipeline":
                yield one

    def _yaml_files(self, file: Path) -> Iterator[str]:
        """The YAML files of the workspace folder that holds a file; else those beside the file. Not all where they are very many."""
        root = next((root for root in self.roots if file.is_relative_to(root)), None)
        found = iter(sorted(str(one) for one in file.parent.glob("*.yaml"))) if root is None else _below(root)
        return islice(found, MOST_FILES)


def _below(root: Path) -> Iterator[str]:
    """The YAML files of a folder and of those in it, except hidden ones."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _SKIPPED)
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith((".yaml", ".yml")))  # noqa: PTH118 - one of many
