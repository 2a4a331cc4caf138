"""Deliveries of events: what a run reads, which earlier events it looks at, what it keeps for later runs.

There are two kinds of memory, both in the source's state:

* *Winners*: the newest event of each key. They suffice where an event replaces all that came before it: versions, feeds whose messages have whole rows.
* *All events*, with their values: corrections, patches and retractions may be rejected for what came before them, events of Debezium may keep values of
  earlier ones, and a late delivery changes that. A run reads the earlier events of the keys that a late delivery touches. A delivery at the end needs none
  of them; where there are versions, every delivery is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.frames import any_of, chosen, united
from changelog.lazy_imports import F, pa
from changelog.spark_algebra import as_retractions, diff
from operators.source.diff.by_key import read
from operators.source.events.columns import ACTIVATES, COLUMNS, PLACE, STANDS, TRUNCATES
from operators.source.events.frames import as_events
from operators.source.events.known_records import TIMES, KnownRecords
from operators.source.events.marking import Marks, events_of
from operators.source.events.order import known_before, places, turns, with_places, with_turns
from operators.source.events.pairs import connected, settled
from operators.source.events.replay import Rules, op_rows, replayed, unfound
from operators.source.file_changes import FileRecord, Part, whole
from operators.source.request import IngestRequest, Memory
from operators.source.strategies.keyed_events import fresh_parts, place_key, with_earlier_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Delivery:
    """The new events of a source.

    Attributes:
        request: The request of the source.
        events: The new events, with `__anchor` and `__turn`.
        files: The entries of the files after the run.
        count: An upper bound of the events; None where there is none.
        known: Of an answer of a database the records that earlier answers had; of files None.
    """

    request: IngestRequest
    events: DataFrame
    files: tuple[FileRecord, ...]
    count: int | None
    known: KnownRecords | None = None

    @classmethod
    def read(cls, request: IngestRequest, marks: Marks) -> Delivery:
        """Read what is new; all present files where the source was edited."""
        changes, files = request.changes, request.files
        parts = _all_present(request) if request.rebuilt else fresh_parts(request)
        parts = [replace(part, record=files.undeclared(part.record)) for part in parts]
        keyed = read(request, parts)
        counted = keyed.records if keyed.rows.table is not None else [files.counted(part) for part in parts]
        now = {record.label: record for record in (*changes.now, *with_earlier_columns(changes.now, counted))}
        events = events_of(request, keyed.frame, marks)
        placed = with_turns(events, turns(request, [part.record for part in parts], by_version=request.config.merge.version_field is not None), request.engine)
        here = None if keyed.rows.table is None else 2 * keyed.rows.table.num_rows
        return cls(request, placed, tuple(now.values()), here)

    @property
    def bound(self) -> int | None:
        """An upper bound of the op rows; None where there is none."""
        return None if self.request.rebuilt or self.request.changes.changed else self.count

    @property
    def uncounted(self) -> tuple[FileRecord, ...]:
        """The entries whose rows are counted in the delta: an answer counts its live rows."""
        return () if self.known is None else self.files

    @property
    def memory(self) -> Memory:
        """The state that the source keeps."""
        assert self.request.memory is not None  # these strategies have one
        return self.request.memory

    @cached_property
    def rules(self) -> Rules:
        """How events are replayed."""
        return Rules.of(self.request)

    @cached_property
    def where(self) -> dict[str, int]:
        """The place of each file."""
        return places(self.request)

    @property
    def _event_columns(self) -> list[str]:
        image = [name for name in self.rules.names if name not in COLUMNS]
        return [*COLUMNS, *PLACE, *image, *([] if "_row" in image else ["_row"])]

    def placed(self, events: DataFrame, *, kept: DataFrame | None = None) -> DataFrame:
        """Events at their places, with `__fresh`: whether they were delivered since the last run, and `__stale`: whether their file has other content now.

        `kept`: of earlier events all that earlier runs kept; None where the events come from this delivery.
        """
        placed = with_places(events, self.where, self.request.engine)
        if self.known is None:
            return placed.withColumns({"__fresh": self._is_delivered() if kept is None else F.lit(False), "__stale": self._is_stale()})
        marked = placed.withColumn("__stale", F.lit(False)) if kept is None else self.known.with_stale(placed, kept)
        return marked.withColumn("__fresh", F.lit(kept is None))

    @property
    def has_left(self) -> bool:
        """Whether something was delivered that is not there any more: in a missing file, or in one that was overwritten."""
        return bool(self.gone) or any(record.replaced for record in self.files)

    def is_left(self) -> Column:
        """Whether an event is of content that is not there any more."""
        return F.col("_file").isin(self.gone) | self._is_stale() if self.gone else self._is_stale()

    def _is_stale(self) -> Column:
        """Whether the file of an event was overwritten after it."""
        overwritten = [record for record in self.files if record.replaced]
        return any_of([(F.col("_file") == record.stored) & (F.col("__turn") < record.arrived) for record in overwritten])

    def in_order(self, events: DataFrame, names: Sequence[str] = ()) -> DataFrame:
        """Events at their places."""
        placed = with_places(events, self.where, self.request.engine)
        return chosen(placed, names) if names else placed

    def computed(self, rows: DataFrame) -> DataFrame:
        """Rows that are read several times: on the driver where the delivery is small, so that they are computed once."""
        engine = self.request.engine
        return engine.from_arrow(engine.to_arrow(rows)) if engine.limits.are_small(self.count) else rows

    def is_gone(self, place: int) -> bool:
        """Whether the file at a place is missing."""
        return any(self.where[file] == place for file in self.gone)

    def _is_delivered(self) -> Column:
        """Whether an event is of a file that is new, overwritten or longer since the last run."""
        if not self.request.rebuilt:
            return F.lit(True)
        delivered = self.request.delivered
        files = [record.stored for record in (*delivered.added, *delivered.changed, *(part.record for part in delivered.grown))]
        return F.col("_file").isin(files) if files else F.lit(False)

    @property
    def gone(self) -> list[str]:
        """The files that are missing."""
        return [record.stored for record in self.request.changes.now if not record.present]

    # -- all events are kept

    def by_events(self) -> DataFrame:
        """The op rows, where all events are kept."""
        request, rules = self.request, self.rules
        late = request.prior is not None and (rules.by_version or self._is_late())
        if request.rebuilt:
            return self._again()
        earlier = self.memory.rows() if late else None
        fresh = self.placed(self.kept_now())
        if not late:
            return self._net(fresh, request.prior_rows)
        return self._corrected(fresh, earlier)

    def _is_late(self) -> bool:
        """Whether something is new before the end of what was read, or was overwritten."""
        changes = self.request.changes
        if changes.changed:
            return True
        known = max((self.where[record.stored] for record in known_before(self.request) if record.rows), default=-1)
        new = [self.where[record.stored] for record in (*changes.added, *(part.record for part in changes.grown))]
        return min(new, default=known) < known

    def kept_now(self) -> DataFrame:
        """The new events, once they are stored."""
        number = F.concat(F.col("_file").cast("binary"), F.lit(b"\x00"), F.col("_row").cast("string").cast("binary"), F.lit(b"\x00"), F.col("__part").cast("string").cast("binary"))
        turn = F.concat(F.lit(b"\x00"), F.col("__turn").cast("string").cast("binary"))
        rows = self.events.select(F.concat(number, turn).alias("_key"), *map(column, self._event_columns))
        return chosen(self._of_events(self.keep(rows, self.count)), self._event_columns)

    def keep(self, rows: DataFrame, bound: int | None) -> DataFrame:
        """Store what later runs have to know: rows of events, and the known records of an answer. Return the rows as they were stored."""
        known = self.known
        if known is None:
            return self.memory.keep(rows, bound)
        stored = known.beside(rows)
        return self.memory.keep(united(stored, known.kept(stored)), None if bound is None or known.moved_count is None else bound + known.moved_count)

    def _of_events(self, kept: DataFrame) -> DataFrame:
        """The kept rows that are events."""
        return kept if self.known is None else kept.where(F.col(TIMES).isNull())

    def with_gone(self, rows: DataFrame) -> DataFrame:
        """Op rows, and retractions of the rejects whose records the answer has no more."""
        stood = self.request.prior_rows
        if self.known is None or stood is None:
            return rows
        wrong = stood.where(F.col("_error").isNotNull()).join(self.known.gone(), "_key", "left_semi")
        return united(rows, chosen(as_retractions(wrong, ""), rows.columns))

    def _net(self, events: DataFrame, stood: DataFrame | None) -> DataFrame:
        """The op rows of events that follow all earlier ones, on the prior rows."""
        base = None if stood is None else stood.where(F.col("_error").isNull()).select("_key")
        events = self._settled(events, base)
        events, rules, stood = self._cleared(events, stood)
        marked = self.computed(replayed(events, stood, rules))
        self.warn(marked)
        return op_rows(marked, rules, has_old=stood is not None)

    def _settled(self, events: DataFrame, base: DataFrame | None) -> DataFrame:
        """Events where each half of a record knows what becomes of the other."""
        return settled(events, base, self.rules, self.request) if self.rules.refuses_corrections and self.request.config.merge.of else events

    def _cleared(self, events: DataFrame, stood: DataFrame | None) -> tuple[DataFrame, Rules, DataFrame | None]:
        """Events with what truncations among them do: they become retractions of all keys that were live before."""
        if self.request.config.feed != "debezium":
            return events, self.rules, stood
        names = ["__version"] if self.rules.by_version else ["__place", "__turn", "_row"]
        found = self.request.engine.to_arrow(events.where(F.col("__does") == TRUNCATES).select(*names).distinct()).to_pylist()
        events = events.where(F.col("__does") != TRUNCATES)
        if not found:
            return events, self.rules, stood
        if self.rules.by_version:
            placed = _with_eras_of_versions(events, sorted(row["__version"] for row in found), self.request)
        else:
            placed = _with_eras(events, sorted((row["__place"], row["__turn"], row["_row"]) for row in found), self.request)
        if stood is not None:
            placed = united(placed, self._retractions(stood, placed))
        return placed, replace(self.rules, clears=True), stood

    def _retractions(self, stood: DataFrame, events: DataFrame) -> DataFrame:
        """Quiet retractions of all prior rows, before all events: a truncation came behind them."""
        live = stood.where(F.col("_error").isNull())
        return as_events(live, events.columns, {"__of": F.col("_key"), "__does": F.lit(STANDS), "__wiped": F.lit(True), "__era": F.lit(0), "__place": F.lit(-2)}, events)

    def _corrected(self, fresh: DataFrame, earlier: DataFrame | None) -> DataFrame:
        """The op rows of new events among earlier ones: the keys that they touch are replayed."""
        request, rules = self.request, self.rules
        stood = request.prior_rows
        assert stood is not None  # else nothing is late
        everything = self._known(earlier)
        clears = request.engine.to_arrow(fresh.where(F.col("__does") == TRUNCATES).select("_row"), 1).num_rows if rules.keeps else 0
        if everything is None:
            among, touched = fresh, fresh.select("__of").distinct()
        elif clears:
            among, touched = united(everything, fresh), united(everything.select("__of"), fresh.select("__of"), stood.select(F.col("_key").alias("__of"))).distinct()
        else:
            touched = self._touched(fresh, everything)
            matched = everything.join(touched, "__of", "left_semi") if not rules.keeps else united(everything.where(F.col("__does") == TRUNCATES), everything.where(F.col("__does") != TRUNCATES).join(touched, "__of", "left_semi"))
            among = united(chosen(matched, fresh.columns), fresh)
        among = self.computed(among if self.known is None else self.known.with_repeated(among))
        events, replay_rules, _ = self._cleared(self._settled(among, None), None)
        marked = self.computed(replayed(events, None, replay_rules))
        self.warn(marked)
        after = op_rows(marked, replay_rules, has_old=False).drop("_op")
        overwritten = [record.stored for record in request.changes.changed] if self.known is None else []
        return diff(self._before(stood, among, touched, overwritten), after, request.cause, compare=rules.compared)

    def _touched(self, fresh: DataFrame, everything: DataFrame) -> DataFrame:
        """The keys of new events, and the keys that depend on them."""
        if not (self.rules.refuses_corrections and self.request.config.merge.of):
            return fresh.select("__of").distinct()
        return connected(fresh, everything, self.request)

    def _known(self, earlier: DataFrame | None) -> DataFrame | None:
        """Earlier events at their places. Of overwritten content the rejects are gone."""
        if earlier is None:
            return None
        return self.placed(chosen(self._of_events(earlier), self._event_columns), kept=earlier)

    def _before(self, stood: DataFrame, among: DataFrame, touched: DataFrame, overwritten: Sequence[str]) -> DataFrame:
        """The prior rows of touched keys, and the prior rejects of their events."""
        good = F.col("_error").isNull()
        keys = touched.select(F.col("__of").alias("_key"))
        rejects = among.where(~F.col("__does").isin(TRUNCATES, ACTIVATES)).select(place_key().alias("_key"))
        names = ["_key", *self.rules.names]
        gone = [] if self.known is None else [self.known.gone()]
        met = stood.select(*map(column, names)).join(united(keys, rejects, *gone).distinct(), "_key", "left_semi")
        if not overwritten:
            return met
        stale = stood.where(~good & F.col("_file").isin(overwritten)).select(*map(column, names))
        return united(chosen(met.where(good | ~F.col("_file").isin(overwritten)), names), stale)

    def _again(self) -> DataFrame:
        """The op rows of an edited source: all present files, and the events of files that are gone."""
        request, rules = self.request, self.rules
        stood, gone = request.prior_rows, self.gone
        earlier = self.memory.rows() if self.has_left and stood is not None else None
        left = self._left_events(earlier, stood, gone)
        rows = self.events if left is None else united(chosen(self.events, self._event_columns), left)
        again = replace(self, events=rows, count=None if left is not None else self.count)
        self.memory.forget()
        events = self.placed(again.kept_now())
        events, replay_rules, _ = self._cleared(self._settled(events, None), None)
        marked = replayed(events, None, replay_rules)
        self.warn(marked)
        after = op_rows(marked, replay_rules, has_old=False)
        if stood is None:
            return after
        return diff(stood, after.drop("_op"), request.cause, compare=rules.compared)

    def _left_events(self, earlier: DataFrame | None, stood: DataFrame | None, gone: Sequence[str]) -> DataFrame | None:
        """The events of files that are gone, and of rows of such files that have no events."""
        if stood is None or not self.has_left:
            return None
        rows = stood.where(F.col("_file").isin(gone)) if gone else stood.limit(0)
        if earlier is None:
            return self._rows_as_events(rows)
        engine = self.request.engine
        there = engine.from_arrow(engine.to_arrow(earlier.where(self.is_left())))  # the table is emptied before they are read
        known = _fitted(there, self.events, self._event_columns)
        lost = rows.join(known.select(F.col("__of").alias("_key")).distinct(), "_key", "left_anti")
        return united(known, self._rows_as_events(lost))

    def _rows_as_events(self, rows: DataFrame) -> DataFrame:
        """Prior rows as the events that brought them in."""
        return as_events(rows, self._event_columns, {"__of": F.col("_key"), "__does": F.lit(STANDS), "__anchor": F.col("_file"), "__turn": F.lit(0)}, self.events)

    def warn(self, marked: DataFrame) -> None:
        """Warn of corrections that found nothing (W460)."""
        merge = self.request.config.merge
        if merge.unknown.correct == "reject" or not {"correct", "patch"} & set(merge.ops or ()):
            return
        [found] = self.request.engine.to_arrow(unfound(marked).agg(F.count(F.lit(1)).alias("n"))).to_pylist()
        if found["n"]:
            records = "1 correction" if found["n"] == 1 else f"{found['n']:,} corrections"
            self.request.warn(f"W460: source '{self.request.source.name}': {records} found nothing to correct and {'was' if found['n'] == 1 else 'were'} appended")


def _all_present(request: IngestRequest) -> list[Part]:
    changed = {record.path for record in (*request.delivered.changed, *request.delivered.added)}
    here = [replace(record, arrived=request.epoch) if record.path in changed else record for record in request.changes.now if record.present]
    return whole(request.changes, here)


def _with_eras(events: DataFrame, marks: Sequence[tuple[int, int, int]], request: IngestRequest) -> DataFrame:
    """Events with `__era`, the number of truncations before them, and `__wiped`, whether one follows."""
    starts = [(-3, -1, -1), *marks]
    ends = [*marks, (1 << 62, 0, 0)]
    columns: dict[str, Any] = {"__era": list(range(len(starts)))}
    for side, found in (("lo", starts), ("hi", ends)):
        for at, name in enumerate("ptr"):
            columns[f"_{side}_{name}"] = [one[at] for one in found]
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    bounds = F.broadcast(request.engine.from_arrow(table))
    inside = _is_behind("lo") & ~_is_behind("hi")
    return events.join(bounds, inside).drop(*(name for name in columns if name != "__era")).withColumn("__wiped", F.col("__era") < len(marks))


def _with_eras_of_versions(events: DataFrame, marks: Sequence[bytes], request: IngestRequest) -> DataFrame:
    """The same where truncations have versions: each one comes behind all events of its version. Events without a version come first."""
    bounds = pa.table({"__era": list(range(len(marks) + 1)), "__lo": pa.array([None, *marks], pa.binary()), "__hi": pa.array([*marks, None], pa.binary())})
    version = F.coalesce(F.col("__version"), F.lit(b""))
    inside = (F.col("__lo").isNull() | (version > F.col("__lo"))) & (F.col("__hi").isNull() | (version <= F.col("__hi")))
    placed = events.join(F.broadcast(request.engine.from_arrow(bounds)), inside).drop("__lo", "__hi")
    return placed.withColumn("__wiped", F.col("__era") < len(marks))


def _is_behind(side: str) -> Column:
    """Whether an event comes behind a bound."""
    place, turn, row = (F.col(f"_{side}_{name}") for name in "ptr")
    return (F.col("__place") > place) | ((F.col("__place") == place) & ((F.col("__turn") > turn) | ((F.col("__turn") == turn) & (F.col("_row") > row))))


def _fitted(rows: DataFrame, like: DataFrame, names: Sequence[str]) -> DataFrame:
    """Stored events with the columns that events have now."""
    types = {field.name: field.dataType for field in like.schema.fields}
    return rows.select(*((column(name) if name in rows.columns else F.lit(None)).cast(types[name]).alias(name) for name in names))

