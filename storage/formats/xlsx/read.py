"""Cells of a sheet to records.

The library reads a sheet as columns of one type each. It is asked for texts, for numbers and for what is a number or a boolean; together they tell the type
of each cell. Errors and dates are in what it says of cells that did not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from changelog.lazy_imports import pa, pc
from storage.files.errors import Buffer, InputError
from storage.formats.base import ReadPlan
from storage.formats.batches import assembled, cut
from storage.formats.missing_columns import missing_columns
from storage.formats.typed.mixed import Unreadable, coerce_mixed, text_of_mixed
from storage.formats.xlsx.extent import MOST_CELLS
from storage.formats.xlsx.options import XlsxReadOptions
from storage.formats.xlsx.package import Package, damaged
from storage.formats.xlsx.places import COLUMNS, ROWS, Area, place

if TYPE_CHECKING:
    import fastexcel

_ERRORS = {
    "Div0": "#DIV/0!", "NA": "#N/A", "Name": "#NAME?", "Null": "#NULL!", "Num": "#NUM!", "Ref": "#REF!", "Value": "#VALUE!", "GettingData": "#GETTING_DATA",
}  # fmt: skip
_ERROR = re.compile(r"got 'Error\((\w+)\)")
_SERIAL = re.compile(r"got 'DateTime\(ExcelDateTime \{ value: ([-+.0-9eE]+|NaN|-?inf), datetime_type: (\w+), is_1904: (\w+) \}\)")
_ISO = re.compile(r"got '(DateTimeIso|DurationIso)\(\"([^\"]*)\"\)")
_ELAPSED = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d*)?)S)?)?")
_MAY_BE_MOMENT = r"^[+-]?\d{4,}-\d\d-\d\d|^-?P"
_NO_DAY = "1900-02-29"
"""Serial number 60 of the system of 1900: a day that there was not."""
_MILLISECONDS = 86_400_000


@dataclass(frozen=True, slots=True)
class Heading:
    """A column of the region that is read: its name and its place."""

    name: str
    column: int


@dataclass(frozen=True, slots=True)
class Region:
    """The part of a sheet that is read.

    Args:
        sheet: its name
        headings: the columns that have a name
        rows: the rows of records, from 0
        cells: the values of each column of the sheet in these rows, by the column's number
        header: the row of the header, from 0; None where there is none
    """

    sheet: str
    headings: tuple[Heading, ...]
    rows: Sequence[int]
    cells: Mapping[int, Sequence[Any]]
    header: int | None

    def check(self, plan: ReadPlan, name: str) -> None:
        """Raise InputError where two columns have one name (E224), or declared ones are missing (E238)."""
        first: dict[str, int] = {}
        for one in self.headings:
            before = first.setdefault(one.name, one.column)
            if before != one.column and (plan.on_unmapped != "drop" or one.name in plan.names):
                places = " and ".join(place(self.sheet, self.header or 0, column) for column in (before, one.column))
                raise InputError(name, f"E224: {places} have one name, '{one.name}': rename all but one of them in the file")
        names = [one.name for one in self.headings]
        if lacking := plan.lacking(names):
            at = f"{name}: {place(self.sheet, self.header or 0, self.headings[0].column if self.headings else 0)}"
            raise missing_columns(plan, lacking, names, at, numbered=self.header is None)


def opened(data: Buffer, name: str) -> tuple[Package, fastexcel.ExcelReader]:
    """The workbook, checked. Raises InputError (E621)."""
    package = Package.of(data, name)
    return package, _book(package, data)


def _book(package: Package, data: Buffer) -> fastexcel.ExcelReader:
    """The cells of a package, whose size is checked. Raises InputError (E621)."""
    import fastexcel

    package.check_size()
    try:
        return fastexcel.read_excel(bytes(data))
    except (fastexcel.FastExcelError, ValueError) as wrong:
        raise damaged(package.name, _first_line(wrong)) from None


def region_of(options: XlsxReadOptions, data: Buffer, name: str) -> Region:
    """The region of a workbook that a source reads. Raises InputError."""
    package, book = opened(data, name)
    title, area = chosen(options, package, book, name)
    if options.merged == "fill" and not package.has_sheets:
        raise damaged(name, "merged: fill needs a workbook of the forms .xlsx or .xlsm; save it as one")
    columns, height = _cells(book, title, name)
    if options.merged == "fill":
        height = _filled(columns, package.merged(title), height, name)
    top, bottom = area.top, min(area.bottom + 1, height)
    header = top if options.has_header else None
    start = top if header is None else top + 1
    present = {column: values for column, values in columns.items() if area.left <= column <= area.right}
    rows = [row for row in range(start, bottom) if any(values[row] is not None for values in present.values())]
    cells = {column: [values[row] for row in rows] for column, values in present.items()}
    named = _named(present, cells, area.left, header if header is None or header < height else -1)
    return Region(title, tuple(named), rows, cells, header)


def _named(columns: Mapping[int, Sequence[Any]], cells: Mapping[int, Sequence[Any]], left: int, header: int | None) -> Iterator[Heading]:
    """The columns with a name: that of the header, else one by their number where they have values."""
    for column in sorted(columns):
        title = (text_of_mixed(columns[column][header]) or "").strip() if header is not None and header >= 0 else ""
        if title or any(value is not None for value in cells[column]) or header is None:
            yield Heading(title or f"col_{column - left}", column)


def chosen(options: XlsxReadOptions, package: Package, book: fastexcel.ExcelReader, name: str) -> tuple[str, Area]:
    """The sheet and the cells that options name. Raises InputError (E620)."""
    title = None if options.sheet is None else _titled(options.sheet, book.sheet_names, name)
    area = None if options.range is None else Area.parse(options.range)
    if options.range is not None and area is None:
        tables = list(package.tables())
        table = next((one for one in tables if one.name.casefold() == options.range.casefold() and title in (None, one.sheet)), None)
        if table is None:
            known = ", ".join(one.name for one in tables) or "none"
            raise InputError(name, f"E620: no table '{options.range}' and no range of that form, such as B2:F100; the workbook's tables: {known}")
        return table.sheet, table.area
    title = title or _first_visible(package, book, name)
    return title, area or Area((options.header_row or 1) - 1, 0, ROWS - 1, COLUMNS - 1)


def _titled(sheet: str | int, titles: Sequence[str], name: str) -> str:
    """The name of the sheet that an option means."""
    if isinstance(sheet, str):
        found = next((title for title in titles if title.casefold() == sheet.casefold()), None)
    else:
        found = titles[sheet - 1] if sheet <= len(titles) else None
    if found is None:
        raise InputError(name, f"E620: no sheet {repr(sheet) if isinstance(sheet, str) else f'number {sheet}'}; the workbook has {', '.join(map(repr, titles))}")
    return found


def visible_sheets(data: Buffer, name: str) -> list[str]:
    """The names of the sheets of a workbook that are not hidden. Raises InputError."""
    return list(_visible(*opened(data, name), name))


def _visible(package: Package, book: fastexcel.ExcelReader, name: str) -> Iterator[str]:
    hidden = package.hidden
    for title in book.sheet_names:
        if title not in hidden if package.has_sheets else _loaded(book, title, name, "string", n_rows=1).visible == "visible":
            yield title


def _first_visible(package: Package, book: fastexcel.ExcelReader, name: str) -> str:
    first = next(_visible(package, book, name), None)
    if first is not None:
        return first
    raise InputError(name, f"E620: no sheet is visible; name one of {', '.join(map(repr, book.sheet_names)) or 'none'} as options.sheet")


def _loaded(book: fastexcel.ExcelReader, title: str, name: str, dtype: Any, **how: Any) -> fastexcel.ExcelSheet:
    import fastexcel

    try:
        sheet: fastexcel.ExcelSheet = book.load_sheet(title, header_row=None, skip_rows=0, dtypes=dtype, **how)
    except (fastexcel.FastExcelError, ValueError) as wrong:
        raise damaged(name, f"sheet '{title}': {_first_line(wrong)}") from None
    return sheet


def _first_line(wrong: Exception) -> str:
    return (str(wrong).splitlines() or [type(wrong).__name__])[0]


def _cells(book: fastexcel.ExcelReader, title: str, name: str) -> tuple[dict[int, list[Any]], int]:
    """The values of a sheet by column from 0, and how many rows there are from the first row of the sheet on. Raises InputError."""
    texts = _loaded(book, title, name, "string")
    if not texts.width or not texts.height:
        return {}, 0
    if texts.width * texts.height > MOST_CELLS:
        raise damaged(name, f"sheet '{title}' has more than {MOST_CELLS:,} cells: split it")
    places = [one.absolute_index for one in texts.selected_columns]
    text, errors = texts.to_arrow_with_errors()
    number, scalar = (_loaded(book, title, name, dtype).to_arrow() for dtype in ("float", "boolean"))
    columns = {column: _typed(text.column(at), number.column(at), scalar.column(at)) for at, column in enumerate(places)}
    for error in errors.errors if errors else ():
        row, at = error.position
        columns[places[at]][row] = _without_text(error.detail)
    dated = [at for at in range(len(places)) if pc.any(pc.and_(pc.match_substring_regex(text.column(at), _MAY_BE_MOMENT), pc.is_null(scalar.column(at)))).as_py()]
    for at in dated:
        _set_moments(columns[places[at]], _loaded(book, title, name, "float", use_columns=[places[at]]))
    return columns, text.num_rows


def _without_text(detail: str) -> Any:
    """The value of a cell that has no text: an error, or an elapsed time in ISO form."""
    if iso := _ISO.search(detail):
        return _days(iso[2])
    found = _ERROR.search(detail)
    return Unreadable(_ERRORS.get(found[1], f"#{found[1].upper()}!") if found else detail)


def _typed(text: pa.Array, number: pa.Array, scalar: pa.Array) -> list[Any]:
    """The values of a column: a cell that is a scalar is a boolean or a number, others are texts."""
    if scalar.null_count == len(scalar):
        return list(text.to_pylist())
    cells = zip(text.to_pylist(), number.to_pylist(), scalar.is_valid().to_pylist(), strict=True)
    return [(written == "true" if written in ("true", "false") else number_of(value)) if valid else written for written, value, valid in cells]


def number_of(value: float | None) -> float | int | None:
    """A number as a whole number where it is one, and where its shortest digits are its exact ones."""
    return int(value) if value is not None and value.is_integer() and abs(value) < 2**53 else value


def _set_moments(values: list[Any], column: fastexcel.ExcelSheet) -> None:
    """Put date_times where cells are dates, and numbers where they are elapsed times."""
    _, errors = column.to_arrow_with_errors()
    for error in errors.errors if errors else ():
        row = error.position[0]
        if serial := _SERIAL.search(error.detail):
            values[row] = moment_of(float(serial[1]), since_1904=serial[3] == "true") if serial[2] == "DateTime" else number_of(float(serial[1]))
        elif iso := _ISO.search(error.detail):
            values[row] = _iso_moment(iso[2]) if iso[1] == "DateTimeIso" else _days(iso[2])


def moment_of(serial: float, *, since_1904: bool) -> datetime | Unreadable:
    """The date_time of a serial number, to the millisecond. Unreadable where there is none."""
    if not 0 <= serial < 1e7:
        return Unreadable(text_of_mixed(number_of(serial)))
    if since_1904:
        start = datetime(1904, 1, 1)
    elif int(serial) == 60:
        return Unreadable(_NO_DAY)
    else:
        start = datetime(1899, 12, 31) if serial < 60 else datetime(1899, 12, 30)
    try:
        return start + timedelta(milliseconds=round(serial * _MILLISECONDS))
    except OverflowError:
        return Unreadable(text_of_mixed(number_of(serial)))


def _iso_moment(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _days(text: str) -> float | int | str | None:
    """An elapsed time as a number of days."""
    found = _ELAPSED.fullmatch(text)
    if found is None:
        return text
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups()[1:])
    days += (hours * 3600 + minutes * 60 + seconds) / 86400
    return number_of(-days if found[1] else days)


def _filled(columns: dict[int, list[Any]], areas: Iterable[Area], height: int, name: str) -> int:
    """Give merged cells the value of their upper left one. Returns how many rows there are then. Raises InputError (E621)."""
    found = [(area, columns[area.left][area.top]) for area in areas if area.left in columns and area.top < height and columns[area.left][area.top] is not None]
    rows = max([height, *(area.bottom + 1 for area, _ in found)])
    wide = columns.keys() | {column for area, _ in found for column in range(area.left, area.right + 1)}
    if rows * len(wide) > MOST_CELLS:
        raise damaged(name, f"merged cells make a rectangle of more than {MOST_CELLS:,}: read them with merged: first, or part them")
    for column in wide:
        values = columns.setdefault(column, [])
        values.extend([None] * (rows - len(values)))
    for area, value in found:
        for column in range(area.left, area.right + 1):
            columns[column][area.top : area.bottom + 1] = [value] * (area.bottom + 1 - area.top)
    return rows


def read_records(options: XlsxReadOptions, plan: ReadPlan, data: Buffer, name: str) -> Iterator[pa.RecordBatch]:
    """The records of a workbook. Raises InputError."""
    region = region_of(options, data, name)
    region.check(plan, name)
    places = {one.name: one.column for one in region.headings}
    found = {column.name: region.cells[places[column.name]] for column in plan.columns if column.name in places}
    done = {column.name: coerce_mixed(found[column.name], column.type, plan.date_formats) for column in plan.columns if column.name in found}
    rows = pa.arange(1, 1 + len(region.rows))
    yield from cut(
        assembled(
            plan.columns, done, rows, None,
            lambda column, where: [text_of_mixed(found[column][at]) for at in where.to_pylist()],
            place=lambda column, at: place(region.sheet, region.rows[at], places[column]),
        )
    )  # fmt: skip


def formulas_without_value(options: XlsxReadOptions, data: Buffer, name: str) -> int:
    """How many formulas of what is read nobody has computed. Raises InputError."""
    package = Package.of(data, name)
    if not package.has_formulas:
        return 0
    title, area = chosen(options, package, _book(package, data), name)
    return sum(area.holds(row, column) for row, column in package.formulas_without_value(title))
