"""Records to CSV text, a batch at a time: columns become text, Polars writes the lines."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from changelog.lazy_imports import pa, pc, pl
from storage.formats import limits
from storage.formats.base import Column, WritePlan
from storage.formats.csv.options import CsvWriteOptions
from storage.formats.csv.scan import Dialect, as_bytes, records
from storage.formats.values import text_of
from storage.values.types import is_dynamic

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$"


def header_line(plan: WritePlan, options: CsvWriteOptions) -> bytes:
    """The names of the columns as one line."""
    return _lines([pa.array([column.name]) for column in plan.columns], options)


def render(batch: pa.RecordBatch, plan: WritePlan, options: CsvWriteOptions) -> bytes:
    """A line a record."""
    if not batch.num_rows:
        return b""
    if batch.num_columns > limits.GATHERED and 2 * sum(values.null_count for values in batch.columns) > batch.num_rows * batch.num_columns:
        return _sparse_lines(batch, plan, options)
    return _lines([_text(batch.column(index), column, options) for index, column in enumerate(plan.columns)], options)


def _text(values: pa.Array, column: Column, options: CsvWriteOptions) -> pa.Array:
    text = text_of(values, column, "csv")
    if not options.formula_guard or not pa.types.is_string(values.type):
        return text
    return pc.if_else(pc.starts_with(values, '"'), _guarded(text), text) if is_dynamic(column.type) else _guarded(text)  # a negative number stays one


def _sparse_lines(batch: pa.RecordBatch, plan: WritePlan, options: CsvWriteOptions) -> bytes:
    """The lines of a batch whose cells are mostly empty. Only the filled cells cost time: Polars would work on each column."""
    lines: list[list[str]] = [[] for _ in range(batch.num_rows)]
    written, width = [0] * batch.num_rows, len(plan.columns)
    for index, column in enumerate(plan.columns):
        values = batch.column(index)
        if values.null_count == len(values):
            continue
        there = values.is_valid()
        places = pc.indices_nonzero(there).to_pylist()
        for place, cell in zip(places, _text(values.filter(there), column, options).to_pylist(), strict=True):
            if cell is not None:
                lines[place].append(options.delimiter * (index - written[place]) + _quoted(cell, options.delimiter))
                written[place] = index
    return "".join(f"{''.join(line)}{options.delimiter * (width - 1 - last)}\n" for line, last in zip(lines, written, strict=True)).encode()


def _quoted(cell: str, delimiter: str) -> str:
    needs = any(sign in cell for sign in (delimiter, '"', "\n", "\r"))
    return '"' + cell.replace('"', '""') + '"' if needs else cell


def has_formulas(batch: pa.RecordBatch, plan: WritePlan) -> bool:
    """Whether some text of a batch begins like a formula and is no number. It looks only at first bytes, a third of the time of writing the cells."""
    columns = zip(batch.columns, plan.columns, strict=False)  # the group key of a split may follow
    texts = (values for values, column in columns if pa.types.is_string(values.type) and not is_dynamic(column.type))
    return any(_some_formula(values) for values in texts if values.null_count < len(values))


def _some_formula(text: pa.Array) -> bool:
    begins = pc.is_in(pc.binary_slice(text.cast(pa.binary()), 0, 1), pa.array([b"=", b"+", b"-", b"@"]))
    if not begins.true_count:
        return False
    return bool(pc.any(pc.invert(pc.match_substring_regex(text.filter(begins), _NUMBER))).as_py())


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
