"""Batches of a reader as op rows: keys, undeclared fields, event time, correlation key. All in Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from changelog.constant_columns import constant
from changelog.keys.arrow import encoded
from changelog.keys.positions import row_labels
from changelog.lazy_imports import pa, pc, pl
from operators.core.row_type import CORRECTED, STATUS
from operators.source.cell_corrections import CellCorrections
from storage.formats.base import BEFORE, DOCUMENT, ERROR, EVENT, EVENT_KEPT, EVENT_STREAM, EVENT_VERSION, OWN, ROW, UNDECLARED

REJECT_TAG: Final = b"\xff"
"""First byte of the key of a reject of a keyed source. The rest is its place, since its primary key cannot be trusted."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns of a source's op rows. Picklable: tasks use it.

    Attributes:
        declared: Data columns in order.
        hidden: Hidden columns of the row type in order.
        keyed: Whether the key comes from values. The batch then keeps its row number.
        key: Key columns with their types in keys; empty where the key is made later.
        event_time: Column, and delay in microseconds.
        riders: Metadata columns of correlation keys, with their data columns.
        mark: Column that the merge strategy consumes, as `__mark`.
        version: Columns that make the version of a record, `__version`, with their types in keys.
        is_feed: Whether records are events of a change feed: `__does` says what each one does.
        corrections: Corrections of cells, which come before all else.
    """

    declared: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    keyed: bool = False
    key: tuple[tuple[str, str], ...] = ()
    event_time: tuple[str, int] | None = None
    riders: tuple[tuple[str, str], ...] = ()
    mark: str | None = None
    version: tuple[tuple[str, str], ...] = ()
    is_feed: bool = False
    corrections: CellCorrections = field(default=CellCorrections(), compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that an op row stores in addition to `_op _key _cause`: hidden columns, metadata columns, data."""
        return (*self.hidden, *(rider for rider, _ in self.riders), *self.declared)

    def batch(self, batch: pa.RecordBatch, prefix: bytes, file: str, order: int, dynamic: frozenset[str] = frozenset()) -> pa.RecordBatch:
        """Return the op rows of a batch.

        Columns are `_op _key _cause`, hidden columns, metadata columns, data, `_error` and `_row`; for keyed sources also `_order` (the file's position) and
        `__mark`. The key of an unkeyed record is `prefix` and its order key; the key of a reject of a keyed source is its place.
        `dynamic` names the undeclared columns that contain JSON text.
        """
        batch, corrected = self.corrections.applied(batch)
        columns: dict[str, pa.Array] = {"_op": constant(0, pa.int8(), batch.num_rows)}
        if not self.keyed:
            columns["_key"] = row_keys(prefix, batch.column(ROW), batch.column(ERROR))
        elif self.key:
            columns["_key"] = self._value_keys(batch, file)
        columns["_cause"] = constant("ingest", pa.string(), batch.num_rows)
        for name in (hidden for hidden in self.hidden if hidden not in ("_row", "_error")):
            columns[name] = self._widened(batch, dynamic) if name == "_widened" else corrected if name == CORRECTED else self._hidden(name, batch, file)
        for rider, name in self.riders:
            columns[rider] = batch.column(name)
        for name in self.declared:
            columns[name] = batch.column(name)
        columns["_error"] = batch.column(ERROR)
        columns["_row"] = batch.column(ROW)
        if self.keyed:
            columns["_order"] = constant(order, pa.int64(), batch.num_rows)
        if self.mark is not None:
            columns["__mark"] = batch.column(self.mark)
        if self.version:
            columns["__version"] = self._versions(batch)
        if self.is_feed:
            columns |= {"__does": batch.column(EVENT), "__version": batch.column(EVENT_VERSION), "__stream": batch.column(EVENT_STREAM)}
            columns |= {"__kept": batch.column(EVENT_KEPT), "__old_key": self._old_keys(batch, columns["_key"])}
        return pa.RecordBatch.from_pydict(columns)

    def _versions(self, batch: pa.RecordBatch) -> pa.Array:
        """The versions of records as bytes that compare as their columns do; null where a column is."""
        parts = [(batch.column(name), kind) for name, kind in self.version]
        whole = reduce(pc.and_, (values.is_valid() for values, _ in parts))
        return pc.if_else(whole, encoded(parts), pa.scalar(None, pa.binary()))

    def _old_keys(self, batch: pa.RecordBatch, keys: pa.Array) -> pa.Array:
        """The keys that events replace, where these are known and other ones."""
        parts = [(batch.column(BEFORE + name), kind) for name, kind in self.key]
        old, whole = encoded(parts), reduce(pc.and_, (values.is_valid() for values, _ in parts))
        return pc.if_else(pc.and_(whole, pc.not_equal(old, keys)), old, pa.scalar(None, pa.binary()))

    def _value_keys(self, batch: pa.RecordBatch, file: str) -> pa.Array:
        """The keys of records by their values, of rejects by their places."""
        keys, bad = encoded([(batch.column(name), kind) for name, kind in self.key]), batch.column(ERROR).is_valid()
        if not bad.true_count:
            return keys
        places = row_labels(REJECT_TAG + file.encode() + b"\x00", batch.column(ROW).filter(bad).to_numpy(zero_copy_only=False))
        return pc.replace_with_mask(keys, bad, pa.array([place + b"!" for place in places.to_pylist()], pa.binary()))

    def _hidden(self, name: str, batch: pa.RecordBatch, file: str) -> pa.Array:
        if name == "_event_time":
            return self.event_times(batch)
        if name == "_file":
            return constant(file, pa.string(), batch.num_rows)
        if name == "_doc":
            return batch.column(DOCUMENT)
        return constant(None, hidden_type(name), batch.num_rows)

    def _widened(self, batch: pa.RecordBatch, dynamic: frozenset[str]) -> pa.Array:
        return widened(batch, (*self.declared, *((self.mark,) if self.mark else ())), dynamic)

    def event_times(self, columns: pa.RecordBatch | Mapping[str, pa.Array]) -> pa.Array:
        """The event times of rows with these columns."""
        assert self.event_time is not None  # the row type has `_event_time` only with a watermark
        column, delay = self.event_time
        stamp = columns[column].cast(pa.timestamp("us", "UTC"))
        return pc.subtract(stamp, pa.scalar(delay, pa.duration("us")))


def row_keys(prefix: bytes, rows: pa.Array, errors: pa.Array) -> pa.Array:
    """Keys of unkeyed records: `prefix`, the 6-byte row number, the closing 00; a rejected record's has `!` behind it."""
    keys = row_labels(prefix, rows.to_numpy(zero_copy_only=False))
    if errors.null_count == len(errors):
        return keys
    return pa.array([key + b"!" if bad else key for key, bad in zip(keys.to_pylist(), errors.is_valid().to_pylist(), strict=True)], pa.binary())


def widened(batch: pa.RecordBatch, declared: Sequence[str], dynamic: frozenset[str] = frozenset()) -> pa.Array:
    """Return the undeclared fields of each record that are not null as a JSON object in file order; null where there are none.

    `dynamic` names the columns that contain JSON text.
    """
    if UNDECLARED in batch.schema.names:
        return batch.column(UNDECLARED)
    names = [name for name in batch.schema.names if name not in declared and not name.startswith(OWN)]
    if not names:
        return constant(None, pa.string(), batch.num_rows)
    places = [str(place) for place in range(len(names))]  # a field may have a name that Polars does not take
    frame = pl.from_arrow(pa.RecordBatch.from_arrays([batch.column(name) for name in names], places))
    assert isinstance(frame, pl.DataFrame)  # a batch is no array
    members = [_member(pl.col(place), name, dynamic=name in dynamic) for place, name in zip(places, names, strict=True)]
    some = pl.any_horizontal(pl.all().is_not_null())
    written = pl.concat_str(members, separator=",", ignore_nulls=True)
    text = frame.select(pl.when(some).then(pl.concat_str(pl.lit("{"), written, pl.lit("}")))).to_series()
    return text.to_arrow().cast(pa.string())


def _member(value: pl.Expr, name: str, *, dynamic: bool) -> pl.Expr:
    """`"name":value` of each record, null where the field is."""
    import orjson

    key = pl.lit(orjson.dumps(name).decode() + ":")
    if dynamic:
        return pl.concat_str(key, value)
    encoded = pl.struct(value.alias("v")).struct.json_encode()
    return pl.when(value.is_not_null()).then(pl.concat_str(key, encoded.str.slice(len('{"v":')).str.head(-1)))


def hidden_type(name: str) -> pa.DataType:
    """The Arrow type of a hidden column."""
    if name == "_event_time":
        return pa.timestamp("us", "UTC")
    return pa.int8() if name == STATUS else pa.string()


def shaped_schema(shape: RowShape, given: pa.Schema) -> pa.Schema:
    """The schema of shaped batches, from that of the reader's."""
    fields = [pa.field("_op", pa.int8())]
    if shape.key or not shape.keyed:
        fields.append(pa.field("_key", pa.binary()))
    fields.append(pa.field("_cause", pa.string()))
    fields += [pa.field(name, hidden_type(name)) for name in shape.hidden if name not in ("_row", "_error")]
    fields += [pa.field(rider, given.field(name).type) for rider, name in shape.riders]
    fields += [pa.field(name, given.field(name).type) for name in shape.declared]
    fields += [pa.field("_error", pa.string()), pa.field("_row", pa.int64())]
    fields += [pa.field("_order", pa.int64())] if shape.keyed else []
    fields += [pa.field("__version", pa.binary())] if shape.version else []
    if shape.is_feed:
        kinds = {"__does": pa.int8(), "__version": pa.binary(), "__stream": pa.int64(), "__kept": pa.string(), "__old_key": pa.binary()}
        fields += [pa.field(name, kind) for name, kind in kinds.items()]
    return pa.schema(fields if shape.mark is None else [*fields, pa.field("__mark", given.field(shape.mark).type)])
