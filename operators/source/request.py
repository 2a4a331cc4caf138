"""What a merge strategy works on, what it makes of it, and where strategies are found by name (CONTRACT, `merge:`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from changelog.lazy_imports import pa
from operators.core.evaluate import Narrow
from operators.core.run_values import RunValues
from operators.source.arrivals import Arrival
from operators.source.config import SourceConfig
from operators.source.diff.chunk_index import ChunkList
from operators.source.file_changes import FileChanges, FileRecord, Label
from operators.source.node import SourceNode
from operators.source.reading import FileReader
from storage.engines import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class InputChanged(Exception):
    """Input that a merge strategy cannot take: a primary key that is not one, history that was rewritten (exit 4)."""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """How far a file is known: its records up to `row` stand as they are while they are there, but for those of the keys `again`."""

    row: int
    again: frozenset[bytes]

    @property
    def marked(self) -> list[bytes]:
        """The keys `again`, also as they are where a record was rejected as it was read."""
        return sorted({*self.again, *(key + b"!" for key in self.again)})


class PriorRows(Protocol):
    """The live rows of a source before a run, rejects among them and of keyed files with `_epoch`. Nothing is read before it is asked for."""

    @property
    def rows(self) -> DataFrame:
        """All of them."""

    def in_key_ranges(self, ranges: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Those whose keys lie within some ranges, on the driver, without `_epoch`: few rows are read sooner so."""

    def filtered(self, predicate: Narrow) -> DataFrame:
        """Those that a function chooses by what they hold; the others are not folded."""

    def rows_replaced(self, record: FileRecord) -> bool:
        """Told of a file that is as it was but has other records now; whether its rows are others than they were until here."""


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """The files of a source and what stood before.

    `before`: what stood, None where nothing did. `rebuilt`: the source's own logic changed, so that everything present is read again and the
    difference has the cause `logic`. `floors`: by path those of files of which only what lies beyond is compared (`--from-cursors`).
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
    """Told what does not stop the run."""
    chunk_lists: Mapping[Label, ChunkList] = field(default_factory=dict)
    """The stretches of files as they were read, by label, of those whose records stand so."""
    epoch: int = 1
    """The epoch that is being made."""
    reject_count: int = 0
    """How many rejects of the source stand."""
    since: FileChanges | None = None
    """Where everything is read again: what became of the files since the last epoch."""
    arrivals: Mapping[str, Arrival] = field(default_factory=dict)
    """Where everything is read again: how the files arrived, by path."""

    @property
    def delivered(self) -> FileChanges:
        """What became of the files since the last epoch."""
        return self.changes if self.since is None else self.since

    @property
    def prior_rows(self) -> DataFrame | None:
        """All rows that stood, None where none did."""
        return None if self.prior is None else self.prior.rows

    @property
    def config(self) -> SourceConfig:
        """The source's configuration."""
        return self.source.config

    @property
    def fresh_cause(self) -> str:
        """The cause of rows that are new."""
        return "logic" if self.rebuilt else "ingest"

    @property
    def cause(self) -> str:
        """The cause of rows that are taken back or corrected."""
        return "logic" if self.rebuilt else "correction"

    def compared(self) -> list[str]:
        """The columns whose change makes a correction: the data (or `compare`), what it was rejected for, and the place where somebody reads it."""
        shape, wanted, chosen = self.files.shape, self.source.wanted, self.config.merge.compare
        data = list(shape.declared) if chosen is None else list(chosen)
        beside = ("_widened", "_doc") if chosen is None else ()
        places = [name for name, member in (("_file", "source.file"), ("_file", "source.path"), ("_row", "source.row")) if member in wanted]
        hidden = [name for name in (*dict.fromkeys(places), *beside) if name in shape.hidden]
        if self.rebuilt:
            return [*data, *(name for name in shape.columns if name not in (*data, "_row")), *(["_row"] if "_row" in hidden else [])]
        return [*data, "_error", *hidden]


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What a source makes of its files: op rows as a table on the driver or as a frame, and the records of the files that it remembers.

    `uncounted` are files whose `rows` are those of before, to which the written delta has to be added; `bound` is an upper
    bound of the frame's rows; `refuse` raises InputChanged for a written delta that must not be.
    """

    table: pa.Table | None
    frame: DataFrame | None
    signed: bool
    files: tuple[FileRecord, ...]
    uncounted: tuple[FileRecord, ...] = ()
    bound: int | None = None
    refuse: Callable[[DataFrame], None] | None = None
    lists: Mapping[Label, ChunkList] = field(default_factory=dict)
    """The stretches of the files that were read, by label, as far as they are known."""

    def rows(self, engine: Engine) -> DataFrame | None:
        """The op rows as a frame; None where there are none."""
        return self.frame if self.table is None else engine.from_arrow(self.table)


Strategy: TypeAlias = Callable[[IngestRequest], IngestResult]
"""A merge strategy: how what is new in files becomes a delta."""
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
