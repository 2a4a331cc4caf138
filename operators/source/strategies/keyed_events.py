"""Deliveries of keyed sources as events: the net change of each key (`ledger`, `changelog`, `upsert`).

A frame of events has `_key`, the source's stored columns, `_order` and `_row` (the event's position), and two more columns:

* `__stays`: whether the row of the key is live after the event.
* `__wrong`: the detail of the reject that the event becomes if its key has no live row before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.equality import agree, parts
from changelog.frames import any_of, chosen, united, without
from changelog.keys.spark import row_label_column
from changelog.lazy_imports import F, Window, pa, pc
from changelog.ops import Op
from changelog.rows import Rows, TaskRows
from changelog.spark_algebra import as_retractions, consolidate, diff
from operators.core.row_type import HIDDEN_TYPES, STATUS
from operators.source.arrivals import in_turn, replaced_places
from operators.source.diff.by_key import Keyed, read
from operators.source.file_changes import FileRecord, Part, is_late, is_whole_history, out_of_turn, whole
from operators.source.request import IngestRequest, IngestResult
from operators.source.row_layout import REJECT_TAG
from operators.source.unique_keys import UniqueKeys
from storage.formats.base import UNDECLARED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec


def deliver(request: IngestRequest, marks: Callable[[DataFrame], DataFrame], *, first_wins: bool = False, judged: bool = True) -> IngestResult:
    """Return the delta of deliveries: each record is an event of its key, in discovery order.

    A late delivery, which precedes others that were read, takes its place: all deliveries are read again if all are present, else it counts as the latest.

    Args:
        request: The request of the source.
        marks: Adds `__stays` (never null) and `__wrong` to the records, and may make rejects of some.
        first_wins: Whether the first event of a key decides, whatever comes later.
        judged: Whether `marks` may give `__wrong` a value.
    """
    changes = request.changes
    again = request.rebuilt or (not first_wins and _out_of_order(request))
    parts = _parts(request, again=again)
    parts, splits = in_turn(parts, request.arrivals) if first_wins and request.arrivals else (parts, [])
    keyed = read(request, parts)
    now = _entries(request, parts, keyed)
    events = marks(_with_keys(request, replaced_places(keyed.frame, splits, request.engine)))
    if not again:
        _warn_of_other_results(request, events, first_wins=first_wins)
    once = not again and _occur_once(request, keyed)
    if once and not judged and request.prior is None and request.source.deleted is None:
        return _first_records(request, keyed, now, _size(parts))
    blank = _blank(request, parts)
    if again or changes.changed:
        rows = _replayed(request, events, first_wins=first_wins) if again else _netted(request, events, blank, first_wins=first_wins, judged=judged, once=once)
        return IngestResult(_with_causes(request, rows), request.prior is not None, now)
    made = _applied(request, events, blank, few=keyed.rows.are_here, first_wins=first_wins, judged=judged, once=once)
    return IngestResult(made, request.prior is not None, now, bound=_size(parts), apart=_apart(request, blank))


def _applied(request: IngestRequest, events: DataFrame, blank: Blank, *, few: bool, first_wins: bool, judged: bool, once: bool) -> Rows:
    """Return the op rows of new events; `few`: these are on the driver."""
    if request.prior is not None and not (few or first_wins or judged):
        return _made_by_tasks(request, events, blank, once=once)
    return _with_causes(request, _netted(request, events, blank, first_wins=first_wins, judged=judged, once=once))


def _with_causes(request: IngestRequest, rows: DataFrame) -> Rows:
    return Rows(request.engine, frame=rows.withColumn("_cause", F.when(F.col("_op") == 0, F.lit(request.fresh_cause)).otherwise(F.lit(request.cause))))


_OFTEN_BLANK: Final = ("_widened", "_status", "_error")
"""Stored columns that mostly have no values."""


@dataclass(frozen=True, slots=True)
class Blank:
    """Stored columns without values: in all events, and in all prior rows. Engines need not join them, which takes a third of the time."""

    events: frozenset[str] = frozenset()
    stood: frozenset[str] = frozenset()


def _apart(request: IngestRequest, blank: Blank) -> frozenset[str] | None:
    """Return columns in which the images of each correction differ; None where some rows may be suppressed ones."""
    without_values = blank.events & blank.stood
    if STATUS in request.files.shape.hidden and STATUS not in without_values:
        return None
    return frozenset(request.compared()) - without_values - {"_error"}


def _blank(request: IngestRequest, parts: Sequence[Part]) -> Blank:
    """Return the columns without values. An event has no status, and undeclared fields only where its file has."""
    reader = request.files.reader
    declared = UNDECLARED not in reader.schema().names and not any(part.record.undeclared for part in parts)
    of_events = {"_status", *(["_widened"] if declared else [])}
    stored = [name for name in _OFTEN_BLANK if name in request.files.shape.hidden]
    return Blank(frozenset(stored) & of_events, frozenset() if request.prior is None else request.prior.blank(stored))


def _entries(request: IngestRequest, parts: Sequence[Part], records: Keyed) -> tuple[FileRecord, ...]:
    """Return the entries of all files of the source, after its parts were read."""
    now = request.changes.now
    counted = records.records if records.rows.table is not None else [request.files.counted(part) for part in parts]
    return tuple({record.label: record for record in (*now, *with_earlier_columns(now, counted))}.values())


def _size(parts: Sequence[Part]) -> int:
    """Return the bytes of parts of files."""
    return sum(part.size for part in parts)


def _occur_once(request: IngestRequest, records: Keyed) -> bool:
    """Return whether records of large files all have a key, and none has that of another. To look takes a twentieth of what it takes to order the records of each key."""
    if records.rows.are_here:
        return False
    good = records.frame.where(F.col("_error").isNull()).select("_key", *map(column, request.config.merge.primary_key))
    return not request.engine.to_arrow(UniqueKeys(request, None).suspects(good), 1).num_rows


def _first_records(request: IngestRequest, records: Keyed, now: tuple[FileRecord, ...], bound: int) -> IngestResult:
    """Return the delta of a first run whose records all stay, written by the tasks that read them."""
    rows = records.rows if request.fresh_cause == "ingest" else records.rows.through(lambda frame: frame.withColumn("_cause", F.lit(request.fresh_cause)))
    return IngestResult(rows.select(["_op", "_key", "_cause", *request.files.shape.columns]), False, now, (), bound)


def _parts(request: IngestRequest, *, again: bool) -> list[Part]:
    """The parts to read: everything, or only the new ones."""
    return [replace(part, record=request.files.undeclared(part.record)) for part in (_whole_history(request) if again else fresh_parts(request))]


def fresh_parts(request: IngestRequest) -> list[Part]:
    """Return what was not read yet: new files, new ends, and overwritten files as new deliveries."""
    changes = request.changes
    added = [replace(record, arrived=request.epoch) for record in changes.added]
    overwritten = [replace(record, rows=0, replaced=True, arrived=request.epoch) for record in changes.changed]
    parts = [*whole(changes, [*added, *overwritten]), *changes.grown]
    return [part if request.files.continues(part) else replace(part, start=0) for part in parts]


def with_earlier_columns(before: Sequence[FileRecord], counted: Sequence[FileRecord]) -> Iterator[FileRecord]:
    """Yield the entries of read files. An overwritten one keeps its earlier undeclared columns, since rows of its earlier content may be live."""
    had = {record.label: record.undeclared for record in before}
    for record in counted:
        yield replace(record, undeclared=tuple(dict.fromkeys((*had[record.label], *record.undeclared)))) if record.replaced else record


def _out_of_order(request: IngestRequest) -> bool:
    """Whether something was delivered ahead of what was read, and all can be read again."""
    return request.prior is not None and is_late(request.changes) and is_whole_history(request.changes)


def _whole_history(request: IngestRequest) -> Sequence[Part]:
    """Return all present files, marking the ones that were overwritten since they were read."""
    overwritten, added = ({record.path for record in records} for records in (request.delivered.changed, request.delivered.added))
    here = [record for record in request.changes.now if record.present]
    marked = [replace(record, replaced=True) if record.path in overwritten else record for record in here]
    return whole(request.changes, [replace(record, arrived=request.epoch) if record.path in overwritten | added else record for record in marked])


def _warn_of_other_results(request: IngestRequest, events: DataFrame, *, first_wins: bool) -> None:
    """Warn of new records before others that were read, where a run over all files at once would decide differently."""
    late = out_of_turn(request.changes) if request.prior is not None else []
    if late and not first_wins:
        request.warn(f"source '{request.source.name}': {late[0]} stands before files that were read already, and not all of these can be read again: it counts as the latest")
    elif late and (passed := _passed_over(request, events)):
        count, file = passed
        records = "a record" if count == 1 else f"{count:,} records"
        request.warn(
            f"source '{request.source.name}': {file} stands before files that were read already: {records} of known keys passed over,"
            " where a run without this state would take them (--full-refresh would not)"
        )  # fmt: skip


def _passed_over(request: IngestRequest, events: DataFrame) -> tuple[int, str] | None:
    """Count the records whose keys have a row from a later file, and return the first of their files; None where there are none."""
    assert request.prior_rows is not None  # else nothing was read already
    compared, stood = request.compared(), request.prior_rows.where(F.col("_error").isNull())
    here = [(record.stored, order) for order, record in enumerate(request.changes.now) if record.present]
    places = request.engine.from_arrow(pa.table({"_file": [name for name, _ in here], "__stands": pa.array([order for _, order in here], pa.int64())}))
    was = parts(stood, compared)
    old = stood.select("_key", "_file", *(part.alias(f"__was{at}") for at, part in enumerate(was))).join(places, "_file").drop("_file")
    now = parts(events, compared)
    marked = events.where(F.col("_error").isNull()).select("_key", "_file", "_order", *(part.alias(f"__is{at}") for at, part in enumerate(now)))
    same = agree([F.col(f"__was{at}") for at in range(len(was))], [F.col(f"__is{at}") for at in range(len(now))])
    passed = marked.join(old, "_key").where((F.col("__stands") > F.col("_order")) & ~same)
    [found] = request.engine.to_arrow(passed.agg(F.count(F.lit(1)).alias("count"), F.min("_file").alias("file"))).to_pylist()
    return (found["count"], found["file"]) if found["count"] else None


def _netted(request: IngestRequest, events: DataFrame, blank: Blank, *, first_wins: bool, judged: bool, once: bool) -> DataFrame:
    """Apply new events to the prior rows. Rejects of overwritten files go."""
    names, compared, stood = request.files.shape.columns, request.compared(), request.prior_rows
    overwritten = [record.stored for record in request.changes.changed]
    if stood is None or not overwritten:
        return net_changes(events, stood, names, compared, blank, first_wins=first_wins, judged=judged, once=once)
    stale = F.col("_error").isNotNull() & F.col("_file").isin(overwritten)
    rows = net_changes(events, stood.where(~stale), names, compared, first_wins=first_wins, once=once).withColumn("_cause", F.lit(""))
    return consolidate(united(rows, as_retractions(stood.where(stale), "")))


def _replayed(request: IngestRequest, events: DataFrame, *, first_wins: bool) -> DataFrame:
    """Return the difference between the prior rows and the result of all deliveries.

    Where some deliveries cannot be read again, no earlier record replaces a prior row of them. New deliveries follow.
    """
    names, compared, stood = request.files.shape.columns, request.compared(), request.prior_rows
    gone, fresh, earlier = _lost(request)
    if stood is None or not (gone or fresh or earlier):
        rows = net_changes(events, None, names, compared, first_wins=first_wins)
        return rows if stood is None else diff(stood, rows.drop("_op"), request.cause, compare=compared)
    new, good = _is_new(request), F.col("_error").isNull()
    marked = _with_presence(stood, events, of_present_content=bool(earlier) and not first_wins)
    lasting = F.col("_file").isin(gone) | (good & (F.col("_file").isin(fresh) | (F.col("_file").isin(earlier) & ~F.col("__there"))))
    kept, lasts = marked.where(~lasting & ~F.col("_file").isin(fresh)), marked.where(lasting)
    again = net_changes(_standing(events.where(~new), kept, lasts), None, names, compared, first_wins=first_wins)
    base = united(*(rows.select("_key", *map(column, names)) for rows in (again, lasts)))
    rows = diff(stood, base, request.cause, compare=compared)
    then = net_changes(events.where(new), base, names, compared, first_wins=first_wins).withColumn("_cause", F.lit(request.cause))
    return consolidate(united(rows, chosen(then, rows.columns)))


def _lost(request: IngestRequest) -> tuple[list[str], list[str], list[str]]:
    """Return the paths of missing files, of files overwritten since they were read, and of files overwritten before that."""
    now, changed = request.changes.now, {record.path for record in request.delivered.changed}
    present = [record for record in now if record.present]
    earlier = [record.stored for record in present if record.replaced and record.path not in changed]
    return [record.stored for record in now if not record.present], [record.stored for record in present if record.path in changed], earlier


def _with_presence(stood: DataFrame, events: DataFrame, *, of_present_content: bool) -> DataFrame:
    """Return prior rows with `__there`: whether the record at their place has their key."""
    if not of_present_content:
        return stood.withColumn("__there", F.lit(False))
    places = events.where(F.col("_error").isNull()).select("_file", "_row", "_key").distinct().withColumn("__found", F.lit(True))
    met = stood.join(places, ["_file", "_row", "_key"], "left").withColumn("__there", F.coalesce(F.col("__found"), F.lit(False)))
    return met.select(*map(column, stood.columns), "__there")


def _is_new(request: IngestRequest) -> Column:
    """Return whether a record is from a new or overwritten file, or after the old end of a grown one."""
    changes = request.delivered
    grown = [(F.col("_file") == part.record.stored) & (F.col("_row") > part.rows) for part in changes.grown]
    whole = [record.stored for record in (*changes.added, *changes.changed)]
    return any_of([*grown, *([F.col("_file").isin(whole)] if whole else [])])


def _standing(events: DataFrame, kept: DataFrame, lost: DataFrame) -> DataFrame:
    """Read again the events that are live as rows or rejects (`kept`). Deliveries that are gone decided about the others.

    A reject that can be read now becomes live unless its key has a row, in `kept` or in files that cannot be read again (`lost`).
    """
    places = kept.select("_file", "_row", F.col("_error").isNotNull().alias("__was_reject"))
    again = events.join(places, ["_file", "_row"])
    taken = united(*(rows.where(F.col("_error").isNull()).select("_key") for rows in (kept, lost))).distinct().withColumn("__taken", F.lit(True))
    marked = again.join(taken, "_key", "left")
    beside = F.col("__was_reject") & F.col("_error").isNull() & F.coalesce(F.col("__taken"), F.lit(False))
    rejected = beside & F.col("__wrong").isNotNull()  # it took back what was not there, and would now take what came later
    marked = marked.where(~beside | F.col("__wrong").isNotNull()).withColumn("__rejected", rejected)
    marked = marked.withColumns({"_error": F.when(F.col("__rejected"), F.col("__wrong")).otherwise(F.col("_error")), "__stays": F.col("__stays") | F.col("__rejected")})
    marked = marked.withColumn("_key", F.when(F.col("__rejected"), place_key()).otherwise(F.col("_key")))
    wrong = F.when(F.col("__was_reject") & ~F.col("__rejected"), F.col("__wrong"))
    return marked.withColumn("__wrong", wrong).select(*map(column, events.columns))


def _with_keys(request: IngestRequest, rows: DataFrame) -> DataFrame:
    """Records without a complete primary key are rejected."""
    names = request.config.merge.primary_key
    null = any_of([column(name).isNull() for name in names])
    return rejected(rows, F.col("_error").isNull() & null, "null_primary_key", F.lit(f"the primary key ({', '.join(names)}) is null"))


def rejected(rows: DataFrame, wrong: Column, category: str, detail: Column) -> DataFrame:
    """Return records with those where `wrong` is true as rejects: keyed by place, with category and detail."""
    marked = rows.withColumn("_error", F.when(wrong, error(category, detail)).otherwise(F.col("_error")))
    return marked.withColumn("_key", F.when(F.col("_error").isNull(), F.col("_key")).otherwise(place_key()))


def error(category: str, detail: Column) -> Column:
    """The text of `_error`."""
    return F.to_json(F.struct(F.lit(category).alias("category"), detail.alias("detail")))


_GOES, _COMES, _REJECTED = 1, 2, 3
"""The rows that an event may become: the prior row is taken back, its own is brought in, it is rejected."""


def net_changes(
    events: DataFrame, stood: DataFrame | None, names: Sequence[str], compared: Sequence[str], blank: Blank = Blank(), *,
    first_wins: bool = False, judged: bool = True, once: bool = False,
) -> DataFrame:  # fmt: skip
    """Return the op rows that events make of the prior rows, with `_op`, `_key` and `names`. Reads `events` once.

    The last event of a key decides; with `first_wins` the first one, and only where the key has no prior row.

    Args:
        events: Events, as described for this module.
        stood: Prior rows with `_key` and `names`; None where there are none.
        names: Stored columns.
        compared: Columns whose difference is a correction.
        blank: Columns without values.
        first_wins: Whether the first event decides.
        judged: Whether `__wrong` may have a value.
        once: Whether each key has one event.
    """
    if stood is None and not judged:  # what an event replaces does not matter: looking for it, and exploding ops, takes half of a first run
        appended = events.withColumn("__final", _is_final(first_wins, once=once)).where(F.col("__final") & F.col("__stays"))
        return appended.select(F.lit(0).cast("tinyint").alias("_op"), "_key", *map(column, names))
    joined = _met(events, stood, names, compared, blank, first_wins=first_wins, judged=judged, once=once)
    may_go = stood is not None and not first_wins
    each = joined.withColumn("__side", F.explode(F.array(*map(F.lit, [*([_GOES] if may_go else []), _COMES, *([_REJECTED] if judged and not first_wins else [])]))))
    rows = each.where(_becomes(first_wins))
    return rows.select(_op().alias("_op"), _key().alias("_key"), *(_value(name, blank if stood is not None else Blank(), has_old=may_go).alias(name) for name in names))


def _met(
    events: DataFrame, stood: DataFrame | None, names: Sequence[str], compared: Sequence[str], blank: Blank, *, first_wins: bool, judged: bool, once: bool
) -> DataFrame:  # fmt: skip
    """Return the events that decide about their keys, or may be wrong, beside the prior rows of their keys. Arguments as in `net_changes`.

    `__final`: whether the event decides. `__before`: what `__stays` says of the event before it. `__known`: whether its key has a prior row. `__same`: whether that row is the same.
    """
    before = F.lit(None).cast("boolean") if once else F.lag("__stays").over(_by_key(first_wins))
    marked = events.withColumns({"__before": before, "__final": _is_final(first_wins, once=once)})
    marked = marked.where(F.col("__final") | F.col("__wrong").isNotNull()) if judged else marked.where(F.col("__final"))
    if stood is None:
        return marked.withColumns({"__known": F.lit(False), "__same": F.lit(False)})
    return _beside(without(marked, *blank.events), stood, [name for name in names if name not in blank.stood], compared, blank)


def _is_final(first_wins: bool, *, once: bool) -> Column:
    return F.lit(True) if once else F.lead("__stays").over(_by_key(first_wins)).isNull()


def _by_key(first_wins: bool) -> WindowSpec:
    places = [F.col("_order"), F.col("_row")]
    return Window.partitionBy("_key").orderBy(*[place.desc() for place in places] if first_wins else places)


def _made_by_tasks(request: IngestRequest, events: DataFrame, blank: Blank, *, once: bool) -> Rows:
    """Return the op rows of many events that cannot be wrong, made by the tasks that write them. To explode the rows takes an engine as long as to join them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    names, types = request.files.shape.columns, request.files.schema()
    met = _met(events, request.prior_rows, names, request.compared(), blank, first_wins=False, judged=False, once=once)
    stays, known, same = F.col("__stays"), F.col("__known"), F.col("__same")
    old = {name: f"__old{at}" for at, name in enumerate(names) if name not in blank.stood}
    new = {name: f"__new{at}" for at, name in enumerate(names) if name not in blank.events}
    values = [*(_old(name, blank).alias(shown) for name, shown in old.items()), *(column(name).alias(shown) for name, shown in new.items())]
    seeds = met.select("_key", stays.alias("__stays"), known.alias("__known"), (stays & ~same).alias("__comes"), (known & ~(stays & same)).alias("__goes"), *values)
    schema = pa.schema([types.field(name) for name in ("_op", "_key", "_cause", *names)])
    made = TaskRows(seeds, _OpRows(schema, old, new, request.fresh_cause, request.cause))
    return Rows(request.engine, frame=made.frame(from_arrow_schema(schema)), made_by=made)


@dataclass(frozen=True, slots=True)
class _OpRows:
    """Makes the op rows of events that came with the prior rows of their keys. Picklable.

    Attributes:
        schema: The op rows.
        old: The columns with the values of the prior rows, by stored columns; others have no values.
        new: The same of the events.
        fresh_cause: The cause of insertions.
        cause: The cause of other op rows.
    """

    schema: pa.Schema
    old: Mapping[str, str]
    new: Mapping[str, str]
    fresh_cause: str
    cause: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            goes, comes = (batch.filter(batch.column(name)) for name in ("__goes", "__comes"))
            ops = pc.if_else(goes.column("__stays"), int(Op.CORRECT_FROM), int(Op.RETRACT))
            yield self._rows(goes, self.old, ops, pa.repeat(self.cause, goes.num_rows))
            known = comes.column("__known")
            yield self._rows(comes, self.new, pc.if_else(known, int(Op.CORRECT_TO), int(Op.APPEND)), pc.if_else(known, self.cause, self.fresh_cause))

    def _rows(self, batch: pa.RecordBatch, names: Mapping[str, str], ops: pa.Array, causes: pa.Array) -> pa.RecordBatch:
        given = {"_op": ops, "_key": batch.column("_key"), "_cause": causes} | {name: batch.column(shown) for name, shown in names.items()}
        columns = [given[one.name].cast(one.type) if one.name in given else pa.nulls(batch.num_rows, one.type) for one in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _beside(marked: DataFrame, stood: DataFrame, names: Sequence[str], compared: Sequence[str], blank: Blank) -> DataFrame:
    """Return the events with some columns of the prior row of their key. Engines take much longer to join and to explode structs than columns."""
    old = stood.select("_key", F.lit(True).alias("__stood"), *(column(name).alias(_old_name(name)) for name in names))
    differing = [name for name in compared if not (name in blank.events and name in blank.stood)]
    was, now = parts(stood, differing, lambda name: _old(name, blank)), parts(stood, differing, lambda name: _new(name, blank))
    return marked.join(old, "_key", "left").withColumn("__known", F.col("__stood").isNotNull()).withColumn("__same", F.col("__known") & agree(was, now))


def _old_name(name: str) -> str:
    return f"__stood:{name}"


def _old(name: str, blank: Blank) -> Column:
    """A column of the prior row."""
    return _nothing(name) if name in blank.stood else column(_old_name(name))


def _new(name: str, blank: Blank) -> Column:
    """A column of the event."""
    return _nothing(name) if name in blank.events else column(name)


def _nothing(name: str) -> Column:
    return F.lit(None).cast(HIDDEN_TYPES[name])


def _becomes(first_wins: bool) -> Column:
    """Whether an event becomes the row that `__side` says."""
    side, final, stays, known = F.col("__side"), F.col("__final"), F.col("__stays"), F.col("__known")
    comes = final & ~known if first_wins else final & stays & ~F.col("__same")
    goes = final & known & ~(stays & F.col("__same"))
    rejected = F.col("__wrong").isNotNull() & ~F.coalesce(F.col("__before"), known)
    return F.when(side == _COMES, comes).when(side == _GOES, goes).otherwise(rejected)


def _op() -> Column:
    side, known = F.col("__side"), F.col("__known")
    goes, comes = F.when(F.col("__stays"), 2).otherwise(1), F.when(known, 3).otherwise(0)
    return F.when(side == _COMES, comes).when(side == _GOES, goes).otherwise(0).cast("tinyint")


def _key() -> Column:
    return F.when(F.col("__side") == _REJECTED, place_key()).otherwise(F.col("_key"))


def place_key() -> Column:
    """The key of a rejected record."""
    return F.concat(F.lit(REJECT_TAG), F.col("_file").cast("binary"), F.lit(b"\x00"), row_label_column(F.col("_row")), F.lit(b"!"))


def _value(name: str, blank: Blank, *, has_old: bool) -> Column:
    """Return a stored column: of the prior row where that is retracted, else of the event."""
    new = F.when(F.col("__side") == _REJECTED, F.col("__wrong")).otherwise(F.col("_error")) if name == "_error" else _new(name, blank)
    return F.when(F.col("__side") == _GOES, _old(name, blank)).otherwise(new) if has_old else new
