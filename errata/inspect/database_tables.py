"""`errata verify` of tables of databases: a mirror has exactly the live rows of its output, by count and by hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from changelog.lazy_imports import pa, pc
from cxl.types.types import type_name
from errata.inspect.snapshot import Snapshot
from errata.outputs.database_targets import database_outputs
from errata.outputs.writer import output_columns
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node
from errata.state.node_tables import folded
from errata.state.ordered_rows import BATCH_ROWS
from errata.state.source_files import files_before, undeclared
from operators.output.operator import Output
from operators.source.answers import AnswerHash
from storage import formats
from storage.delta.changelog_table import ChangelogTable
from storage.errors import ConnectionFault
from storage.sql.errors import DatabaseError
from storage.sql.names import TableName
from storage.sql.reading import AnswerColumn, Ask, one_moment
from storage.sql.tables import CONTROL, look
from storage.state.entry import Entry
from storage.values.text import plain_decimals
from storage.values.types import DYNAMIC, arrow_type, is_dynamic

if TYPE_CHECKING:
    from storage.sql.connections import Connection

_WAY_OUT: Final = "drop the table and run again"


def mirrors_compared(pipeline: LoadedPipeline, reading: Snapshot, head: Entry) -> Iterator[tuple[str, str]]:
    """Each output whose table is a mirror with what is wrong with it; an empty text where nothing is. Outputs that were edited since the last epoch are left out."""
    for node in database_outputs(pipeline.plan):
        known = head.plan.get(node.name)
        if known is None or known["fingerprint"] != node.fingerprint() or f"changelog/{node.name}" not in head.tables:
            continue
        if cast("Output", node.operator).config.mode != "op_rows":
            yield node.name, _fault(pipeline, reading, head, node)


def _fault(pipeline: LoadedPipeline, reading: Snapshot, head: Entry, node: Node) -> str:
    config = cast("Output", node.operator).config
    connection, table = pipeline.plan.settings.connections[str(config.connection)], TableName.parse(str(config.table))
    try:
        standing = look(connection, table, pipeline.name, node.name)
        if standing.kind is None:
            return f"the table {table.shown} is missing"
        if standing.control is None:
            return f"the table {table.shown} is not this output's: {CONTROL} has no row of it"
        if standing.control.epoch != head.epoch:
            return f"the table {table.shown} holds epoch {standing.control.epoch}, the ledger epoch {head.epoch}: run again"
        extra = undeclared(pipeline.plan, node, files_before(head))
        columns = [formats.Column(name, type_name(type_.base)) for name, type_ in output_columns(cast("Output", node.operator), extra)[0]]
        return _difference(_stored(connection, table, columns), _live(reading, head, node, extra, columns), table.shown)
    except (DatabaseError, ConnectionFault, formats.FormatError) as error:
        return f"the table {table.shown} cannot be read: {error}"


def _difference(stored: AnswerHash, live: AnswerHash, table: str) -> str:
    if stored.rows != live.rows:
        return f"the table {table} has {stored.rows} rows, the output {live.rows}: {_WAY_OUT}"
    return "" if stored.text == live.text else f"the table {table} has a row that differs from the output's: {_WAY_OUT}"


def _compared(type_: str) -> str:
    """The type by which values are compared: JSON by its text, numbers of several types as floats."""
    return "float" if type_ == "numeric" else "string" if type_ in DYNAMIC else type_


def _stored(connection: Connection, table: TableName, columns: Sequence[formats.Column]) -> AnswerHash:
    """The rows of the table."""
    ask, hashed = Ask(table), AnswerHash()
    read = tuple(formats.Column(one.name, _compared(one.type)) for one in columns)
    reader: Any = formats.reader("sql", {}, formats.ReadPlan(read, on_unmapped="drop"))
    names = [column.name for column in columns]
    with one_moment(connection) as reading:
        found = {one.name: one for one in reading.described(ask)}
        wanted: list[AnswerColumn] = [found[name] for name in names if name in found]
        for values in reading.batches(ask, wanted):
            for batch in reader.typed(values):
                hashed.add(_by_value(batch.select([*names, formats.ERROR])))
    return hashed


def _live(reading: Snapshot, head: Entry, node: Node, extra: Sequence[tuple[str, str]], columns: Sequence[formats.Column]) -> AnswerHash:
    """The live rows of the output in the columns of the table."""
    path, shape, hashed = f"changelog/{node.name}", output_columns(cast("Output", node.operator), extra)[1], AnswerHash()
    rows = folded(reading.engine, ChangelogTable(f"{reading.state.root}/{path}", reading.nodes[node.name].columns(), pinned=head.tables[path]), head.epoch)
    names = [column.name for column in columns]
    for batch in rows.as_table().to_batches(BATCH_ROWS):
        shaped = shape(batch)
        written = [plain_decimals(values) if is_dynamic(one.type) else values for values, one in zip(shaped.columns, columns, strict=True)]
        arrays = [values.cast(arrow_type(_compared(one.type))) for values, one in zip(written, columns, strict=True)]
        hashed.add(_by_value(pa.RecordBatch.from_arrays([*arrays, pa.nulls(batch.num_rows, pa.string())], names=[*names, formats.ERROR])))
    return hashed


def _by_value(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows without the sign of zero, which SQLite does not keep."""
    arrays = [pc.add(values, 0.0) if pa.types.is_floating(values.type) else values for values in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
