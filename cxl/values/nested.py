"""The limits of arrays and maps that a program makes."""

from typing import Any

from cxl.values.dynamic import dumps, plain
from cxl.values.failure import MAX_TEXT, CxlFailure

MAX_NESTED = 64
"""Levels of nested arrays and maps, in a program and in the values that it makes."""
_SCALAR = 64
"""More bytes than any number, date or time has as JSON."""
_CHARACTER = 6
"""The most bytes of a character as JSON: an escape."""


def held_to_limits(value: Any) -> None:
    """Check a new array or map. Raises CxlFailure where it is nested too deep or too large."""
    if _most_bytes(value) <= MAX_TEXT:
        return
    size = len(plain(dumps(value) or "").encode(errors="surrogatepass"))
    if size > MAX_TEXT:
        raise CxlFailure(f"the value is too large: {size} bytes as JSON exceed the limit of {MAX_TEXT}")


def _most_bytes(value: Any) -> int:
    """Return a number of bytes that the JSON text does not exceed. Raises CxlFailure where the value is nested too deep."""
    size, level, depth = 0, [value], 0
    while level:
        deeper: list[Any] = []
        for one in level:
            if isinstance(one, str):
                size += _CHARACTER * len(one) + 3
            elif isinstance(one, dict):
                size += 2 + sum(_CHARACTER * len(key) + 4 for key in one)
                deeper.extend(one.values())
            elif isinstance(one, list):
                size += 2
                deeper.extend(one)
            else:
                size += _SCALAR
        level = deeper
        depth += 1
        if depth >= MAX_NESTED and any(isinstance(one, list | dict) for one in level):
            raise CxlFailure(f"the value is nested too deep: more than {MAX_NESTED} levels")
    return size
