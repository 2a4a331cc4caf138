"""The undeclared fields of an output's rows as columns: what a table of its rows has, its file has too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from changelog.columns import RESERVED
from changelog.frames import mapped, with_schema
from changelog.lazy_imports import pa
from storage.formats.limits import rows_at_once
from storage.values.json_text import canonical

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def expanded(rows: DataFrame, shape: Shape) -> DataFrame:
    """Rows with the columns of a shape behind their others, the undeclared ones as texts out of `_widened`. Those with a name of the system's are left out."""
    from pyspark.sql.types import StringType, StructField, StructType

    if not shape.extra:
        return rows
    own = {field.name: field for field in rows.schema.fields}
    fields = {name: type_ for name, type_ in shape.extra if name not in (*own, *RESERVED)}
    data = [name for name in shape.names if name in fields or name not in shape.shown]
    system = [name for name in own if name not in data and name != "_widened"]
    schema = StructType([own.get(name, StructField(name, StringType())) for name in (*system, *data)])
    whole = Shape(tuple(schema.names), tuple(fields.items()))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(whole, batches)

    return with_schema(mapped(rows, work, schema), schema)


@dataclass(frozen=True, slots=True)
class Shape:
    """Takes a batch of an output's live rows to the written columns: `extra` fields (name, type) come out of `_widened`. Picklable."""

    names: tuple[str, ...]
    extra: tuple[tuple[str, str], ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the extra fields."""
        return tuple(name for name, _ in self.extra)

    def with_groups(self, group: str | None) -> Shape:
        """The written columns, and behind them the groups of a split where no written column holds them."""
        return replace(self, names=(*self.names, "_split")) if group == "_split" else self

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns that are wanted, in their order."""
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        found |= dict(zip(self.shown, self._expanded(batch), strict=True))
        return pa.RecordBatch.from_arrays([found[name] for name in self.names], list(self.names))

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows in batches that are not too large with all columns that are wanted."""
        rows = rows_at_once(len(self.names), max(batch.num_rows, 1))
        yield from (batch.slice(at, rows) for at in range(0, max(batch.num_rows, 1), rows))

    def _expanded(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The extra fields as columns. The work is that of the fields that the rows have, not of all that they could have."""
        import orjson

        if not self.extra:
            return []
        types = dict(self.extra)
        found: dict[str, tuple[list[int], list[str | None]]] = {}
        for row, text in enumerate(batch.column("_widened").to_pylist()):
            for name, value in orjson.loads(text).items() if text else ():
                if name in types:
                    rows, cells = found.setdefault(name, ([], []))
                    rows.append(row)
                    cells.append(_scalar(value, types[name]))
        none = pa.nulls(batch.num_rows, pa.string())
        return [_column(*found[name], batch.num_rows) if name in found else none for name, _ in self.extra]


def _column(rows: Sequence[int], cells: Sequence[str | None], count: int) -> pa.Array:
    """A column of `count` rows with the cells in the given rows and null in the others."""
    if len(rows) == count:
        return pa.array(cells, pa.string())
    column: list[str | None] = [None] * count
    for row, cell in zip(rows, cells, strict=True):
        column[row] = cell
    return pa.array(column, pa.string())


def _scalar(value: Any, type_: str) -> str | None:
    """The cell of an undeclared field that a record has: JSON text where it may be of any type."""
    return value if type_ == "string" and (value is None or isinstance(value, str)) else canonical(value)


def agreed(undeclared: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each undeclared field once, of type any where files of several formats have it in different types."""
    types: dict[str, str] = {}
    for name, type_ in undeclared:
        types[name] = type_ if types.get(name, type_) == type_ else "any"
    return list(types.items())
