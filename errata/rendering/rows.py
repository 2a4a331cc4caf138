"""Rows as a table for people, and as JSON, JSON lines and CSV for programs."""

import datetime as dt
import decimal
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Literal

import orjson

from errata.rendering.terminal import cut, escaped, padded, width
from storage.values.decimals import plain_digits
from storage.values.json_text import deep_text

Row = Mapping[str, Any]
Format = Literal["text", "json", "jsonl", "csv"]

FORMATS: tuple[Format, ...] = ("text", "json", "jsonl", "csv")

_SAMPLE = 1_000
_NARROWEST = 16
_GAP = "  "
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z


def render(rows: Iterable[Row], format: Format, columns: Sequence[str] = (), *, fit: int | None = None) -> Iterator[str]:
    """Yield the pieces of the answer, each ending with a line end.

    Args:
        columns: Columns that come first, also where no row has them.
        fit: How many columns a line of text may have. Long cells are cut, short ones never. None: nothing is cut.
    """
    return _text(rows, columns, fit) if format == "text" else _RENDERERS[format](rows, columns)


def json_text(value: object) -> str:
    """Return compact JSON: dates in ISO form, NaN and infinities as null, integers of any size, decimals as numbers with all their digits."""
    try:
        return orjson.dumps(value, default=_foreign, option=_OPTIONS).decode()
    except orjson.JSONEncodeError:
        return deep_text(value, lambda item: orjson.dumps(_plain(item), default=_foreign, option=_OPTIONS).decode())


def _foreign(value: object) -> object:
    if isinstance(value, decimal.Decimal):
        return orjson.Fragment(plain_digits(value))
    return dict(value) if isinstance(value, Mapping) else bytes(value).hex() if isinstance(value, (bytes, bytearray)) else str(value)


def _plain(value: object) -> object:
    """The value that orjson writes for a value that is no map and no list."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value


def _jsonl(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    return (f"{json_text(row)}\n" for row in rows)


def _json(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    before = "["
    for row in rows:
        yield f"{before}{json_text(row)}"
        before = ",\n "
    yield "]\n" if before != "[" else "[]\n"


def _csv(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    sample, more = _sampled(rows)
    names = _names(sample, columns)
    yield _csv_line(names)
    for row in chain(sample, more):
        yield _csv_line([cell(row.get(name)) for name in names])


def _csv_line(cells: Sequence[str]) -> str:
    """One line. A single empty cell is quoted, since an empty line is no record."""
    return ('""' if list(cells) == [""] else ",".join(_quoted(text) for text in cells)) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text


def _text(rows: Iterable[Row], columns: Sequence[str], fit: int | None) -> Iterator[str]:
    """A table. The first rows decide the widths, so that a long answer is shown as it comes."""
    sample, more = _sampled(rows)
    table = _Table(_names(sample, columns), sample, fit)
    if table.names:
        yield table.line([escaped(name) for name in table.names])
        yield table.line(["-" * columns_wide for columns_wide in table.widths])
    for row in chain(sample, more):
        yield table.line(table.cells(row))


class _Table:
    """Names, widths and alignment of a table's columns."""

    def __init__(self, names: Sequence[str], sample: Sequence[Row], fit: int | None) -> None:
        self.names = names
        self._most = [sys.maxsize if fit is None else max(fit, _NARROWEST)] * len(names)
        self._right = [bool(sample) and all(_is_number(row.get(name)) for row in sample) for name in names]
        shown = [[escaped(name) for name in names], *(self.cells(row) for row in sample)]
        self.widths = [max(map(width, column)) for column in zip(*shown, strict=True)]
        self._narrow(0 if fit is None else sum(self.widths) + len(_GAP) * (len(names) - 1) - fit)

    def _narrow(self, excess: int) -> None:
        """Take columns off the widest cells."""
        while excess > 0 and max(self.widths, default=0) > _NARROWEST:
            widest = max(self.widths)
            at = self.widths.index(widest)
            next_widest = max([_NARROWEST, *(one for one in self.widths if one < widest)])
            self._most[at] = self.widths[at] = max(widest - excess, next_widest)
            excess -= widest - self.widths[at]

    def cells(self, row: Row) -> list[str]:
        """A row's cells, escaped, and cut where the table has to fit."""
        return [cut(escaped(cell(row.get(name))), most) for name, most in zip(self.names, self._most, strict=True)]

    def line(self, cells: Sequence[str]) -> str:
        """One line of the table."""
        aligned = zip(cells, self.widths, self._right, strict=True)
        return _GAP.join(padded(text, columns, right=right) for text, columns, right in aligned).rstrip() + "\n"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool))


def cell(value: object) -> str:
    """Return a value as the text of a cell: null is empty, lists and maps are JSON, floats are short and exact, bytes hexadecimal."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, (Mapping, list, tuple)):
        return json_text(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, decimal.Decimal):
        return plain_digits(value)
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, dt.date) else str(value)


def _float_text(value: float) -> str:
    """The shortest digits that read back, without `.0`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    text = format(decimal.Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def _sampled(rows: Iterable[Row]) -> tuple[list[Row], Iterator[Row]]:
    stream = iter(rows)
    return list(islice(stream, _SAMPLE)), stream



def _names(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """All columns in the order in which they first come."""
    return list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))


_RENDERERS: dict[Format, Callable[[Iterable[Row], Sequence[str]], Iterator[str]]] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
}
