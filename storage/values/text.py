"""The text of floats and times, a column at a time: the same form in every text format."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from changelog.lazy_imports import pa, pc, pl

_LONG_FLOAT: Final = r"[0-9](\.0([,\]}]|$)|[eE])"
"""Matches JSON text in which a float may have a shorter form."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
"""A string or a number of JSON text."""


def float_text(values: pa.Array) -> pa.Array:
    """The shortest decimal text that reads back, without exponent and without `.0`; `NaN`, `inf`, `-inf`."""
    series = pl.from_arrow(values)
    assert isinstance(series, pl.Series)
    text = series.cast(pl.String).str.strip_suffix(".0")
    exponent = text.str.contains("e", literal=True).fill_null(False)
    if exponent.any():
        plain = [format(Decimal(cell), "f") for cell in text.filter(exponent)]
        text = text.scatter(exponent.arg_true(), pl.Series(plain, dtype=pl.String))
    return _string(text)


def plain_floats(values: pa.Array) -> pa.Array:
    """JSON texts with each float as `float_text` writes it. Infinities are unchanged, as JSON has no other form for them."""
    some = pc.fill_null(pc.match_substring_regex(values, _LONG_FLOAT), False)
    if not some.true_count:
        return values
    return pc.replace_with_mask(values, some, pa.array([_TOKEN.sub(_plain_token, text) for text in values.filter(some).to_pylist()], pa.string()))


def _plain_token(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith('"') or not any(sign in text for sign in ".eE") or math.isinf(float(text)):
        return text
    return format(Decimal(repr(float(text))), "f").removesuffix(".0")


def time_text(values: pa.Array) -> pa.Array:
    """`YYYY-MM-DDTHH:MM:SS`, with a fraction where the time has one."""
    series = pl.from_arrow(values.cast(pa.timestamp("us")))
    assert isinstance(series, pl.Series)
    text = series.dt.strftime("%Y-%m-%dT%H:%M:%S")
    fraction = (series.dt.microsecond() != 0).fill_null(False)
    if fraction.any():
        longer = series.filter(fraction).dt.strftime("%Y-%m-%dT%H:%M:%S%.6f").str.strip_chars_end("0")
        text = text.scatter(fraction.arg_true(), longer)
    return _string(text)


def _string(series: pl.Series) -> pa.Array:
    array = series.to_arrow()
    return (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).cast(pa.string())
