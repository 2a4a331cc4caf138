"""Input and result of merge strategies, and the strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from changelog.lazy_imports import pa
from changelog.rows import Rows
from operators.core.evaluate import Narrow
from operators.core.row_type import CORRECTED
from operators.core.run_values import RunValues
from operators.source.arrivals import Arrival
from operators.source.config import SourceConfig
from operators.source.diff.chunk_index import ChunkList
from operators.source.file_changes import FileChanges, FileRecord, Label
from operators.source.node import SourceNode
from operators.source.reading import FileReader
from storage.delta.chosen_rows import Choice
from storage.engines import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class InputChanged(Exception):
    """Input that a merge strategy refuses: a primary key that is not unique, history that was rewritten.

    Args:
        message: What is wrong.
        help: What the user can do.
        place: The key of the node that is at fault, as a path.
    """

    def __init__(self, message: str, *, help: str = "", place: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.help = help
        self.place = tuple(place)


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """How far a file was read. Its records up to `row` keep their rows, except those with the keys `again`."""

    row: int
    again: frozenset[bytes]

    @property
    def marked(self) -> list[bytes]:
        """The keys `again`, and the keys of their rejects."""
        return sorted({*self.again, *(key + b"!" for key in self.again)})


class PriorRows(Protocol):
    """Live rows of a source before a run, rejects included; rows of keyed files have `_epoch`. Nothing is read before it is asked for."""

    @property
    def rows(self) -> DataFrame:
        """All rows."""

    def in_key_ranges(self, ranges: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Return the rows whose keys lie in ranges, on the driver, without `_epoch`."""

    def chosen(self, choice: Choice) -> pa.Table | None:
        """Return the rows of a choice, on the driver and with `_epoch`. None where folding them there would take longer."""

    def filtered(self, predicate: Narrow) -> DataFrame:
        """Return the rows that a predicate chooses; others are not folded."""

    def blank(self, names: Sequence[str]) -> frozenset[str]:
        """Return some of Errata's own columns in which no row has a value. There may be more of them."""

    def rows_replaced(self, record: FileRecord) -> bool:
        """Report an unchanged file that has other records now. Return whether its prior rows changed by that."""


class Memory(Protocol):
    """The memory of a source of earlier deliveries, beside its rows (`state/<source>`). Nothing is read before it is asked for."""

    def rows(self) -> DataFrame | None:
        """All rows that earlier runs kept, with `_epoch`; None where there are none."""

    def latest(self, keys: DataFrame | None = None) -> DataFrame | None:
        """The newest row of each `_key` that earlier runs kept; None where there are none. `keys`: the only keys (`_key`) that are looked up."""

    def between(self, first: bytes, end: bytes, count: int | None) -> DataFrame | None:
        """The newest row of each `_key` from `first` on and before `end`; None where earlier runs kept nothing. `count`: about how many there are, where it is known."""

    def keep(self, rows: DataFrame, bound: int | None) -> DataFrame:
        """Store rows, and return them as they were stored, without `_epoch`. `bound`: an upper bound of their number, where it is known."""

    def forget(self) -> None:
        """Remove all rows that earlier runs kept."""


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """The files of a source and its prior rows.

    Attributes:
        prior: Prior rows; None where there are none.
        rebuilt: Whether the source's logic changed. All present files are read again, and changes have the cause `logic`.
        resume_points: By path, files whose later records alone are compared (`--from-cursors`).
    """

    source: SourceNode
    files: FileReader
    changes: FileChanges
    prior: PriorRows | None
    engine: Engine
    values: RunValues
    rebuilt: bool = False
    resume_points: Mapping[str, ResumePoint] = field(default_factory=dict)
    warn: Callable[[str], object] = str
    """Receives warnings."""
    chunk_lists: Mapping[Label, ChunkList] = field(default_factory=dict)
    """Chunk lists of the files whose rows match them, by the file's position."""
    epoch: int = 1
    """Epoch of this run."""
    reject_count: int = 0
    """Number of the source's live rejects."""
    since: FileChanges | None = None
    """Changes of the files since the last epoch, where all are read again."""
    arrivals: Mapping[str, Arrival] = field(default_factory=dict)
    """How the files arrived, by path, where all are read again."""
    memory: Memory | None = None
    """The source's memory of earlier deliveries; None where it keeps nothing."""

    @property
    def delivered(self) -> FileChanges:
        """Changes of the files since the last epoch."""
        return self.changes if self.since is None else self.since

    @property
    def prior_rows(self) -> DataFrame | None:
        """All prior rows; None where there are none."""
        return None if self.prior is None else self.prior.rows

    @property
    def config(self) -> SourceConfig:
        """The source's configuration."""
        return self.source.config

    @property
    def fresh_cause(self) -> str:
        """Cause of insertions."""
        return "logic" if self.rebuilt else "ingest"

    @property
    def cause(self) -> str:
        """Cause of retractions and corrections."""
        return "logic" if self.rebuilt else "correction"

    def compared(self) -> list[str]:
        """Return the columns whose change is a correction: data (or `compare`), the error, and the place where a program reads it."""
        shape, wanted, chosen = self.files.shape, self.source.wanted, self.config.merge.compare
        data = list(shape.declared) if chosen is None else list(chosen)
        beside = ("_widened", "_doc", CORRECTED) if chosen is None else ()
        places = [name for name, member in (("_file", "source.file"), ("_file", "source.path"), ("_row", "source.row")) if member in wanted]
        hidden = [name for name in (*dict.fromkeys(places), *beside) if name in shape.hidden]
        if self.rebuilt:
            return [*data, *(name for name in shape.columns if name not in (*data, "_row")), *(["_row"] if "_row" in hidden else [])]
        return [*data, "_error", *hidden]

    def compared_contents(self) -> list[str]:
        """Return the same without the row number: records in other places may have one content."""
        return [name for name in self.compared() if name != "_row"]


@dataclass(frozen=True, slots=True)
class IngestResult:
    """Op rows of a source, and the entries of its files.

    Attributes:
        rows: Consolidated op rows; None where nothing changed.
        uncounted: Files whose `rows` need the counts of the written delta added.
        bound: Upper bound of the rows.
        refuse: Raises InputChanged for a written delta with duplicate keys.
    """

    rows: Rows | None
    signed: bool
    files: tuple[FileRecord, ...]
    uncounted: tuple[FileRecord, ...] = ()
    bound: int | None = None
    refuse: Callable[[DataFrame], None] | None = None
    lists: Mapping[Label, ChunkList] = field(default_factory=dict)
    """Chunk lists of the files that were read, by the file's position, where known."""
    standing: Callable[[], int] | None = None
    """Counts the prior rows that the guard compares with the retracted ones; None: the guard looks at the rows that the source loses."""
    apart: frozenset[str] | None = None
    """As in `Delta`, but for rejects: columns such that the two images of each correction differ in one of them at least."""


Strategy: TypeAlias = Callable[[IngestRequest], IngestResult]
"""A merge strategy: turns new content of files into a delta."""
_STRATEGIES: Final[dict[str, Strategy]] = {}


def merge_strategy(name: str) -> Callable[[Strategy], Strategy]:
    """Register the function of the strategy that `merge:` names so; it lives in the module of that name."""

    def register(ingest: Strategy) -> Strategy:
        _STRATEGIES[name] = ingest
        return ingest

    return register


def strategy(name: str) -> Strategy:
    """The strategy of a name. How it compares files is found in `operators.source.file_changes`, without what reads them."""
    if name not in _STRATEGIES:
        import_module(f"operators.source.strategies.{name}")
    return _STRATEGIES[name]
