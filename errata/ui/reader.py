"""The pipeline and its state as they are now. Both are read again when a file or the ledger has changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from errata.core.diagnostics import PipelineErrors
from errata.core.env_references import redacted
from errata.core.failures import Busy, StorageFailed
from errata.inspect.dlq import Letters
from errata.inspect.history import History, Known
from errata.inspect.snapshot import Snapshot
from errata.plan.own_files import ProtectedFiles
from errata.rendering.diagnostics import as_text
from storage.errors import StorageError
from storage.state.ledger import Ledger

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline
    from storage.state.entry import Entry

PATIENCE = 20.0
"""Seconds that a page waits for an engine that works on something else."""
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Current:
    """The values that pages are made of.

    Attributes:
        pipeline: The pipeline; None where its file has errors.
        history: Its committed epochs.
        problems: What is wrong with the file, as text.
    """

    pipeline: Pipeline | None
    history: History
    problems: str = ""


class Reader:
    """Gives pages the present state, one page at a time.

    Args:
        file: The pipeline file.
        load: Loads the pipeline. May raise PipelineErrors.
        stored: Reads the state of a pipeline whose file has errors; None where there is none.
    """

    def __init__(self, file: Path, load: Callable[[], Pipeline], stored: Callable[[], Snapshot | None]) -> None:
        self._file = file
        self._load = load
        self._stored = stored
        self._pages = threading.Lock()
        self.work = threading.Lock()
        """Held while an engine works, by pages and by jobs."""
        self._files: list[Path] = [file]
        self._stamp: Stamp | None = None
        self._current: Current | None = None
        self._letters: Letters | None = None

    @contextmanager
    def reading(self, *, engine: bool = False) -> Iterator[Current]:
        """Give the present state for the body of a `with`.

        Args:
            engine: Whether the page may need an engine.

        Raises:
            Busy: An engine works on something else for long.
            PipelineErrors: The file has errors, and no run was committed.
            StorageFailed: The state cannot be read.
        """
        if engine and not self.work.acquire(timeout=PATIENCE):
            raise Busy("a change is being computed", help="load this page again when it has ended", again=True)
        try:
            with self._pages:
                try:
                    yield self._present()
                except (OSError, StorageError) as problem:
                    raise StorageFailed(redacted(str(problem))) from problem
        finally:
            if engine:
                self.work.release()

    def letters(self, current: Current) -> Letters:
        """The dead letter queue of a state that `reading` gave."""
        if self._letters is None:
            self._letters = Letters(current.history.reading)
        return self._letters

    def loaded(self) -> Pipeline:
        """A pipeline of its own for a job. Raises PipelineErrors."""
        return self._load()

    def _present(self) -> Current:
        stamp = _stamp(self._files)
        if self._current is None or stamp != self._stamp:
            self._current, self._letters = self._read(), None
            self._stamp = _stamp(self._files)
            return self._current
        known = self._current.history
        head = Ledger(known.reading.state.ledger).head()
        if _name(head) != _name(known.reading.head):
            reading = Snapshot(known.reading.name, known.reading.state, known.reading.plan)
            self._current, self._letters = Current(self._current.pipeline, _continued(reading, known), self._current.problems), None
        return self._current

    def _read(self) -> Current:
        """The pipeline and its state, read anew."""
        before = self._current.history if self._current else None
        try:
            pipeline = self._load()
        except PipelineErrors as errors:
            self._files = list(dict.fromkeys([*self._files, *(Path(one.file) for one in errors.diagnostics if one.file)]))
            reading = self._stored()
            if reading is None:
                raise
            return Current(None, _continued(reading, before), redacted(as_text(errors.diagnostics, color=False)))
        self._files = [path for path, _ in ProtectedFiles(pipeline.plan, pipeline.state, inputs=False).own]
        return Current(pipeline, _continued(pipeline.snapshot(), before))


def _continued(reading: Snapshot, before: History | None) -> History:
    """The history of a state; what was read of the same epochs before is not read again."""
    found = History(reading)
    if before is None or before.reading.head is None:
        return found
    same = before.base == found.base and before.reading.head.hash in {entry.hash for entry in reading.entries}
    return History(reading, before.known if same else Known())


def _name(head: Entry | None) -> str:
    return "" if head is None else head.hash


def _stamp(files: Iterable[Path]) -> Stamp:
    """The size and the time of change of files. A file that is gone has neither."""
    found = []
    for file in files:
        try:
            stat = file.stat()
            found.append((str(file), stat.st_size, stat.st_mtime_ns))
        except (OSError, ValueError):
            found.append((str(file), -1, -1))
    return tuple(found)
