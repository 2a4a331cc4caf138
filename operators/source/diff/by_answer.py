"""An answer of a database as a source: compared with the prior rows, or taken as deliveries of rows by their keys.

A snapshot is compared as a whole; one with scopes is a delivery of the scopes that its records name. `append` and `ledger` take keys that are new; `upsert` lets the last record of a key win; `changelog` applies
the events that were not read before. Rows that were asked for again, because of an overlap or because there is no cursor, change nothing. With versions or groups of
operations an answer is a delivery of events, as a file is: `operators.source.events` replays them, ordered by version, cursor and arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import orjson

from changelog.columns import column
from changelog.frames import any_of, chosen, mapped, united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, Window, pa
from changelog.rows import Rows
from changelog.spark_algebra import as_retractions, diff
from operators.source.answers import AnswerChanges, batches_of, count_of, less, undeclared_columns
from operators.source.cell_corrections import COERCION
from operators.source.cursors import greatest
from operators.source.diff.by_scope import ScopedDelivery, with_scopes
from operators.source.diff.sides import image_hash
from operators.source.diff.table_rows import BASE, COPY, HASH, REJECTED, TableRows, compared_whole, op_rows
from operators.source.events.deliveries import Delivery
from operators.source.events.ingest import delta_of
from operators.source.events.known_records import DIGEST, NTH, WHOSE, Asked, KnownRecords
from operators.source.events.marking import Marks, events_of
from operators.source.file_changes import Part
from operators.source.request import IngestRequest, IngestResult
from operators.source.strategies import changelog, upsert
from operators.source.strategies.keyed_events import net_changes, rejected
from operators.source.unique_keys import UniqueKeys
from storage.formats.base import Column as FileColumn
from storage.values.types import is_dynamic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

SMALL_BYTES = 8 << 20
"""Bytes of a spooled answer that is handed to the engine whole; a larger one is read by its tasks."""
_TASK_BATCHES = 8
_FIRST_WINS = ("append", "ledger")


@dataclass(frozen=True, slots=True)
class AnswerRows(TableRows):
    """The rows of a spooled answer.

    Attributes:
        spool: The file.
        changes: How the answer was asked for.
    """

    spool: Path
    changes: AnswerChanges

    @classmethod
    def of(cls, request: IngestRequest) -> AnswerRows:
        """The answer that the run asked for."""
        changes = request.changes
        assert isinstance(changes, AnswerChanges)  # a source that asks has no others
        assert changes.spool is not None  # it changed
        return cls(request, changes.now[0], changes.spool, changes)

    @property
    def count(self) -> int | None:
        """The number of spooled rows."""
        return count_of(self.spool)[1]

    def rows(self) -> DataFrame:
        """Return all rows as op rows without keys. They have numbers in `__place`, in the order of the answer."""
        from pyspark.sql.pandas.types import from_arrow_schema

        files, engine, spool, path = self.request.files, self.request.engine, self.spool, self.record.path
        schema, shape, dynamic = files.schema(), files.shape, _dynamic(undeclared_columns(self.record))

        def shaped(first: int, last: int | None) -> Iterator[pa.RecordBatch]:
            for batch in batches_of(spool, first, last):
                yield op_rows(batch, shape, schema, path, dynamic)

        if self.record.size <= SMALL_BYTES or files.limit is not None:
            return engine.from_arrow(pa.Table.from_batches(shaped(0, None), schema))

        def work(seeds: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for seed in seeds:
                for first, last in zip(seed.column("first").to_pylist(), seed.column("last").to_pylist(), strict=True):
                    yield from shaped(first, last)

        number, _ = count_of(spool)
        starts = list(range(0, number, _TASK_BATCHES))
        seeds = pa.table({"first": starts, "last": [min(start + _TASK_BATCHES, number) for start in starts]})
        return mapped(engine.spread(seeds), work, from_arrow_schema(schema))


def _dynamic(columns: Sequence[FileColumn]) -> frozenset[str]:
    return frozenset(one.name for one in columns if is_dynamic(one.type))


def ingest(request: IngestRequest) -> IngestResult:
    """Return the delta that an answer brings. Raises InputChanged for a primary key of a snapshot that is null or not unique, or returns the check that does."""
    one = AnswerRows.of(request)
    strategy = request.config.merge.strategy
    if request.config.merge.scope is not None:
        return _of_scopes(one)
    if strategy == "snapshot":
        return compared_whole(one)
    marks = {"changelog": changelog, "upsert": upsert}[strategy].marks_of(request.config) if strategy in ("changelog", "upsert") else None
    if marks is not None:
        return delta_of(_events(one, marks))
    if request.rebuilt or request.prior is None:
        return _from_nothing(one)
    return _result(one, _delivered(one, request.prior_rows))


def _of_scopes(one: AnswerRows) -> IngestResult:
    """The delta of an answer that is the whole truth for the scopes that its records name."""
    request, count = one.request, one.count
    record = replace(one.record, rows=count or 0, arrived=request.epoch, replaced=request.prior is not None)
    rows = one.rows() if request.files.limit is None else one.rows().limit(request.files.limit)
    parts = [Part(record)]
    scoped = with_scopes(request, rows.withColumn("_key", F.lit(None).cast("binary")), parts)
    good, wrong = scoped.where(F.col("_error").isNull()), scoped.where(F.col("_error").isNotNull())
    names = ["_key", "__scope", *request.files.shape.columns]
    records = united(chosen(good.withColumn("_key", one.base(good)), names), chosen(_numbered_rejects(one, one.based(wrong)), names))
    UniqueKeys(request, None).check_files(records)
    return ScopedDelivery(request, parts, records, (record,), count).result()


def _from_nothing(one: AnswerRows) -> IngestResult:
    """The rows of a whole answer, against the prior rows where the source was edited."""
    request = one.request
    rows = _delivered(one, None)
    stood = request.prior_rows
    if stood is None:
        return _result(one, rows)
    names = [column(name) for name in request.files.shape.columns]
    return _result(one, diff(stood, rows.where(F.col("_op").isin(0, 3)).select("_key", *names), request.cause, compare=request.compared()))


def _result(one: AnswerRows, rows: DataFrame) -> IngestResult:
    request = one.request
    marked = rows.withColumn("_cause", F.when(F.col("_op") == 0, F.lit(request.fresh_cause)).otherwise(F.lit(request.cause)))
    names = ["_op", "_key", "_cause", *request.files.shape.columns]
    frame = marked.select(*map(column, names))
    return IngestResult(Rows(request.engine, frame=frame), request.prior is not None, (one.record,), (one.record,))


def _delivered(one: AnswerRows, stood: DataFrame | None) -> DataFrame:
    """The op rows that the rows of an answer bring to prior rows."""
    request = one.request
    marked = _with_complete_keys(one, _in_sequence(one))
    if request.config.merge.strategy in _FIRST_WINS:
        return _new_keys(one, marked, stood)
    if request.config.merge.strategy == "upsert":
        rows = upsert.marked(request, one.based(marked))
        return _netted(one, rows, rows, stood)
    fresh, known = _unread(one, marked)
    assert request.memory is not None  # this strategy has one
    if request.rebuilt:
        request.memory.forget()
    request.memory.keep(known.kept(), known.moved_count)
    return _netted(one, changelog.marked(request, one.based(fresh)), changelog.marked(request, one.based(marked)), stood)


def _in_sequence(one: AnswerRows) -> DataFrame:
    """All rows with `__sequence`, by which the records of one key follow each other: the order of the cursor, then of their values."""
    config, rows = one.request.config, one.rows()
    if one.request.files.limit is not None:
        rows = rows.limit(one.request.files.limit)
    kinds = dict(one.request.source.event_types)
    first = [config.merge.cursor] if config.merge.cursor is not None else []
    names = [*first, *(name for name in kinds if name not in first)]
    op = F.col("__mark") if config.marks else column(str(config.merge.op))
    parts = [(op.cast("string") if name == config.merge.op else column(name), kinds[name]) for name in names]
    return rows.withColumn("__sequence", F.hex(key_column(parts)))  # Sail has no windows in the order of bytes


def _with_complete_keys(one: AnswerRows, rows: DataFrame) -> DataFrame:
    """Records without a complete primary key are rejected."""
    names = one.request.config.merge.primary_key
    if not names:
        return rows
    null = any_of([column(name).isNull() for name in names])
    detail = F.lit(f"the primary key ({', '.join(names)}) is null")
    return rejected(rows.withColumns({"_key": F.lit(None).cast("binary"), "_row": F.lit(0).cast("bigint")}), F.col("_error").isNull() & null, "null_primary_key", detail)


# -- append and ledger


def _new_keys(one: AnswerRows, marked: DataFrame, stood: DataFrame | None) -> DataFrame:
    """The records whose keys are new; of several the first one. Known keys with other values are counted and passed over."""
    based = one.based(marked)
    copy = F.row_number().over(Window.partitionBy(BASE).orderBy("__sequence", HASH))
    numbered = based.withColumn(COPY, copy.cast("bigint"))
    numbered = numbered.withColumn("_key", one.key())
    if one.unique:
        numbered = numbered.where((F.col(COPY) == 1) | F.col("_error").isNotNull())
    came = numbered.withColumn("_op", F.lit(0).cast("tinyint"))
    names = ["_op", "_key", *one.request.files.shape.columns]
    if stood is None:
        return _without_row(came.select(*map(column, names)))
    _warn_of_changed(one, numbered, stood)
    fresh = came.join(stood.select("_key"), "_key", "left_anti").select(*map(column, names))
    gone = _repaired(one, stood, numbered)
    retracted = as_retractions(gone, one.request.cause).select(*map(column, names))
    return united(_without_row(fresh), retracted)


def _without_row(rows: DataFrame) -> DataFrame:
    return rows.withColumn("_row", F.lit(None).cast("bigint")) if "_row" in rows.columns else rows


def _warn_of_changed(one: AnswerRows, numbered: DataFrame, stood: DataFrame) -> None:
    """Warn of records of known keys whose values are others."""
    if not one.unique:
        return
    request = one.request
    names = request.compared_contents()
    old = stood.where(F.col("_error").isNull()).select("_key", image_hash(stood, names).alias("__was"))
    new = numbered.where(F.col("_error").isNull()).select("_key", image_hash(numbered, names).alias("__is"))
    count = request.engine.to_arrow(new.join(old, "_key").where(F.col("__was") != F.col("__is")).agg(F.count(F.lit(1)).alias("n"))).column("n")[0].as_py()
    if count:
        message = "a record of a known key has other values" if count == 1 else f"{count:,} records of known keys have other values"
        request.warn(f"source '{request.source.name}': {message}: under 'merge: {request.config.merge.strategy}' they stay as they were first read")


def _repaired(one: AnswerRows, stood: DataFrame, numbered: DataFrame) -> DataFrame:
    """The live rejects that the answer, though it was asked for them, has no more."""
    wrong = stood.where(F.col("_error").isNotNull())
    here = numbered.where(F.col("_error").isNotNull()).select("_key")
    left = wrong.join(here, "_key", "left_anti")
    asked = _asked(one)
    surely, names = asked.surely(asked.floor), one.request.config.merge.primary_key
    if not names or asked.floor is None:
        return left.where(surely)
    good = numbered.where(F.col("_error").isNull()).select(*(column(name).alias(f"__pk{at}") for at, name in enumerate(names)), F.lit(True).alias("__read")).distinct()
    same = [column(name) == F.col(f"__pk{at}") for at, name in enumerate(names)]
    met = left.join(good, reduce(and_, same), "left")
    return met.where(surely | F.coalesce("__read", F.lit(False))).select(*map(column, stood.columns))


# -- upsert and changelog


def _netted(one: AnswerRows, marked: DataFrame, everything: DataFrame, stood: DataFrame | None) -> DataFrame:
    """The net change of each key by the records that count. `everything`: all records of the answer. Rejects have keys of their texts, equal ones with a number."""
    request, names = one.request, list(one.request.files.shape.columns)
    place = F.row_number().over(Window.partitionBy(BASE).orderBy("__sequence", HASH)).cast("bigint")
    good = marked.where(F.col("_error").isNull())
    wrong = _numbered_rejects(one, everything.where(F.col("_error").isNotNull()))
    placed = good.withColumns({"_key": F.col(BASE), "_row": place, "_order": F.lit(0).cast("bigint")})
    kept = None if stood is None else stood.where(F.col("_error").isNull())
    changed = net_changes(placed, kept, names, request.compared_contents())
    orphans = _orphans(one, changed.where((F.col("_op") == 0) & F.col("_error").isNotNull()), wrong, stood)
    fine = _without_row(changed.where(~((F.col("_op") == 0) & F.col("_error").isNotNull())))
    came = wrong.withColumn("_op", F.lit(0).cast("tinyint")).select("_op", "_key", *map(column, names))
    if stood is None:
        return united(fine, _without_row(came), orphans)
    fresh = _without_row(came).join(stood.select("_key"), "_key", "left_anti").select("_op", "_key", *map(column, names))
    provable = stood.where(~F.coalesce(F.col("_error").contains(f'"category":"{changelog.UNKNOWN_KEY}"'), F.lit(False)))  # of the others nothing tells that they were repaired
    gone = _repaired(one, provable, united(wrong.select("_key", *map(column, names)), placed.select("_key", *map(column, names))))
    retracted = as_retractions(gone, request.cause).select("_op", "_key", *map(column, names))
    return united(fine, fresh, orphans, retracted)


def _numbered_rejects(one: AnswerRows, wrong: DataFrame) -> DataFrame:
    """Rejected records under keys of their own."""
    based = wrong.withColumn(BASE, one.base(wrong))
    copy = F.row_number().over(Window.partitionBy(BASE).orderBy(HASH))
    numbered = based.withColumn(COPY, copy.cast("bigint"))
    return numbered.withColumn("_key", one.key())


def _orphans(one: AnswerRows, found: DataFrame, beside: DataFrame, stood: DataFrame | None) -> DataFrame:
    """Events that take back what was not there, numbered behind the equal ones of earlier epochs."""
    names = list(one.request.files.shape.columns)
    based = found.withColumn(BASE, F.concat(F.lit(REJECTED), F.col("_error").cast("binary"), F.lit(b"\x00")))
    copy = F.row_number().over(Window.partitionBy(BASE).orderBy(F.hex("_key")))
    numbered = based.withColumn(COPY, copy.cast("bigint"))
    if stood is not None:
        wrong = stood.where(F.col("_error").isNotNull())
        counted = wrong.groupBy(F.concat(F.lit(REJECTED), F.col("_error").cast("binary"), F.lit(b"\x00")).alias(BASE)).agg(F.count(F.lit(1)).alias("__before"))
        numbered = numbered.join(counted, BASE, "left").withColumn(COPY, F.col(COPY) + F.coalesce("__before", F.lit(0)))
    keyed = numbered.withColumn("_key", one.key())
    return _without_row(keyed.select("_op", "_key", *map(column, names)))


# -- events


def _events(one: AnswerRows, marks: Marks) -> Delivery:
    """The events of an answer that were not read before. A record has no place: `_file` is the digest of its values, and `_row` its number among equal ones."""
    request = one.request
    fresh, known = _unread(one, _in_order(one, _in_sequence(one)))
    keyed = fresh.withColumn("_key", key_column([(column(name), kind) for name, kind in request.source.identity]))

    def with_places(request: IngestRequest, rows: DataFrame) -> DataFrame:
        return marks(request, rows).withColumns({"_file": F.col(DIGEST), "_row": F.col(NTH)})

    placed = events_of(request, keyed, with_places).withColumns({"__anchor": F.lit(one.record.stored), "__turn": F.lit(request.epoch).cast("bigint")})
    return Delivery(request, placed, (one.record,), None if known.new_count is None else 2 * known.new_count, known)


def _in_order(one: AnswerRows, rows: DataFrame) -> DataFrame:
    """Records whose `__version` is followed by their cursor: of one version the later one counts, then the one that came in a later run."""
    config = one.request.config
    if config.merge.cursor is None:
        return rows
    place = key_column([(column(config.merge.cursor), one.request.source.event_types[config.merge.cursor])])
    return rows.withColumn("__version", F.concat(F.col("__version"), place) if config.merge.version_field else place)


def _unread(one: AnswerRows, rows: DataFrame) -> tuple[DataFrame, KnownRecords]:
    """The records that the last answer did not have, and what is to be remembered of this one."""
    request, engine = one.request, one.request.engine
    whose = key_column([(column(name), kind) for name, kind in request.source.identity])
    digested = rows.withColumns({DIGEST: F.sha2(F.concat(F.col("__sequence"), F.coalesce(F.col("_error"), F.lit(""))), 256), WHOSE: whose})
    alone = request.rebuilt or request.prior is None
    known = KnownRecords.of(digested, _asked(one), None if alone else request.memory, engine, one.count)
    fresh = known.unread(digested)
    return (engine.from_arrow(engine.to_arrow(fresh)) if engine.limits.are_small(known.new_count) else fresh), known


def _asked(one: AnswerRows) -> Asked:
    """The question of this run and of the next one to the database."""
    merge = one.request.config.merge
    name = merge.cursor
    if name is None:
        return Asked(None, None, None, F.lit(False))
    member = orjson.dumps(name).decode()
    failed = F.col("_error").contains(f'"category":"{COERCION}"')
    empty = F.col("_error").contains(f"{member}:null,") | F.col("_error").contains(f"{member}:null}},")
    unread = column(name).isNull() & F.coalesce(failed & ~empty, F.lit(False))
    after = None if one.record.cursor is None else less(greatest(one.record.cursor), merge.overlap)
    return Asked((name, one.request.source.event_types[name]), one.changes.floor, after, unread)
