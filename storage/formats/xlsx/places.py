"""Places in a sheet: `C7`, `B2:F100`, `B:F`."""

from __future__ import annotations

import re
from typing import NamedTuple

ROWS, COLUMNS = 1 << 20, 1 << 14
"""The size of a sheet."""
_AREA = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Za-z]{1,3})\$?([0-9]{1,7}))?")
_WHOLE = re.compile(r"\$?([A-Za-z]{1,3}):\$?([A-Za-z]{1,3})")
_PLAIN = re.compile(r"[^\W\d]\w*")


class Area(NamedTuple):
    """A rectangle of cells: its first and last row and column, from 0, the last ones included."""

    top: int
    left: int
    bottom: int
    right: int

    @classmethod
    def parse(cls, text: str) -> Area | None:
        """The rectangle of a text such as `B2:F100`, `B:F` or `B2`; None for another text."""
        if found := _WHOLE.fullmatch(text):
            one, two = column_number(found[1]), column_number(found[2])
            return _inside(cls(0, min(one, two), ROWS - 1, max(one, two)))
        if found := _AREA.fullmatch(text):
            columns = sorted((column_number(found[1]), column_number(found[3] or found[1])))
            rows = sorted((int(found[2]) - 1, int(found[4] or found[2]) - 1))
            return _inside(cls(rows[0], columns[0], rows[1], columns[1]))
        return None

    def holds(self, row: int, column: int) -> bool:
        """Whether a cell is inside."""
        return self.top <= row <= self.bottom and self.left <= column <= self.right


def _inside(area: Area) -> Area | None:
    return area if area.top >= 0 and area.bottom < ROWS and area.right < COLUMNS else None


def column_number(letters: str) -> int:
    """The number of a column from 0."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


def column_letters(number: int) -> str:
    """The letters of a column by its number from 0."""
    letters, left = "", number + 1
    while left:
        left, digit = divmod(left - 1, 26)
        letters = chr(65 + digit) + letters
    return letters


def place(sheet: str, row: int, column: int) -> str:
    """A cell as spreadsheets write it: `Orders!C7`."""
    name = sheet if _PLAIN.fullmatch(sheet) else "'" + sheet.replace("'", "''") + "'"
    return f"{name}!{column_letters(column)}{row + 1}"
