"""The open files of an editor: their texts, what was last found of each, and which have to be checked again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    """What an editor has open.

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
            self._users.clear()
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
        self._users.clear()
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
        """Return the file whose check says most of a file: of a composition or a module the pipeline that uses it."""
        if self.kind(file) not in ("composition", "cxl"):
            return file
        known = sorted(one for one, analysis in list(self._found.items()) if one != file and file in analysis.files)
        return known[0] if known else self._user(file) or file

    def last(self, file: str) -> Analysis | None:
        """Return what was last known of a file, of a text that could be read."""
        owner = self.owner(file)
        return self._good.get(owner) or self._found.get(owner) or self._found.get(file)

    def current(self, file: str) -> Analysis | None:
        """Return what was found in the current text of a file; None where a check is due."""
        owner = self.owner(file)
        return None if owner in self._stale else self._found.get(owner)

    def view(self, file: str) -> View:
        """Return a file with what is known of it now; checks it where that is due."""
        analysis = self.current(file) or self.check(self.owner(file))
        kept = self._names.get(analysis.file)
        names = kept[1] if kept is not None and kept[0] is analysis else names_of(analysis)
        self._names[analysis.file] = (analysis, names)
        document = analysis.documents.get(file)
        return View(file, analysis, names, document, document.source if document is not None else self.source(file))

    # The workspace ----------------------------------------------------------------------------------------------------------

    def _user(self, file: str) -> str | None:
        """A pipeline of the workspace that uses a composition or module; None where there is none."""
        if file not in self._users:
            self._users[file] = next((user for user in self.users(file) if self._uses(user, file)), None)
        return self._users[file]

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
        """The YAML files of the workspace folder that holds a file; else those beside the file."""
        root = next((root for root in self.roots if file.is_relative_to(root)), None)
        if root is None:
            yield from sorted(str(one) for one in file.parent.glob("*.yaml"))
            return
        count = 0
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _SKIPPED)
            for name in sorted(names):
                if name.endswith((".yaml", ".yml")):
                    count += 1
                    yield os.path.join(folder, name)  # noqa: PTH118 - one of many
            if count > MOST_FILES:
                return
