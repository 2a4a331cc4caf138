"""The limits of arrays and maps that a program makes."""

from typing import Any, NamedTuple

from cxl.values.dynamic import dumps, plain
from cxl.values.failure import MAX_TEXT, CxlFailure

MAX_NESTED = 64
"""Levels of nested arrays and maps, in a program and in the values that it makes."""
_SCALAR = 64
"""More bytes than any number, date or time has as JSON."""
_CHARACTER = 6
"""The most bytes of a character as JSON: an escape."""


class _Size(NamedTuple):
    """Bytes that the JSON text of a value has at least and at most, and the levels of its arrays and maps."""

    least: int
    most: int
    levels: int


class Meter:
    """Measures a new array or map while it is made, so that one that is too large fails before it fills the memory.

    The same array or map in several places is measured once.
    """

    __slots__ = ("_known", "_least", "_most")

    def __init__(self) -> None:
        self._least = self._most = 0
        self._known: dict[int, _Size] = {}

    def part(self, value: Any, level: int) -> None:
        """Count a part that stays in the new value. Raises CxlFailure.

        Args:
            level: How many arrays and maps of the program are around it.
        """
        size = self._measured(value)
        self._least += size.least + 1
        self._most += size.most + 1
        if level + size.levels > MAX_NESTED:
            raise _too_deep()
        if self._least > MAX_TEXT:
            raise _too_large()

    def around(self, level: int) -> None:
        """Count a new array or map around further parts. Raises CxlFailure."""
        self._least += 1
        self._most += 2
        if level > MAX_NESTED:
            raise _too_deep()
        if self._least > MAX_TEXT:
            raise _too_large()

    def key(self, name: str) -> None:
        """Count a key of a new map."""
        self._least += len(name) + 3
        self._most += _CHARACTER * len(name) + 3

    def whole(self, value: Any) -> None:
        """Check the new value behind its last part. Raises CxlFailure where it is too large."""
        if self._most > MAX_TEXT and len(plain(dumps(value) or "").encode(errors="surrogatepass")) > MAX_TEXT:
            raise _too_large()

    def _measured(self, value: Any, level: int = 0) -> _Size:
        if isinstance(value, str):
            return _Size(len(value) + 2, _CHARACTER * len(value) + 2, 0)
        if not isinstance(value, list | dict):
            return _Size(1, _SCALAR, 0)
        found = self._known.get(id(value))
        if found is None:
            if level >= MAX_NESTED:
                raise _too_deep()
            found = self._known[id(value)] = self._container(value, level + 1)
        return found

    def _container(self, value: list[Any] | dict[str, Any], level: int) -> _Size:
        least, most, levels = 1, 2, 0
        if isinstance(value, dict):
            letters = sum(map(len, value))
            least, most = least + letters + 3 * len(value), most + _CHARACTER * letters + 3 * len(value)
        for one in value.values() if isinstance(value, dict) else value:
            size = self._measured(one, level)
            least, most = least + size.least + 1, most + size.most + 1
            levels = max(levels, size.levels)
        return _Size(least, most, levels + 1)


def _too_large() -> CxlFailure:
    return CxlFailure(f"the value is too large: more than {MAX_TEXT} bytes as JSON")


def _too_deep() -> CxlFailure:
    return CxlFailure(f"the value is nested too deep: more than {MAX_NESTED} levels")
