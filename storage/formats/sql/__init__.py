"""Tables and answers of databases: their values checked against declared types, and the options of tables that receive rows.

A database is no file. `storage.sql` asks it and writes to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from changelog.lazy_imports import pa
from storage.formats import register_reader, register_writer
from storage.formats.base import Column, Writer
from storage.formats.batches import assembled, cut
from storage.formats.options import Options
from storage.formats.typed.columnar import coerce_array, plain_values, texts, undeclared_fields
from storage.formats.typed.mixed import text_of_mixed
from storage.formats.typed.reading import TypedReader
from storage.formats.values import coerce_decimals_in
from storage.values.coerce import Coerced

Values = Any
"""The values of a column: an Arrow array, or a list of values of several types."""


@register_reader("sql")
class SqlReader(TypedReader):
    """Types the rows of an answer. The rows have no numbers."""

    form: ClassVar[str] = "sql"
    versioned: ClassVar[bool] = True

    def undeclared_among(self, names: Sequence[str], answer: str, holder: str) -> tuple[Column, ...]:
        """The columns of an answer that the schema does not name. `holder`: table or query, as messages say. Raises InputError also where declared ones are missing."""
        return undeclared_fields(pa.schema([pa.field(name, pa.string()) for name in names]), self.plan, answer, holder)

    def typed(self, values: Mapping[str, Values]) -> Iterator[pa.RecordBatch]:
        """Rows of an answer as records, with each cell checked against its declared type."""
        found = {column.name: values[column.name] for column in self.plan.columns if column.name in values}
        done = {column.name: self._coerced(found[column.name], column.type) for column in self.plan.columns if column.name in found}
        rows = pa.arange(1, 1 + next((len(one) for one in values.values()), 0))
        yield from self.documented(cut(assembled(self.plan.columns, done, rows, None, lambda name, where: _texts(found[name], where.to_pylist()))))

    def _coerced(self, values: Values, declared: str) -> Coerced:
        if isinstance(values, list):
            return coerce_decimals_in(plain(values), declared, self.plan.date_formats)
        return coerce_array(values, declared, self.plan.date_formats)


def plain(values: Sequence[Any]) -> list[Any]:
    """Values as JSON has them, bytes as text or hexadecimal digits."""
    return [plain_values(pa.array([value], pa.binary()))[0] if isinstance(value, bytes) else value for value in values]


def _texts(values: Values, places: Sequence[int]) -> list[str | None]:
    if isinstance(values, list):
        return [text_of_mixed(one) for one in plain([values[place] for place in places])]
    return texts(values, places)


class SqlWriteOptions(Options):
    """`options:` of a SQL output: none."""


@register_writer("sql")
class SqlWriter(Writer[SqlWriteOptions]):
    """A table of a database. `storage.sql` writes it."""

    Options: ClassVar[type[Options]] = SqlWriteOptions
    splittable: ClassVar[bool] = False
    versioned: ClassVar[bool] = True
    legible: ClassVar[bool] = False
