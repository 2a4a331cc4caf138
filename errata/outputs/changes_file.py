"""The changes of an output with ODF's own columns first, for tables and for Parquet and Avro files of op rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from changelog.columns import OP
from changelog.forms.frames import flat_stream
from changelog.lazy_imports import pa
from cxl.types.types import Kind
from errata.outputs.writer import output_columns, table_type
from errata.plan.plan import Node
from errata.state.ordered_rows import OutputRows
from errata.state.run_state import RunState
from errata.state.stream_forms import beside
from errata.state.undeclared_columns import expanded
from operators.output.operator import Output
from storage.formats.avro.write import AvroSession, check_names
from storage.formats.typed.writing import Drained
from storage.values.text import plain_decimals

_GROUP_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class OdfEvents:
    """Events in order: `offset`, `op` (a code; the letters of forms that have their own), `system_time`, `event_time`, then the data. They are read once.

    `count`: the op rows that they are made of; `dynamic`: the columns of the output whose values are JSON text.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    count: int
    dynamic: frozenset[str]

    def parquet(self) -> Iterator[bytes]:
        """The content of a Parquet file, a row group at a time."""
        import pyarrow.parquet as pq

        sink, held = Drained(), list[pa.RecordBatch]()
        with pq.ParquetWriter(sink, self.schema) as writer:
            for batch in self.batches:
                held.append(batch)
                if sum(one.num_rows for one in held) >= _GROUP_ROWS:
                    writer.write_table(pa.Table.from_batches(held))
                    held.clear()
                    yield sink.take()
            writer.write_table(pa.Table.from_batches(held, self.schema))
        yield sink.take()

    def avro(self, name: str) -> Iterator[bytes]:
        """The content of an Avro file, whose record has a name. Raises OptionError for names of columns that Avro does not have."""
        check_names(self.schema.names, ())
        fields = [pa.field(one.name, pa.json_()) if _column_of(one.name) in self.dynamic and pa.types.is_string(one.type) else one for one in self.schema]
        session = AvroSession(pa.schema(fields), name, "deflate")
        return _written(session, self.batches)


def _written(session: AvroSession, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """The bytes of a file."""
    for batch in batches:
        yield session.render(batch)
    yield session.footer()


def odf_events(run: RunState, node: Node, form: str, made: tuple[int, datetime], undeclared: Sequence[tuple[str, str]]) -> OdfEvents:
    """The changes of an epoch, made at a moment, which is the event time too: an output's rows have none of their own.

    `undeclared`: names and types of the undeclared fields that the output writes, in order. Where there are many events, one batch at a time is on the driver.
    """
    epoch, moment = made
    output = cast("Output", node.operator)
    columns, shape = output_columns(output, undeclared)
    rows = expanded(run.op_rows(node, epoch), shape)
    events = flat_stream(rows, form, hidden=[name for name in node.operator.output.hidden_columns() if name in rows.columns])
    count = run.op_count(node, epoch)
    few = count <= run.engine.limits.driver_rows
    table = run.engine.to_arrow(events, None if few else 0)
    found = OutputRows(table, None) if few else OutputRows(None, events)
    schema = _declared(table.schema, {name: table_type(output, name, type_) for name, type_ in columns if type_.kind is Kind.DECIMAL})
    dynamic = frozenset(name for name, type_ in columns if type_.is_dynamic)
    typed = (_plain(batch, dynamic).cast(schema) for batch in found.batches(run.engine, lambda batch: batch))
    [empty] = _numbered(iter([_none_of(schema)]), 0, moment)
    return OdfEvents(empty.schema, _numbered(typed, run.offset(node, epoch), moment), count, dynamic)


def _column_of(name: str) -> str:
    """The column whose value, or value before, an event has under a name."""
    return name.removeprefix("old_")


def _declared(schema: pa.Schema, decimals: Mapping[str, pa.DataType]) -> pa.Schema:
    """The schema of events with the declared precision of decimals."""
    return pa.schema([one.with_type(decimals.get(_column_of(one.name), one.type)) if pa.types.is_decimal(one.type) else one for one in schema])


def _plain(batch: pa.RecordBatch, dynamic: Collection[str]) -> pa.RecordBatch:
    """Events with the digits of decimals in JSON text."""
    plain = [plain_decimals(values) if _column_of(name) in dynamic and pa.types.is_string(values.type) else values for name, values in zip(batch.schema.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(plain, batch.schema.names)


def _none_of(schema: pa.Schema) -> pa.RecordBatch:

    return pa.RecordBatch.from_pylist([], schema)


def _numbered(batches: Iterator[pa.RecordBatch], start: int, moment: datetime) -> Iterator[pa.RecordBatch]:
    """Events in order with their offsets from `start` on."""
    for batch in batches:
        end = start + batch.num_rows
        stamp = pa.repeat(pa.scalar(moment, pa.timestamp("ms", "UTC")), batch.num_rows)
        system = {"offset": pa.arange(start, end), "op": batch.column(OP), "system_time": stamp, "event_time": stamp}
        yield pa.RecordBatch.from_pydict(beside(system, {name: batch.column(name) for name in batch.schema.names if name != OP}))
        start = end
