"""Text to declared types, a column at a time, with a mask of the cells that do not convert.

An empty cell is the empty text in a `string` or `any` column and null in every other. A cell that does not convert is null in the values and true
in the mask. Accepted spellings:

- array, map: JSON of that kind
- int: optional sign and digits, within 64 bits
- float: the same with fraction and exponent, `inf`, `nan`
- decimal: as in `storage.values.decimals`
- bool: true yes 1 on, false no 0 off, in any case
- numeric: what is an int, else a float; the column holds JSON text
- date, date_time: as in `storage.values.dates`, the pipeline's own formats first
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import orjson

from changelog.lazy_imports import pa, pc, pl
from storage.values.dates import parse_dates, parse_times
from storage.values.decimals import decimal_type, implied, parsed, pointed
from storage.values.json_text import canonical
from storage.values.types import DYNAMIC, NESTED, arrow_type, base_type

_TRUE, _FALSE = ("true", "yes", "1", "on"), ("false", "no", "0", "off")


class Coerced(NamedTuple):
    """A typed column, and a boolean column that marks the failed cells; None where no cell failed."""

    values: pa.Array
    failed: pa.Array | None


def coerce(text: pa.Array, declared: str, date_formats: Sequence[str] = ()) -> Coerced:
    """Convert a text column, in which null is an absent cell, to its declared type. A column that has the type already passes unchanged."""
    name = base_type(declared)
    if name == "string" or not pa.types.is_string(text.type):
        return Coerced(text, None)
    if name in NESTED:
        return _nested(text, NESTED[name])
    if name in DYNAMIC:
        return Coerced(_as_json(text), None)
    digits = decimal_type(name)
    if digits is not None:
        values = parsed(text, digits)
    elif name in ("date", "date_time"):
        filled = pc.replace_with_mask(text, pc.equal(text, ""), pa.scalar(None, pa.string()))
        values = (parse_dates if name == "date" else parse_times)(filled, tuple(date_formats))
    else:
        values = _by_polars(text, _PARSERS[name]).cast(arrow_type(name))
    return Coerced(values, failures(text, values))


def coerce_implied(text: pa.Array, declared: str, places: int) -> Coerced:
    """Convert cells that are whole numbers, a sign perhaps before them, whose last `places` digits are behind the point."""
    digits = decimal_type(base_type(declared))
    if digits is not None:
        values = implied(text, digits, places)
    else:
        values = coerce(pa.array([pointed(cell, places) for cell in text.to_pylist()], pa.string()), declared).values
    return Coerced(values, failures(text, values))


def failures(text: pa.Array, values: pa.Array) -> pa.Array | None:
    """Mark the cells that have text and no value; None where there are none."""
    if values.null_count == 0:
        return None
    failed = pc.fill_null(pc.and_(pc.is_null(values), pc.not_equal(text, "")), False)
    return failed if failed.true_count else None


def _by_polars(text: pa.Array, parse: Callable[[pl.Series], pl.Series]) -> pa.Array:
    series = pl.from_arrow(text)
    assert isinstance(series, pl.Series)
    result = parse(series).to_arrow()
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def _ints(text: pl.Series) -> pl.Series:
    return text.cast(pl.Int64, strict=False)


def _floats(text: pl.Series) -> pl.Series:
    """Floats. Digits beyond the largest float fail, `inf` is infinite."""
    floats = text.cast(pl.Float64, strict=False)
    infinite = floats.is_infinite().fill_null(False)
    return floats.set(infinite & text.str.contains("[0-9]").fill_null(False), None) if infinite.any() else floats


def _numbers(text: pl.Series) -> pl.Series:
    """The JSON text of numbers: an int where the text is one, else a float that JSON can hold."""
    ints = text.cast(pl.Int64, strict=False)
    rest = text.set(ints.is_not_null(), None)
    floats = [None if cell is None or not isfinite(cell) else orjson.dumps(cell).decode() for cell in rest.cast(pl.Float64, strict=False)]
    return ints.cast(pl.String).zip_with(ints.is_not_null(), pl.Series(floats, dtype=pl.String))


def _bools(text: pl.Series) -> pl.Series:
    lower = text.str.to_lowercase()
    true = lower.is_in(_TRUE)
    return true.set(~(true | lower.is_in(_FALSE)), None)


_PARSERS: dict[str, Callable[[pl.Series], pl.Series]] = {"int": _ints, "float": _floats, "numeric": _numbers, "bool": _bools}


def _nested(text: pa.Array, kind: type) -> Coerced:
    """Text that is the JSON of a value of one kind."""
    values = pa.array([_json_of(cell, kind) for cell in text.to_pylist()], pa.string())
    return Coerced(values, failures(text, values))


def _json_of(cell: str | None, kind: type) -> str | None:
    try:
        value = orjson.loads(cell) if cell else None
    except orjson.JSONDecodeError:
        return None
    return canonical(value) if isinstance(value, kind) else None


def _as_json(text: pa.Array) -> pa.Array:
    quoted = [None if cell is None else orjson.dumps(cell).decode() for cell in text.to_pylist()]
    return pa.array(quoted, pa.string())
