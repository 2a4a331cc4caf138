"""JSON text of values of any depth, and JSON pointers. orjson writes about 250 levels, files may have 1,000.

A decimal is its digits and `E0` (`storage.values.text`); values of files have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any, Self

import orjson

from storage.values.text import DECIMAL_MARK

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


def canonical(value: Any) -> str:
    """The compact JSON text of a value, members in their order. Ints beyond 64 bits are floats; a number of a file that no float holds keeps its digits."""
    return _text(value, _with_all_digits)


def held(value: Any) -> str | None:
    """The same; None where it has a number of a file that no float holds."""
    try:
        return _text(value, _of_held)
    except orjson.JSONEncodeError as wrong:
        if isinstance(wrong.__cause__, OverflowError):
            return None
        raise


def _text(value: Any, default: Callable[[Any], Any]) -> str:
    try:
        return orjson.dumps(value, default=default).decode()
    except orjson.JSONEncodeError as wrong:
        if isinstance(wrong.__cause__, OverflowError):
            raise
        return deep_text(value, partial(_scalar, default=default))


class WrittenFloat(float):
    """A float of a file, with its digits as they are written: a decimal column reads these."""

    __slots__ = ("digits",)

    digits: str

    @property
    def is_beyond(self) -> bool:
        """Whether no float holds the number."""
        return not isfinite(self)

    def __new__(cls, digits: str) -> Self:
        """Return the float of a text."""
        made = super().__new__(cls, digits)
        made.digits = digits
        return made

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]  # a float is made from its digits
        """Return what a copy is made from."""
        return (self.digits,)


def _with_all_digits(value: Any) -> orjson.Fragment | float:
    return orjson.Fragment(value.digits) if isinstance(value, WrittenFloat) and value.is_beyond else _of_held(value)


def _of_held(value: Any) -> orjson.Fragment | float:
    if isinstance(value, WrittenFloat):
        if value.is_beyond:
            raise OverflowError(f"{value.digits} is a number that no float holds")
        return float(value)
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}{DECIMAL_MARK}")
    raise TypeError(f"{type(value).__name__} is no JSON")


def deep_text(value: Any, scalar: Callable[[Any], str]) -> str:
    """The compact JSON text of a deeply nested value, without recursion. `scalar` writes what is no map and no list."""
    out: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _Text):
            out.append(item)
        elif isinstance(item, Mapping):
            _push(stack, "{}", [(scalar(str(key)) + ":", member) for key, member in item.items()])
        elif isinstance(item, (list, tuple)):
            _push(stack, "[]", [("", member) for member in item])
        else:
            out.append(scalar(item))
    return "".join(out)


class _Text(str):
    """Output text on the stack."""

    __slots__ = ()


def _push(stack: list[Any], brackets: str, members: Sequence[tuple[str, Any]]) -> None:
    stack.append(_Text(brackets[1]))
    for index, (key, member) in reversed(list(enumerate(members))):
        stack.append(member)
        stack.append(_Text(("," if index else "") + key))
    stack.append(_Text(brackets[0]))


def _scalar(value: Any, default: Callable[[Any], Any]) -> str:
    big = type(value) is int and not _INT_MIN <= value <= _INT_MAX
    return orjson.dumps(float(value) if big else value, default=default).decode()


def pointed(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901) of a parsed document; None where there is none."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            document = document[int(key)] if key.isdecimal() and int(key) < len(document) else None
        else:
            document = document.get(key) if isinstance(document, dict) else None
    return document
