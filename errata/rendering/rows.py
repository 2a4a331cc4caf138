"""Rows as a table for people, and as JSON, JSON lines and CSV for programs."""

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

import orjson

from errata.rendering.terminal import OP_STYLES, VERDICT_STYLES, cut, escaped, padded, styled, width
from storage.values.decimals import plain_digits
from storage.values.json_text import deep_text

Row = Mapping[str, Any]
Format = Literal["text", "json", "jsonl", "csv"]

FORMATS: tuple[Format, ...] = ("text", "json", "jsonl", "csv")

_SAMPLE = 1_000
_NARROWEST = 12
"""How far a column may be cut before others are left out."""
_GAP = "  "
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z


@dataclass(frozen=True, slots=True)
class Look:
    """How a table of text looks.

    Args:
        fit: How many columns a line may have. None: as many as it needs.
        lead: The columns that come first and stay whole where a table does not fit. Others are cut; from the last one on they are left out.
        after: The columns behind them, in their order; all others follow.
        keep: Whether the first columns stay whole although a line gets longer than `fit`; else they are cut too, at last.
        color: Whether ops and verdicts are coloured.
        hidden: Called with the columns that are left out.
    """

    fit: int | None = None
    lead: Sequence[str] = ()
    after: Sequence[str] = ()
    keep: bool = False
    color: bool = False
    hidden: Callable[[Sequence[str]], None] = lambda _names: None


def render(rows: Iterable[Row], format: Format, columns: Sequence[str] = (), *, look: Look = Look()) -> Iterator[str]:
    """Yield the pieces of the answer, each ending with a line end.

    Args:
        rows: The rows.
        format: text, json, jsonl or csv.
        columns: Columns that come first, also where no row has them.
        look: How a table of text looks.
    """
    return _text(rows, columns, look) if format == "text" else _RENDERERS[format](rows, columns)


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


def _text(rows: Iterable[Row], columns: Sequence[str], look: Look) -> Iterator[str]:
    """A table. The first rows decide the widths, so that a long answer is shown while it comes."""
    sample, more = _sampled(rows)
    table = _Table(_names(sample, columns), sample, look)
    if table.names:
        yield table.line([cut(escaped(name), columns_wide) for name, columns_wide in zip(table.names, table.widths, strict=True)])
        yield table.rule()
    for row in chain(sample, more):
        yield table.line(table.cells(row))


class _Table:
    """Names, widths and alignment of a table's columns."""

    def __init__(self, names: Sequence[str], sample: Sequence[Row], look: Look) -> None:
        self._look = look
        shown = {name: [escaped(name), *(escaped(cell(row.get(name))) for row in sample)] for name in names}
        natural = {name: max(map(width, texts)) for name, texts in shown.items()}
        fitted = natural if look.fit is None else fitted_widths(natural, look.fit, look.lead, look.after, keep=look.keep)
        self.names = list(fitted)
        self.widths = list(fitted.values())
        self._cuts = [look.fit is not None] * len(fitted)
        self._right = [bool(sample) and all(_is_number(row.get(name)) for row in sample) for name in self.names]
        if left_out := [name for name in names if name not in fitted]:
            look.hidden(left_out)

    def rule(self) -> str:
        """The line below the names, which never wraps."""
        line = _GAP.join("-" * columns for columns in self.widths)
        return (line if self._look.fit is None else line[: self._look.fit].rstrip()) + "\n"

    def cells(self, row: Row) -> list[str]:
        """A row's cells, escaped, and cut where the table has to fit."""
        texts = (escaped(cell(row.get(name))) for name in self.names)
        return [cut(text, most) if cuts else text for text, most, cuts in zip(texts, self.widths, self._cuts, strict=True)]

    def line(self, cells: Sequence[str]) -> str:
        """One line of the table."""
        aligned = [padded(text, columns, right=right) for text, columns, right in zip(cells, self.widths, self._right, strict=True)]
        if aligned:
            aligned[-1] = aligned[-1].rstrip()
        if self._look.color:
            aligned = [_colored(name, text, shown) for name, text, shown in zip(self.names, cells, aligned, strict=True)]
        return _GAP.join(aligned).rstrip() + "\n"


def _colored(name: str, text: str, aligned: str) -> str:
    """The text of a cell in the colour of its op or verdict, padding left plain."""
    style = OP_STYLES.get(text) if name == "op" else VERDICT_STYLES.get(text) if name == "verdict" else None
    return aligned if style is None else aligned.replace(text, styled(text, style, on=True), 1)


def fitted_widths(natural: Mapping[str, int], fit: int, lead: Sequence[str] = (), after: Sequence[str] = (), *, keep: bool = False) -> dict[str, int]:
    """Return the columns that are shown, in their order, and their widths.

    Args:
        natural: The columns with the widths of their longest cells.
        fit: How many columns a line may have.
        lead: The columns that come first and stay whole, where the table does not fit.
        after: The columns behind them; all others follow.
        keep: Whether they stay whole although the line does not fit.
    """
    if _total(natural) <= fit:
        return dict(natural)
    first = [name for name in lead if name in natural]
    others = [name for name in dict.fromkeys([*after, *natural]) if name in natural and name not in first]
    widths = {name: natural[name] for name in [*first, *others]}
    _narrow(widths, others, fit)
    while _total(widths) > fit and others and len(widths) > 1:
        del widths[others.pop()]
    for name in others:
        widths[name] = max(widths[name], min(natural[name], widths[name] + fit - _total(widths)))
    if keep and first:
        return widths
    _narrow(widths, list(widths), fit)
    while _total(widths) > fit and len(widths) > 1:
        del widths[list(widths)[-1]]
    return {name: min(columns, fit) for name, columns in widths.items()}


def _total(widths: Mapping[str, int]) -> int:
    """The columns of a line."""
    return sum(widths.values()) + len(_GAP) * max(len(widths) - 1, 0)


def _narrow(widths: dict[str, int], names: Sequence[str], fit: int) -> None:
    """Take columns off the widest cells, until the line fits or each has its least width."""
    while names and (excess := _total(widths) - fit) > 0:
        widest = max(widths[name] for name in names)
        if widest <= _NARROWEST:
            return
        at = next(name for name in names if widths[name] == widest)
        next_widest = max([_NARROWEST, *(widths[name] for name in names if widths[name] < widest)])
        widths[at] = max(widest - excess, next_widest)


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
