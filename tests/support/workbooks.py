"""Workbooks for tests, written by XlsxWriter."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import openpyxl
import xlsxwriter


def workbook(rows: Any, *, sheet: str = "Data", merged: Sequence[str] = (), hidden: Sequence[str] = (), others: Sequence[str] = (), **options: Any) -> bytes:
    """The bytes of a workbook. `rows`: by their numbers, or a list; a cell is a value, or a function that writes it."""
    target = BytesIO()
    made = xlsxwriter.Workbook(target, {"strings_to_formulas": False, "strings_to_urls": False, "default_date_format": "yyyy-mm-dd hh:mm", **options})
    for title in others:
        made.add_worksheet(title).write(0, 0, "other")
    page = made.add_worksheet(sheet)
    for number, row in (rows.items() if isinstance(rows, dict) else enumerate(rows)):
        for at, value in enumerate(row):
            if callable(value):
                value(made, page, number, at)
            elif value is not None:
                page.write(number, at, value)
    for where in merged:
        page.merge_range(where, "")
        first = openpyxl.utils.cell.coordinate_from_string(where.split(":")[0])
        row, column = first[1] - 1, openpyxl.utils.column_index_from_string(first[0]) - 1
        page.write(row, column, rows[row][column])
    for one in made.worksheets():
        if one.name in hidden:
            one.hide()
    if hidden:
        page.activate()
        page.set_first_sheet()
    made.close()
    return target.getvalue()
