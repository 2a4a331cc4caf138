"""Workbooks of spreadsheets: `.xlsx`, `.xlsm`, `.xlsb`, `.xls` and `.ods` are read by what they are, `.xlsx` is written.

A record is a row of one sheet. Each cell has a type of its own: number, text, boolean, date, error. The declared type of a column decides which fit. Input
errors: a sheet, a range or a table that is not there (E620), a file that is encrypted or damaged (E621).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from typing_extensions import override

from changelog.lazy_imports import pa
from storage.files.errors import Buffer
from storage.formats import register_reader, register_writer
from storage.formats.base import Column, Range, Reader, Session, Writer, section_notes
from storage.formats.options import OptionError, Options
from storage.formats.xlsx.options import XlsxReadOptions, XlsxWriteOptions, checked_sheet
from storage.formats.xlsx.read import formulas_without_value, read_records, region_of
from storage.formats.xlsx.write import XlsxSession


@register_reader("xlsx")
class XlsxReader(Reader[XlsxReadOptions]):
    """Reads a sheet of a workbook. Undeclared columns have the type any."""

    Options: ClassVar[type[Options]] = XlsxReadOptions
    undeclared_type: ClassVar[str] = "any"
    library: ClassVar[str] = "fastexcel"
    extra: ClassVar[str] = "excel"

    def __post_init__(self) -> None:
        if self.options.range is not None and self.options.header_row is not None:
            raise OptionError("options.header_row: the first row of a range is its header; leave one of the two out", ("options", "header_row"))

    @override
    def notes(self) -> Sequence[str]:
        return section_notes(self.plan, "an Excel")

    @override
    def undeclared(self, data: Buffer, name: str) -> tuple[Column, ...]:
        region = region_of(self.options, data, name)
        region.check(self.plan, name)
        return self.plan.undeclared_among([one.name for one in region.headings], name, type_="any")

    @override
    def read(self, data: Buffer, name: str, part: Range | None = None) -> Iterator[pa.RecordBatch]:
        return self.documented(read_records(self.options, self.plan, data, name))

    @property
    @override
    def tells(self) -> bool:
        return True

    @override
    def remarks(self, data: Buffer, name: str) -> Sequence[str]:
        count = formulas_without_value(self.options, data, name)
        message = f"{count:,} formula{'s have' if count > 1 else ' has'} no value, since no spreadsheet computed {'them' if count > 1 else 'it'}: read as null"
        return (f"W620: {message}; open the file in a spreadsheet and save it",) if count else ()


@register_writer("xlsx")
class XlsxWriter(Writer[XlsxWriteOptions]):
    """Writes a workbook of one sheet; a null is no cell."""

    Options: ClassVar[type[Options]] = XlsxWriteOptions
    splittable: ClassVar[bool] = False
    sequential: ClassVar[bool] = True
    legible: ClassVar[bool] = False
    has_header_row: ClassVar[bool] = True
    library: ClassVar[str] = "xlsxwriter"
    extra: ClassVar[str] = "excel"

    def __post_init__(self) -> None:
        self.sheet()

    def sheet(self) -> str:
        """The name of the sheet. Raises OptionError (E622)."""
        given = self.options.sheet
        return checked_sheet(self.plan.name or "Sheet1", ("name",)) if given is None else checked_sheet(given, ("options", "sheet"))

    @override
    def open(self) -> Session:
        return XlsxSession(self.plan, self.options, self.sheet())
