"""JSON text parsed with the digits of its numbers, for sources with decimal columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isinf
from typing import Any, Final

import orjson

from storage.formats.base import ReadPlan
from storage.values.decimals import decimal_type
from storage.values.deep import with_room
from storage.values.json_text import WrittenFloat, deep_text
from storage.values.types import base_type

_INEXACT: Final = re.compile(rb"[0-9][.eE][0-9+-]|[0-9]{19}")
"""Matches a text with a number that orjson may read as a float."""
_TOO_GREAT: Final = "number is infinity"
"""In the error of orjson for a number that no float holds, which is JSON all the same."""
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)', re.DOTALL)
"""Matches a string or a number of a JSON text."""
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
"""The ints that orjson reads as such."""

Parser = Callable[[bytes], Any]


def parser_of(plan: ReadPlan) -> Parser:
    """The parser for what a source reads: floats are `WrittenFloat` where a column is a decimal. It raises orjson.JSONDecodeError."""
    return parsed_exactly if any(decimal_type(base_type(column.type)) for column in plan.declared) else orjson.loads


def parsed_exactly(text: bytes) -> Any:
    """The value of a JSON text, its floats as `WrittenFloat`. Raises orjson.JSONDecodeError."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as wrong:
        if _TOO_GREAT not in wrong.msg:
            raise
        orjson.loads(_TOKEN.sub(_small, text))  # refuses what else is no JSON
        return _with_digits(text)
    return value if _INEXACT.search(text) is None else _with_digits(text)


def _with_digits(text: bytes) -> Any:
    decoded = text.decode()
    return with_room(lambda: json.loads(decoded, parse_float=WrittenFloat, parse_int=_int))


def _small(token: re.Match[bytes]) -> bytes:
    """A token of a JSON text, in the place of a number that no float holds a zero of the same length."""
    number = token["number"]
    return b"0".ljust(len(number)) if number and isinf(float(number)) else token[0]


def _int(text: str) -> int | float:
    if len(text) <= 18:
        return int(text)
    value = int(text) if len(text) <= 21 else _INT_MAX + 1
    return value if _INT_MIN <= value <= _INT_MAX else WrittenFloat(text)


def exact_text(value: Any) -> str:
    """The compact JSON text of a parsed value, its numbers with their digits."""
    try:
        return orjson.dumps(value, default=_digits).decode()
    except orjson.JSONEncodeError:
        return deep_text(value, lambda scalar: orjson.dumps(scalar, default=_digits).decode())


def _digits(value: Any) -> orjson.Fragment:
    if isinstance(value, WrittenFloat):
        return orjson.Fragment(value.digits)
    raise TypeError(f"{type(value).__name__} is no JSON")
