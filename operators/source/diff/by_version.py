"""A Delta table as a source: its newest version compared with the prior rows, or its change data feed where it has one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.frames import mapped, without
from changelog.keys.encoding import decode_key
from changelog.lazy_imports import F, pa, pl
from changelog.spark_algebra import diff
from operators.core.settings import PipelineSettings
from operators.core.value_text import shown
from operators.source.diff.sides import joined
from operators.source.diff.table_rows import BASE, COPY, HASH, REJECTED, TableRows, as_result, compared_whole, op_rows
from operators.source.file_changes import FileChanges, FileRecord
from operators.source.node import SourceNode
from operators.source.request import IngestRequest, IngestResult, InputChanged
from storage.delta.external_table import NotFollowed, Versions, table_at
from storage.errors import StorageError
from storage.formats import Column as FileColumn
from storage.uris import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


LABEL = (1,)
_WEIGHT = "__weight"


@dataclass(frozen=True, slots=True)
class TableChanges(FileChanges):
    """A table as the only file of its source.

    Attributes:
        since: The entry of the last epoch.
        broken: Why the table cannot be followed from there; None where it can.
    """

    since: FileRecord | None = None
    broken: str | None = None

    @property
    def reason(self) -> str | None:
        """The versions between which the table changed."""
        if not self.changed:
            return None
        now = f"version {self.changed[0].version}"
        return f"table: {now}" if self.since is None else f"table: version {self.since.version} to {self.changed[0].version}"

    @property
    def to_read(self) -> int:
        """Bytes to read; 0 where the table is followed, since the size of a change is not known beforehand."""
        followed = self.since is not None and self.broken is None
        return 0 if followed else sum(record.size for record in self.changed)

    def from_nothing(self) -> TableChanges:
        """The whole table."""
        return TableChanges(self.now, changed=self.now)


def place_of(path: str, folder: Path) -> str:
    """The path or URI of a table that a pipeline in a folder names."""
    return str(folder / path) if is_local(path) else path


def look(source: SourceNode, settings: PipelineSettings, known: FileRecord | None) -> TableChanges:
    """Return what changed in a source's table since it was read. Raises StorageError where there is no table."""
    path = str(source.config.path)
    place = place_of(path, settings.folder)
    if is_local(place) and not settings.allow_absolute_paths and not Path(place).resolve().is_relative_to(settings.folder.resolve()):
        raise StorageError(path, "it lies outside the pipeline's folder")
    table = table_at(place)
    if known is not None and (known.version, known.hash) == (table.version, table.mark):
        return TableChanges((known,), since=known)
    record = FileRecord(path, table.size, 0, table.mark, LABEL, version=table.version)
    if known is None:
        return TableChanges((record,), changed=(record,))
    broken = _broken(table, known)
    if broken is None and known.dense and table.is_unchanged_since(int(known.version or 0)):
        return TableChanges((known,), since=known)
    changed = replace(record, rows=known.rows)
    return TableChanges((changed,), changed=(changed,), since=known, broken=broken)


def _broken(table: Versions, known: FileRecord) -> str | None:
    """Return why a table cannot be followed from the version that was read."""
    try:
        table.check(int(known.version or 0), known.hash)
    except NotFollowed as why:
        return str(why)
    return None


@dataclass(frozen=True, slots=True)
class TableRequest(TableRows):
    """One Delta table to read.

    Attributes:
        table: The table at the requested version.
    """

    table: Versions

    @classmethod
    def of(cls, request: IngestRequest) -> TableRequest:
        """Open the table of a source. Raises InputChanged where its version is gone by now, and InputError."""
        record = request.changes.now[0]
        table = table_at(place_of(record.path, request.files.places.folder))
        if table.version != record.version:
            table.table.load_as_version(int(record.version or 0))
        undeclared = request.files.reader.undeclared_of(table.schema, record.path)  # type: ignore[attr-defined]  # a reader of tables
        return cls(request, replace(record, undeclared=tuple((one.name, one.type) for one in undeclared)), table)

    @property
    def shaped(self) -> Any:
        """Return the picklable function that turns a batch of the table into op rows."""
        files = self.request.files
        reader = files.reader.with_undeclared([FileColumn(name, type_) for name, type_ in self.record.undeclared])
        return partial(_shaped, reader, files.shape, files.schema(), self.record.path)

    @property
    def count(self) -> int | None:
        """The rows of the table, where its log says."""
        return self.table.rows

    def rows(self) -> DataFrame:
        """Return all rows of the table as op rows without keys."""
        from pyspark.sql.pandas.types import from_arrow_schema

        engine, shaped, schema = self.request.engine, self.shaped, self.request.files.schema()
        if self.table.small():
            return engine.from_arrow(_table(self.table.content(), shaped, schema))

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from shaped(batch)

        return mapped(self.table.frame(engine), work, from_arrow_schema(schema))


def _shaped(reader: Any, shape: Any, schema: pa.Schema, path: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for typed in reader.typed(batch):
        yield op_rows(typed, shape, schema, path, frozenset(column.name for column in reader.plan.undeclared))


def _table(rows: pa.Table, shaped: Any, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([made for batch in rows.to_batches() for made in shaped(batch)], schema)


def ingest(request: IngestRequest) -> IngestResult:
    """Return the delta from the prior rows to the table now. Raises InputChanged for a primary key that is null or not unique, or returns the check that does."""
    one = TableRequest.of(request)
    followed = _followed(one)
    return followed if followed is not None else compared_whole(one)


def _followed(one: TableRequest) -> IngestResult | None:
    """Return the delta by the table's change data feed; None where the whole table has to be read."""
    changes, request = one.request.changes, one.request
    if request.prior is None or request.rebuilt or not isinstance(changes, TableChanges) or changes.since is None:
        return None
    since = changes.since
    if changes.broken is not None:
        request.warn(f"{since.path}: {changes.broken}; the whole table was compared with what stood")
        return None
    if not since.dense or not one.table.has_feed():
        return None
    if tuple(since.undeclared) != one.record.undeclared:
        return None
    try:
        return _followed_from(one, since)
    except NotFollowed as why:
        request.warn(f"{since.path}: {why}; the whole table was compared with what stood")
        return None


def _followed_from(one: TableRequest, since: FileRecord) -> IngestResult:
    """Return the delta of the changes since a version. Raises NotFollowed."""
    request, engine = one.request, one.request.engine
    change = one.table.changes(int(since.version or 0))
    rows = change.rows.append_column(_WEIGHT, change.weights)
    shaped = _weighted(one, rows)
    based = engine.to_arrow(one.based(engine.from_arrow(shaped)))
    net = pl.DataFrame(based.select([BASE, HASH, _WEIGHT])).group_by(BASE, HASH).agg(pl.col(_WEIGHT).cast(pl.Int64).sum()).filter(pl.col(_WEIGHT) != 0)
    if one.table.rows is not None and since.rows + int(net[_WEIGHT].sum()) != one.table.rows:
        raise NotFollowed("its change data feed does not lead to the rows that it has")
    if not net.height:
        return IngestResult(None, True, (one.record,))
    stood = _standing(one, since, net, based)
    after = _after(one, net, stood)
    old, new = _images(one, stood, based, after)
    changed = diff(engine.from_arrow(old), engine.from_arrow(new), request.cause, compare=request.compared())
    return as_result(one, changed, old.num_rows + new.num_rows)


def _weighted(one: TableRequest, rows: pa.Table) -> pa.Table:
    """Return op rows of the change data feed, each with its weight."""
    made = []
    for batch in rows.to_batches():
        weights = batch.column(_WEIGHT)
        plain = batch.select([name for name in batch.schema.names if name != _WEIGHT])
        at = 0
        for shaped in one.shaped(plain):
            made.append(shaped.append_column(_WEIGHT, weights.slice(at, shaped.num_rows)))
            at += shaped.num_rows
    return pa.Table.from_batches(made, one.request.files.schema().append(pa.field(_WEIGHT, pa.int8())))


def _standing(one: TableRequest, since: FileRecord, net: pl.DataFrame, based: pa.Table) -> pa.Table:
    """Return the prior rows of the changed bases: `_key`, `__base`, `__hash` and the source's columns.

    The image of a removed row with a primary key is taken from the feed, since the prior rows are the table at that version. With `compare`, prior rows may
    differ from the table, so they are looked up.
    """
    names = [BASE, HASH, *one.request.files.shape.columns]
    trusted = one.unique and one.request.config.merge.compare is None and since.path == one.record.path
    gone = net.filter((pl.col(_WEIGHT) < 0) & ~_is_reject()) if trusted else net.clear()
    rest = net.join(gone, on=BASE, how="anti")
    images = pl.DataFrame(based.select(names)).unique([BASE, HASH], keep="first").join(gone, on=[BASE, HASH], how="semi")
    rows = images.select(pl.col(BASE).alias("_key"), *map(pl.col, names)).to_arrow()
    schema = pa.schema([pa.field("_key", pa.binary()), *map(based.schema.field, names)])
    found = [_found(one, rest).select(schema.names)] if rest.height else []
    return pa.concat_tables([part.cast(schema) for part in (rows, *found)])


def _found(one: TableRequest, net: pl.DataFrame) -> pa.Table:
    """Look up the prior rows of some bases, by key where the bases are keys."""
    engine, before = one.request.engine, one.request.prior
    assert before is not None  # else nothing is followed
    bases = net[BASE].unique().sort()
    keys = one.unique and not net.select(_is_reject().any()).item()

    def near(rows: DataFrame) -> DataFrame:
        if keys:  # between the first and the last of them, by which files and pages are passed over
            within = F.col("_key").between(F.lit(bases[0]), F.lit(bases[-1]))
            return joined(rows.where(within), pa.table({"_key": bases.to_arrow().cast(pa.binary())}), engine, "left_semi")
        base = F.when(F.col("_error").isNull(), F.col("_key")).otherwise(one.base(rows)) if one.unique else one.base(rows)
        found = joined(rows.withColumn(BASE, base), pa.table({BASE: bases.to_arrow().cast(pa.binary())}), engine, "left_semi", BASE)
        return without(found, BASE)

    return engine.to_arrow(one.based(before.filtered(near)))


def _after(one: TableRequest, net: pl.DataFrame, stood: pa.Table) -> pl.DataFrame:
    """Return the rows of each base afterwards: `__base`, `__hash`, `__count`. Raises NotFollowed and InputChanged."""
    before = pl.DataFrame(stood.select([BASE, HASH])).group_by(BASE, HASH).agg(pl.len().cast(pl.Int64).alias("__count"))
    single = net.filter(~_is_reject()) if one.unique else net.clear()
    several = net.filter(_is_reject()) if one.unique else net
    return pl.concat([_after_single(one, single, before), _after_several(several, before)])


def _is_reject() -> pl.Expr:
    return pl.col(BASE).bin.starts_with(REJECTED)


def _after_several(net: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Count the images of rows without a primary key: prior and added ones, less removed ones."""
    signed = net.select(BASE, HASH, pl.col(_WEIGHT).alias("__count"))
    touched = before.join(signed.select(BASE).unique(), on=BASE, how="semi")
    total = pl.concat([touched, signed]).group_by(BASE, HASH).agg(pl.col("__count").sum()).filter(pl.col("__count") != 0)
    if total.filter(pl.col("__count") < 0).height:
        raise NotFollowed("its change data feed takes rows away that were not there")
    return total


def _after_single(one: TableRequest, net: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return the row that each primary key has afterwards: the added one, or none."""
    held = before.group_by(BASE).agg(pl.col("__count").sum().alias("__held"))
    came, went = pl.col(_WEIGHT).clip(lower_bound=0).sum().alias("__came"), (-pl.col(_WEIGHT)).clip(lower_bound=0).sum().alias("__went")
    sums = net.group_by(BASE).agg(came, went).join(held, on=BASE, how="left").with_columns(pl.col("__held").fill_null(0))
    if sums.filter(pl.col("__went") > pl.col("__held")).height:
        raise NotFollowed("its change data feed takes rows away that were not there")
    twice = sums.filter(pl.col("__held") + pl.col("__came") - pl.col("__went") > 1)
    if twice.height:
        raise InputChanged(_not_unique(one, bytes(twice[BASE].sort()[0])))
    return net.filter(pl.col(_WEIGHT) > 0).select(BASE, HASH, pl.col(_WEIGHT).alias("__count"))


def _not_unique(one: TableRequest, base: bytes) -> str:
    identity = one.request.source.identity
    values = decode_key(base, [kind for _, kind in identity])
    key = ", ".join(f"{name}={'null' if value is None else shown(value)}" for (name, _), value in zip(identity, values, strict=True))
    return f"the primary key {key} stands for several records"


def _images(one: TableRequest, stood: pa.Table, based: pa.Table, after: pl.DataFrame) -> tuple[pa.Table, pa.Table]:
    """Return the prior rows of the changed bases and their rows afterwards, both under their keys."""
    columns = list(one.request.files.shape.columns)
    known = pl.concat([pl.DataFrame(table.select([BASE, HASH, *columns])) for table in (based, stood)]).unique([BASE, HASH], keep="first")
    copies = after.join(known, on=[BASE, HASH], how="left").select(pl.all().repeat_by("__count").explode())
    ordered = copies.sort(BASE, HASH).with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(BASE).alias(COPY))
    engine = one.request.engine
    made = engine.from_arrow(ordered.select(BASE, COPY, *columns).to_arrow().cast(_typed(stood, columns)))
    new = engine.to_arrow(made.withColumn("_key", one.key()).select("_key", *map(column, columns)))
    return stood.select(["_key", *columns]), new


def _typed(stood: pa.Table, columns: list[str]) -> pa.Schema:
    return pa.schema([pa.field(BASE, pa.binary()), pa.field(COPY, pa.int64()), *(stood.schema.field(name) for name in columns)])
