"""The text of floats and times, and of decimals within JSON text, a column at a time: the same form in every text format.

A decimal in the JSON text of a dynamic value has its digits and `E0`, which no float has (`cxl.values.decimals`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Final

from changelog.lazy_imports import pa, pc, pl

_LONG_FLOAT: Final = r"[0-9](\.0([,\]}]|$)|[eE])"
"""Matches JSON text in which a float may have a shorter form."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
"""A string or a number of JSON text."""
DECIMAL_MARK: Final = "E0"
"""The end of a decimal in the JSON text of a dynamic value."""


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


def plain_numbers(values: pa.Array, *, quoted: bool = False) -> pa.Array:
    """JSON texts with each float as `float_text` writes it, and each decimal as its digits, or as a string of them.

    Infinities are unchanged, as JSON has no other form for them.
    """
    return _with_tokens(values, _LONG_FLOAT, partial(_plain_token, quoted=quoted))


def plain_decimals(values: pa.Array) -> pa.Array:
    """JSON texts with each decimal as its digits, and floats as they are."""
    return _with_tokens(values, DECIMAL_MARK, lambda found: found[0][: -len(DECIMAL_MARK)] if _is_decimal(found[0]) else found[0])


def _with_tokens(values: pa.Array, pattern: str, written: Callable[[re.Match[str]], str]) -> pa.Array:
    """JSON texts in which strings and numbers are written anew, where a text matches the pattern."""
    some = pc.fill_null(pc.match_substring_regex(values, pattern), False)
    if not some.true_count:
        return values
    return pc.replace_with_mask(values, some, pa.array([_TOKEN.sub(written, text) for text in values.filter(some).to_pylist()], pa.string()))


def _is_decimal(token: str) -> bool:
    return token.endswith(DECIMAL_MARK)


def _plain_token(found: re.Match[str], *, quoted: bool) -> str:
    text = found[0]
    if _is_decimal(text):
        digits = text[: -len(DECIMAL_MARK)]
        return f'"{digits}"' if quoted else digits
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
