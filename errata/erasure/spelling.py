"""How values are spelled: cells as texts that are compared, and texts as files have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from changelog.lazy_imports import pa, pl
from storage.values.text import float_text, time_text

NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_NUMBERED: Final = re.compile(r"&#(\d+);")


def spelled(column: pl.Series) -> pl.Series:
    """Cells as texts, as text files have them: times with `T`, and numbers without exponents and needless digits, so that 12, 12.0 and 12.00 are one."""
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_float():
        return pl.Series(column.name, pl.from_arrow(float_text(_arrow(column))), pl.String)
    if kind == pl.Datetime:
        return pl.Series(column.name, pl.from_arrow(time_text(_arrow(column.dt.cast_time_unit("us")))), pl.String)
    if kind.is_decimal():
        text = column.cast(pl.String)
        return text.str.replace(r"(\.\d*?)0+$", "$1").str.replace(r"\.$", "").alias(column.name)
    if kind.is_nested():
        return pl.Series(column.name, [json.dumps(value, ensure_ascii=False, default=as_cell) for value in column.to_list()], pl.String)
    return column.cast(pl.String)


def _arrow(column: pl.Series) -> pa.Array:
    found = column.rechunk().to_arrow()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def as_cell(value: Any) -> str:
    """One value in an array, a map or JSON as `spelled` has it."""
    match value:
        case float() if isfinite(value):
            text = repr(value)
            return (format(Decimal(text), "f") if "e" in text else text).removesuffix(".0")
        case Decimal():
            return plain_digits(format(value, "f"))
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return moment.isoformat().rstrip("0") if moment.microsecond else moment.isoformat()
        case date():
            return value.isoformat()
    return str(value)


def plain_digits(text: str) -> str:
    """The text of a number without needless digits, as `spelled` has it; any other text unchanged."""
    return re.sub(r"(\.\d*?)0+$", r"\1", text).removesuffix(".") if NUMBER.fullmatch(text) else text


def spellings(text: str) -> tuple[str, ...]:
    """How a text stands in files: by itself, in JSON and XML with their escapes, with escapes for all that is not ASCII, and in cells of CSV with doubled quotes."""
    inner, plain = json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]
    xml = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    attribute = xml.replace('"', "&quot;")
    numbered = [one.encode("ascii", "xmlcharrefreplace").decode() for one in (xml, attribute, attribute.replace("'", "&#39;"), attribute.replace("'", "&apos;"))]
    hexadecimal = [_NUMBERED.sub(write, one) for one in numbered for write in (lambda found: f"&#x{int(found[1]):x};", lambda found: f"&#x{int(found[1]):X};")]
    again = [json.dumps(one, ensure_ascii=False)[1:-1] for one in (inner, plain)]
    doubled = [one.replace('"', '""') for one in (text, inner, plain, *again)]
    quotes = [xml.replace('"', "&#34;").replace("'", "&#39;"), xml.replace('"', "&#34;"), attribute.replace("'", "&#39;"), attribute.replace("'", "&apos;")]
    return tuple(dict.fromkeys((text, inner, plain, xml, attribute, *quotes, *numbered, *hexadecimal, *again, *doubled)))


def leaves_of(text: str) -> Iterator[Any] | None:
    """The values in the text of a JSON object or array, or of a JSON string; None for another text."""
    if text[:1] not in ("{", "[", '"'):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return walked(found)


def leaf_cells(text: str) -> set[str]:
    """The values in the text of JSON as the texts of cells; of a number that is a string also without needless digits."""
    return {spelling for leaf in leaves_of(text) or () for cell in (as_cell(leaf),) for spelling in (cell, plain_digits(cell))}


def walked(value: Any) -> Iterator[Any]:
    """The values in arrays and maps."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from walked(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walked(inner)
    else:
        yield value
