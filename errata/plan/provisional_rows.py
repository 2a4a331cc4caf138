"""The rows of a node that has problems, as far as its text names them: what is below it is checked against something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cxl.syntax import ast
from cxl.types.types import ANY, OpenSchema, Schema, Type
from operators.core.provisional import emitted, statements
from operators.core.row_type import META, UNKNOWN, RowType

if TYPE_CHECKING:
    from operators.core.settings import NodeSpec


def likely(spec: NodeSpec, rows: Sequence[RowType]) -> RowType:
    """What a node would give that could not be bound to these rows; any column where that cannot be told."""
    named = _NAMED.get(spec.kind)
    data = named(spec.config, rows) if named is not None else None
    if data is None:
        return UNKNOWN
    riders = {META + one.name: ANY for one in statements(getattr(spec.config, "cxl", "")) if isinstance(one, ast.EmitMeta)}
    base = rows[0] if rows else RowType(data)
    return replace(base.loosened(), data=data, emitted=None, riders={**base.riders, **riders})


def _of_source(config: Any, rows: Sequence[RowType]) -> Schema:
    return Schema((column.name, _type_of(column)) for column in config.schema_)


def _type_of(column: Any) -> Type:
    try:
        return column.cxl_type  # type: ignore[no-any-return]  # a column of a source
    except ValueError:
        return ANY


def _of_transform(config: Any, rows: Sequence[RowType]) -> Schema | None:
    found = emitted(config.cxl)
    return None if found is None else rows[0].data.with_fields(found)


def _of_aggregate(config: Any, rows: Sequence[RowType]) -> Schema | None:
    found = emitted(config.cxl)
    if found is None or not all(name in rows[0].data for name in config.group_by):
        return None
    return Schema({**{name: rows[0].data[name] for name in config.group_by}, **found}.items())


def _of_combine(config: Any, rows: Sequence[RowType]) -> Schema | None:
    found = emitted(config.cxl) if config.match != "collect" else None
    return Schema(found.items()) if found else None


def _of_route(config: Any, rows: Sequence[RowType]) -> Schema:
    return rows[0].data


def _of_merge(config: Any, rows: Sequence[RowType]) -> Schema | None:
    if any(isinstance(row.data, OpenSchema) or set(row.data) != set(rows[0].data) for row in rows):
        return None
    return Schema((name, ANY) for name in rows[0].data)


_NAMED: Mapping[str, Callable[[Any, Sequence[RowType]], Schema | None]] = {
    "source": _of_source, "transform": _of_transform, "aggregate": _of_aggregate, "combine": _of_combine, "route": _of_route, "merge": _of_merge,
}  # fmt: skip
