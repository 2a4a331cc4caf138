"""Options of workbooks."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StrictStr

from storage.formats.options import OptionError, Options

SHEET_NAME = 31
_FORBIDDEN = re.compile(r"[\[\]:*?/\\]")


class XlsxReadOptions(Options):
    """`options:` of a source of workbooks."""

    sheet: Annotated[StrictStr | Annotated[StrictInt, Field(ge=1)] | None, Field(description="The name of the sheet, or its number from 1, hidden ones counted; the first visible one by default.", examples=["January"])] = None
    header_row: Annotated[int | None, Field(ge=1, le=1 << 20, description="The row with the names of the columns, from 1; above it nothing is read.", examples=[3])] = None
    range: Annotated[str | None, Field(min_length=1, description="The cells to read, `B2:F100` or `B:F`, or the name of a table. Their first row has the names of the columns.", examples=["B2:F100"])] = None
    has_header: Annotated[bool, Field(description="Whether the first row has the names of the columns; without one they are col_0, col_1 and so on.")] = True
    merged: Annotated[Literal["first", "fill"], Field(description="Whether merged cells have their value in the first cell alone, or in all.")] = "first"


class XlsxWriteOptions(Options):
    """`options:` of an output that is a workbook."""

    sheet: Annotated[str | None, Field(description="The name of the sheet; the output's name by default.", examples=["Revenue"])] = None
    freeze: Annotated[bool, Field(description="Whether the row of names stays in sight.")] = True
    filter: Annotated[bool, Field(description="Whether the row of names has filters.")] = False
    widths: Annotated[
        Literal["auto", "none"] | dict[str, Annotated[float, Field(gt=0, le=255)]],
        Field(description="The widths of columns: by their content up to 60, as the program that opens the file has them, or a number for each column."),
    ] = "auto"


def checked_sheet(name: str, path: tuple[Any, ...]) -> str:
    """The name of a sheet. Raises OptionError (E622) for one that workbooks do not have."""
    units = len(name.encode("utf-16-le", "surrogatepass")) // 2
    if not name or units > SHEET_NAME or _FORBIDDEN.search(name) or name[:1] == "'" or name[-1:] == "'" or name.casefold() == "history":
        message = f"'{name}' cannot be the name of a sheet: it has 1 to {SHEET_NAME} characters, none of []:*?/\\, no apostrophe at an end, and is not History"
        raise OptionError(message, path, code="E622", help_text="name the sheet: options: { sheet: NAME }")
    return name
