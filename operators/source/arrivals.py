"""The order in which records arrived, from a source's files in the run ledger: `merge: ledger` follows it when files are read again.

A file that grew between deliveries of others arrived in pieces. A *turn* is a run that read something; a later run has a higher turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from changelog.lazy_imports import F, pa
from operators.source.file_changes import FileRecord, Part
from storage.engines import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


NO_END: Final = 1 << 62
KEY: Final = "arrivals"
"""The member of a source's summary in the ledger that keeps the arrivals of runs before a full refresh."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """How the content of a file arrived: its turns, each with the last record that it read, and the file's size then."""

    turns: tuple[tuple[int, int], ...]
    size: int = 0

    @property
    def last(self) -> int:
        """The newest turn."""
        return self.turns[-1][0] if self.turns else 0


def arrivals_in(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Arrival]:
    """The arrivals of a source's files by path. In: the source's summaries in the ledger, oldest first."""
    found: dict[str, Arrival] = {}
    began: dict[str, int] = {}
    turn = 0
    for summary in summaries:
        before = {path: Arrival(tuple((at, rows) for at, rows in turns)) for path, turns in summary.get(KEY, {}).items()}
        turn = max([turn + 1, *(one.last for one in before.values())])
        for file in summary["files"]:
            path, rows = file["path"], file["rows"]
            known = before.get(path) or (found[path] if began.get(path) == file.get("arrived", 0) else Arrival(()))
            read = known.turns[-1][1] if known.turns else 0
            found[path] = Arrival((*known.turns, (turn, rows)) if rows > read else known.turns, file["size"])
            began[path] = file.get("arrived", 0)
    return found


def kept(arrivals: Mapping[str, Arrival], files: Sequence[FileRecord]) -> dict[str, list[list[int]]]:
    """Return the arrivals that the ledger stores when earlier runs are forgotten: turns of the present files by path. New records come last."""
    turn = max((one.last for one in arrivals.values()), default=0) + 1
    found = {}
    for record in (record for record in files if record.present):
        turns = [list(pair) for pair in arrivals[record.path].turns] if record.path in arrivals else []
        behind = [[turn, record.rows]] if record.rows > (turns[-1][1] if turns else 0) else []
        found[record.path] = turns + behind
    return found


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a file that arrived in several: the place of the file's first piece, its own place, the records that it holds (`behind` exclusive)."""

    first: int
    place: int
    behind: int
    last: int


def in_turn(parts: Sequence[Part], arrivals: Mapping[str, Arrival]) -> tuple[list[Part], list[Split]]:
    """The files in the order of their arrival, where files of one turn keep their order; and the pieces of files that arrived in several."""
    latest = max((one.last for one in arrivals.values()), default=0) + 1
    pieces = sorted((turn, part.order, behind, last, at) for at, part in enumerate(parts) for turn, behind, last in _pieces(part, arrivals.get(part.record.path), latest))
    placed: dict[int, list[Split]] = {}
    for place, (at, group) in enumerate(groupby(pieces, key=lambda piece: piece[-1])):
        run = list(group)
        own = placed.setdefault(at, [])
        own.append(Split(own[0].first if own else place, place, run[0][2], run[-1][3]))
    ordered = [replace(part, order=placed[at][0].place) for at, part in enumerate(parts)]
    return ordered, [split for own in placed.values() if len(own) > 1 for split in own]


def _pieces(part: Part, arrival: Arrival | None, latest: int) -> Iterable[tuple[int, int, int]]:
    """Turn and records of each piece; what is not known is the latest, and the last piece has no end."""
    turns = [] if arrival is None else list(arrival.turns)
    if arrival is None or not turns or arrival.size != part.record.size:
        turns.append((latest, NO_END))
    behind = 0
    for number, (turn, last) in enumerate(turns, 1):
        yield turn, behind, NO_END if number == len(turns) else last
        behind = last


def replaced_places(events: DataFrame, splits: Sequence[Split], engine: Engine) -> DataFrame:
    """Return events whose `_order` is the place of the piece they arrived in."""
    if not splits:
        return events

    columns = {"__first": [one.first for one in splits], "__place": [one.place for one in splits], "__behind": [one.behind for one in splits], "__last": [one.last for one in splits]}
    pieces = engine.from_arrow(pa.table(columns, pa.schema([(name, pa.int64()) for name in columns])))
    inside = (F.col("_order") == F.col("__first")) & (F.col("_row") > F.col("__behind")) & (F.col("_row") <= F.col("__last"))
    placed = events.join(F.broadcast(pieces), inside, "left").withColumn("_order", F.coalesce("__place", "_order"))
    return placed.drop(*columns)
