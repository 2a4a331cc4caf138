"""Records to a workbook of one sheet. The same records give the same bytes: no clock and no user is in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from io import BytesIO
from math import isfinite
from pathlib import Path
from shutil import rmtree
from typing import Any
from weakref import finalize

import orjson
from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import OutputError
from storage.formats.base import Column, Session, WritePlan
from storage.formats.xlsx.options import XlsxWriteOptions
from storage.formats.xlsx.places import COLUMNS, ROWS, column_letters
from storage.process_folders import temporary_folder
from storage.values.decimals import decimal_type, plain_digits
from storage.values.text import DECIMAL_MARK, float_text, plain_numbers, time_text
from storage.values.types import base_type, is_dynamic

CREATED = datetime(1980, 1, 1)
DIGITS = 15
"""Significant digits of a number in a spreadsheet."""
TEXT = 32_767
WIDEST = 60
_FIRST_DAY = date(1900, 3, 1)
"""Spreadsheets count a day before it that there was not."""
_LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, 999_500)
"""Spreadsheets count milliseconds: it would be in the year 10000."""
_DAY, _MOMENT = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"
_MARGIN = 2


class XlsxSession(Session):
    """One workbook. Its rows go to a temporary file; the bytes come at the end."""

    def __init__(self, plan: WritePlan, options: XlsxWriteOptions, sheet: str) -> None:
        import xlsxwriter

        if len(plan.columns) > COLUMNS:
            raise OutputError(f"E623: {len(plan.columns):,} columns, where a sheet has {COLUMNS:,}: exclude some")
        self._plan, self._options = plan, options
        self._bytes = BytesIO()
        folder = temporary_folder("xlsx")
        self._book = xlsxwriter.Workbook(self._bytes, {"constant_memory": True, "tmpdir": str(folder)})
        self._book.set_properties({"created": CREATED})
        self._sheet = self._book.add_worksheet(sheet)
        self._discard = finalize(self, _discard, folder, self._sheet)
        self._styles: dict[str, Any] = {}
        self._widths = [0] * len(plan.columns)
        self._row = 0
        if plan.include_header:
            self._head()

    def _head(self) -> None:
        bold = self._book.add_format({"bold": True})
        for at, column in enumerate(self._plan.columns):
            self._text(0, at, column.name, column.name, bold)
        if self._options.freeze:
            self._sheet.freeze_panes(1, 0)
        self._row = 1

    @override
    def render(self, batch: pa.RecordBatch) -> bytes:
        if self._row + batch.num_rows > ROWS:
            raise OutputError(f"E623: more than {ROWS - 1:,} rows, which a sheet does not have: filter them, or write csv or parquet")
        columns = [(at, column.name, self._writer_of(column), values_of(values, column)) for at, (column, values) in enumerate(zip(self._plan.columns, batch.columns, strict=True))]
        for offset in range(batch.num_rows):
            row = self._row + offset
            for at, name, write, values in columns:
                value = values[offset]
                if value is not None:
                    write(row, at, name, value)
        self._row += batch.num_rows
        return b""

    @override
    def footer(self) -> bytes:
        if self._options.filter and self._plan.include_header and self._plan.columns:
            self._sheet.autofilter(0, 0, max(self._row - 1, 0), len(self._plan.columns) - 1)
        given = self._options.widths
        for at, column in enumerate(self._plan.columns):
            width = given.get(column.name) if isinstance(given, dict) else min(self._widths[at] + _MARGIN, WIDEST) if given == "auto" else None
            if width is not None:
                self._sheet.set_column(at, at, width)
        self._book.close()
        self._discard()
        return self._bytes.getvalue()

    def _writer_of(self, column: Column) -> Callable[[int, int, str, Any], None]:
        """The writer of a column's cells."""
        digits = decimal_type(base_type(column.type))
        return self._cell if digits is None else partial(self._decimal, style=self._scaled(digits.scale))

    def _scaled(self, scale: int) -> Any:
        """The style of numbers with `scale` digits behind the point."""
        return self._style(f"0.{'0' * scale}" if scale else "0")

    def _style(self, pattern: str) -> Any:
        if pattern not in self._styles:
            self._styles[pattern] = self._book.add_format({"num_format": pattern})
        return self._styles[pattern]

    def _cell(self, row: int, at: int, name: str, value: Any) -> None:
        """Write a value by its type."""
        if isinstance(value, str):
            self._text(row, at, name, value)
        elif isinstance(value, bool):
            self._sheet.write_boolean(row, at, value)
            self._wide(at, 5)
        elif isinstance(value, (int, float)):
            self._number(row, at, name, value)
        elif isinstance(value, Decimal):
            self._decimal(row, at, name, value, self._scaled(-int(value.as_tuple().exponent)))
        else:
            self._moment(row, at, name, value)

    def _number(self, row: int, at: int, name: str, value: float) -> None:
        text = _text_of(value)
        if fits(text):
            self._sheet.write_number(row, at, value)
            self._wide(at, len(text))
        else:
            self._text(row, at, name, text)

    def _decimal(self, row: int, at: int, name: str, value: Decimal, style: Any) -> None:
        text = plain_digits(value)
        if fits(text):
            self._sheet.write_number(row, at, float(value), style)
            self._wide(at, len(text))
        else:
            self._text(row, at, name, text)

    def _moment(self, row: int, at: int, name: str, value: date) -> None:
        timed = isinstance(value, datetime)
        day = value.date() if isinstance(value, datetime) else value
        if day < _FIRST_DAY or (isinstance(value, datetime) and value.replace(tzinfo=None) >= _LAST_MOMENT):
            self._text(row, at, name, str(time_text(pa.array([value], pa.timestamp("us")))[0]) if timed else value.isoformat())
            return
        pattern = _MOMENT if timed else _DAY
        self._sheet.write_datetime(row, at, value, self._style(pattern))
        self._wide(at, len(pattern))

    def _text(self, row: int, at: int, name: str, value: str, style: Any = None) -> None:
        if len(value) > TEXT // 2 and len(value.encode("utf-16-le", "surrogatepass")) // 2 > TEXT:
            raise OutputError(f"E623: column '{name}' has a text of more than {TEXT:,} characters (cell {column_letters(at)}{row + 1}), which a cell does not hold: cut it, or exclude the column")
        self._sheet.write_string(row, at, value, style)
        self._wide(at, max(map(len, value.splitlines()), default=0) if self._widths[at] < WIDEST else 0)

    def _wide(self, at: int, width: int) -> None:
        self._widths[at] = max(self._widths[at], width)


def _discard(folder: Path, sheet: Any) -> None:
    """Remove the temporary files of a workbook, finished or not."""
    sheet.row_data_fh.close()
    rmtree(folder, ignore_errors=True)


def _text_of(value: float) -> str:
    return str(value) if isinstance(value, int) else str(float_text(pa.array([value], pa.float64()))[0])


def fits(text: str) -> bool:
    """Whether a spreadsheet holds all digits of a number."""
    digits = text.lstrip("-").replace(".", "").strip("0")
    return not digits or (digits.isdigit() and len(digits) <= DIGITS)


def values_of(values: pa.Array, column: Column) -> Sequence[Any]:
    """The values of a column as Python has them: texts for what has no type in a spreadsheet."""
    if is_dynamic(column.type) and pa.types.is_string(values.type):
        return [None if text is None else plain if text[:1] in "[{" else _scalar(text) for text, plain in zip(values.to_pylist(), plain_numbers(values).to_pylist(), strict=True)]
    if pa.types.is_timestamp(values.type):
        return list(values.cast(pa.timestamp("us")).to_pylist())
    if pa.types.is_floating(values.type):
        return [value if value is None or isfinite(value) else _text_of(value) for value in values.to_pylist()]
    return list(values.to_pylist())


def _scalar(text: str) -> Any:
    """The value of a stored text that is no array and no map; the text itself where it is no JSON."""
    if text.endswith(DECIMAL_MARK) and not text.startswith('"'):
        return Decimal(text.removesuffix(DECIMAL_MARK))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
