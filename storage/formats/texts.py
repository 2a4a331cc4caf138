"""The text of values in files (SPEC-DECISIONS, "Formats"): one form for every text format.

Floats: the shortest digits that read back, no exponent, no `.0`; dates `YYYY-MM-DD`; date-times with `T`, a fraction only where there is one;
bool `true` and `false`; dynamic scalars like their plain kind, arrays as compact JSON with floats in the same form. A map has no text: OutputError.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage.formats.base import Column, OutputError
from storage.values.coerce import is_dynamic

_LONG_FLOAT: Final = r"[0-9](\.0([,\]}]|$)|[eE])"
"""What is found in JSON text where a float in it may have a shorter form."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
"""A string or a number of JSON text."""


def text_of(values: pa.Array, column: Column, form: str) -> pa.Array:
    """A column as text, null where it is null. Raises OutputError for a map."""
    kind = values.type
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.string())
    if is_dynamic(column.type) and pa.types.is_string(kind):
        return pa.array([plain_text(cell, column.name, form) for cell in plain_floats(values).to_pylist()], pa.string())
    if pa.types.is_floating(kind):
        return float_text(values)
    if pa.types.is_timestamp(kind):
        return time_text(values)
    return values if pa.types.is_string(kind) else values.cast(pa.string())


def float_text(values: pa.Array) -> pa.Array:
    """Shortest decimal text without exponent and without `.0`; `NaN`, `inf`, `-inf`."""
    series = pl.from_arrow(values)
    assert isinstance(series, pl.Series)
    text = series.cast(pl.String).str.strip_suffix(".0")
    exponent = text.str.contains("e", literal=True).fill_null(False)
    if exponent.any():
        plain = [format(Decimal(cell), "f") for cell in text.filter(exponent)]
        text = text.scatter(exponent.arg_true(), pl.Series(plain, dtype=pl.String))
    return _string(text)


def plain_floats(values: pa.Array) -> pa.Array:
    """JSON texts with each float as `float_text` has it; an infinity stays as it is, as JSON has no other form of it."""
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


def plain_text(json_text: str | None, name: str, form: str) -> str | None:
    """The text of one dynamic value: a scalar's plain form, an array's JSON; OutputError for a map."""
    if json_text is None or json_text.startswith("["):
        return json_text
    value = json.loads(json_text)
    if isinstance(value, dict):
        raise OutputError(
            f"column '{name}' holds a map, which {form} cannot hold: name its members in the source's schema ('{name}.member'), turn it into "
            "a scalar in CXL, or leave it out (include_unmapped: false, where the schema does not name it) (UnserializableMapValue)"
        )
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, float):
        return str(float_text(pa.array([value]))[0])
    return json_text


def _string(series: pl.Series) -> pa.Array:
    array = series.to_arrow()
    return (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).cast(pa.string())
