"""Rows that a program hands to sources: DataFrames of pandas, Polars, Arrow and Spark, and lists of maps, as files that a run reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import pa, pq
from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.plan.plan import Node, Plan
from operators.core.settings import GivenRows
from operators.source.node import SourceNode
from storage.values.table_digest import table_digest

if TYPE_CHECKING:
    from storage.state.entry import Entry

GROUP_ROWS = 100_000
"""Rows of a row group of the files."""
DIGITS = 16
"""Signs of the digest in the name of a delivery."""
_DELIVERY = re.compile(r"-(\d{6})-([0-9a-f]{16})>$")


def given_rows(plan: Plan, inputs: Mapping[str, Any], head: Entry | None, folder: Path) -> dict[str, GivenRows]:
    """Write the rows for each source to a file, and name the deliveries.

    Under `merge: snapshot` rows have one name, as they are the truth as of now. Under the other strategies each is a delivery with a number;
    equal rows are the delivery that came before.

    Args:
        plan: The pipeline.
        inputs: The rows by source.
        head: The ledger's last entry.
        folder: Where the files go.

    Raises:
        Usage: A name is no source, a source cannot be given rows, or its rows are no table.
    """
    return {name: _given(_source(plan, name), rows, head, folder) for name, rows in inputs.items()}


def _source(plan: Plan, name: str) -> Node:
    """A source that can be given rows. Raises Usage."""
    known = [node.name for node in plan.of_kind("source")]
    if name not in known:
        raise Usage(f"the pipeline has no source '{name}'", help=did_you_mean(name, known) or f"its sources: {', '.join(known)}")
    node = plan[name]
    if cast("SourceNode", node.operator).config.feed is not None:
        raise Usage(f"source '{name}' reads the messages of a change feed, which are no rows", help="give it files, or declare merge: changelog without options.cdc")
    return node


def _given(node: Node, rows: Any, head: Entry | None, folder: Path) -> GivenRows:
    config = cast("SourceNode", node.operator).config
    names = {column.name: column.source_name for column in config.schema_ if column.source_name}
    table = as_table(rows, node.name)
    table = table.rename_columns([names[name] if name in names and names[name] not in table.column_names else name for name in table.column_names])
    file = folder / f"{node.name}.parquet"
    try:
        pq.write_table(table, file, row_group_size=GROUP_ROWS)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise Usage(f"the rows for source '{node.name}' cannot be written: {error}") from error
    digest = table_digest(table)
    if config.merge.strategy == "snapshot" and config.merge.scope is None:
        return GivenRows(file, f"<source:{node.name}>", digest)
    return GivenRows(file, _delivery(node.name, digest[:DIGITS], head), digest)


def _delivery(name: str, digest: str, head: Entry | None) -> str:
    """The name of a delivery: that of an equal one, or the next number."""
    known = [str(one["path"]) for one in (head.sources.get(name, {}).get("files", ()) if head else ())]
    found = [(path, match) for path in known if (match := _DELIVERY.search(path))]
    same = next((path for path, match in found if match[2] == digest), None)
    return same or f"<source:{name}-{max((int(match[1]) for _, match in found), default=0) + 1:06d}-{digest}>"


def as_table(rows: Any, source: str) -> pa.Table:
    """Rows as an Arrow table: a frame of pandas, Polars, Arrow, Spark or DuckDB, a list of maps, or a map of columns. Raises Usage for anything else."""
    try:
        table = _table(rows)
    except (pa.ArrowException, ValueError, TypeError, KeyError, AttributeError) as error:
        raise Usage(f"the rows for source '{source}' are no table: {error}") from error
    doubled = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if doubled:
        raise Usage(f"the rows for source '{source}' have two columns '{doubled[0]}'")
    plain = [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in table.schema]
    return table.cast(pa.schema(plain)).combine_chunks()


def _table(rows: Any) -> pa.Table:
    kind = type(rows).__module__.partition(".")[0]
    if isinstance(rows, pa.Table):
        return rows
    if kind == "pandas":
        return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)
    if kind == "polars":
        return (rows.collect() if hasattr(rows, "collect") else rows).to_arrow()
    if kind == "pyspark":
        return rows.toArrow()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if isinstance(rows, Mapping):
        return pa.table({str(name): list(values) for name, values in rows.items()})
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes):
        return _of_maps(list(rows))
    raise TypeError(f"{type(rows).__name__} is no DataFrame, table or list of maps")


def _of_maps(rows: list[Any]) -> pa.Table:
    """A table of maps, with all names that occur in any of them."""
    if not all(isinstance(row, Mapping) for row in rows):
        raise TypeError("a row is a map of columns")
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
