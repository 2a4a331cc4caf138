"""Records to CSV text, a batch at a time, by Polars' writer over columns that are text already."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage.formats.csv.scan import Dialect, as_bytes, records
from storage.formats.texts import text_of

if TYPE_CHECKING:
    from storage.formats.contract import WritePlan
    from storage.formats.csv import CsvWriteOptions

_FORMULA = r"^[=+\-@\t\r]"


def header_line(plan: WritePlan, options: CsvWriteOptions) -> bytes:
    """The names of the columns as one line."""
    return _lines([pa.array([column.name]) for column in plan.columns], options)


def render(batch: pa.RecordBatch, plan: WritePlan, options: CsvWriteOptions) -> bytes:
    """A line a record."""
    if not batch.num_rows:
        return b""
    columns = []
    for index, column in enumerate(plan.columns):
        text = text_of(batch.column(index), column, "csv")
        if options.formula_guard and pa.types.is_string(batch.column(index).type):
            text = _guarded(text)
        columns.append(text)
    return _lines(columns, options)


def lines_of(text: bytes, options: CsvWriteOptions) -> list[bytes]:
    """The records of written text, each with its line end."""
    found = records(as_bytes(text), Dialect(ord(options.delimiter), ord('"')))
    ends = (found.ends + 1).tolist()
    return [text[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []


def _guarded(text: pa.Array) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(text, _FORMULA), pc.binary_join_element_wise("'", text, ""), text)


def _lines(columns: Sequence[pa.Array], options: CsvWriteOptions) -> bytes:
    return lines(pl.DataFrame([pl.Series(str(index), pl.from_arrow(column)) for index, column in enumerate(columns)]), options.delimiter)


def lines(cells: pl.DataFrame, delimiter: str = ",") -> bytes:
    """Rows of text as lines; null is an empty cell."""
    # Polars quotes an empty text and leaves a null bare; a line that would be empty needs the quotes.
    empty = pl.all().fill_null("") if cells.width == 1 else pl.all().replace("", None)
    out = BytesIO()
    cells.select(empty).write_csv(out, include_header=False, separator=delimiter, quote_style="necessary", line_terminator="\n")
    return out.getvalue()
