"""Map methods. They return new maps, and null for any receiver that is no map."""

import re
from collections.abc import Iterator
from typing import Any

from cxl.functions.registry import Builtin, Param, register
from cxl.types.types import ANY, ARRAY, MAP, STRING


class _NoPath(Exception):
    """A path that is malformed or does not fit the value."""


def _segments(path: str) -> Iterator[str | int]:
    """The keys and indices of `a.b[0].c`. Raises _NoPath where the path is malformed."""
    at, after_index = 0, False
    while True:
        if not after_index:
            key = _KEY.match(path, at)
            assert key is not None
            yield _ESCAPE.sub(r"\1", key[0])
            at = key.end()
        if at == len(path):
            return
        after_index = path[at] == "["
        if not after_index:
            at += 1
            continue
        index = _INDEX.match(path, at)
        if index is None:
            raise _NoPath
        yield int(index[1])
        at = index.end()


_KEY = re.compile(r"(?:\\[.\[\]\\]|[^.\[])*", re.DOTALL)
"""A key up to the next point or bracket that no backslash takes into it."""
_ESCAPE = re.compile(r"\\([.\[\]\\])")
_INDEX = re.compile(r"\[([0-9]{1,18})\](?=[.\[]|\Z)")


def _put(holder: Any, steps: list[str | int], value: Any) -> Any:
    """A copy of the holder with the value at the path. Raises _NoPath where a step does not fit."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if not isinstance(holder, dict):
            raise _NoPath
        return {**holder, step: _put(holder.get(step, {}) if rest else None, rest, value)}
    if not isinstance(holder, list) or step >= len(holder):
        raise _NoPath
    return [*holder[:step], _put(holder[step], rest, value), *holder[step + 1 :]]


def _set(value: Any, path: str | None, new: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict) or path is None:
        return None
    try:
        result: dict[str, Any] = _put(value, list(_segments(path)), new)
    except _NoPath:
        return None
    return result


def _without(holder: Any, steps: list[str | int]) -> Any:
    """A copy of the holder without the entry at the path. Raises _NoPath where the path leads nowhere."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if not isinstance(holder, dict) or step not in holder:
            raise _NoPath
        return {**holder, step: _without(holder[step], rest)} if rest else _remove_field(holder, step)
    if not isinstance(holder, list) or step >= len(holder):
        raise _NoPath
    return [*holder[:step], *([_without(holder[step], rest)] if rest else []), *holder[step + 1 :]]


def _unset(value: Any, path: str) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    try:
        result: dict[str, Any] = _without(value, list(_segments(path)))
    except _NoPath:
        return value
    return result


def _merge(value: Any, other: Any) -> dict[str, Any] | None:
    return {**value, **other} if isinstance(value, dict) and isinstance(other, dict) else None


def _remove_field(value: Any, key: str) -> dict[str, Any] | None:
    return {name: member for name, member in value.items() if name != key} if isinstance(value, dict) else None


def _entry(name: str, doc: str, example: tuple[str, str], python: Any, **more: Any) -> None:
    settings = {"receiver": ANY, "returns": MAP.or_null, "category": "Map", "section": "Map Methods", **more}
    register(Builtin(name=name, doc=doc, examples=(example,), python=python, **settings))


_entry("keys", "The keys, in their order.", ("profile.keys()", '["name","address"]'),
       lambda value: list(value) if isinstance(value, dict) else None, returns=ARRAY.or_null)  # fmt: skip
_entry("values", "The values, in their order.", ('profile.set("address", 1).values()', '["Alice",1]'),
       lambda value: list(value.values()) if isinstance(value, dict) else None, returns=ARRAY.or_null)  # fmt: skip
_entry("merge", "The entries of both maps; the argument's entries win.", ('profile["address"].merge(profile)["name"]', "Alice"),
       _merge, params=(Param("other", MAP),))  # fmt: skip
_entry("set", "The map with an entry set; the key may be a path such as `a.b[0].c`, with `\\.` for a point in a key. Missing maps are made. A path that does not fit gives null.",
       ('profile.set("address.city", "NYC")', '{"name":"Alice","address":{"city":"NYC"}}'), _set,
       params=(Param("key", STRING), Param("value", ANY)), null_arguments=True)  # fmt: skip
_entry("unset", "The map without the entry at a path such as `a.b[0].c`, with `\\.` for a point in a key; later elements of an array move up. Unchanged where the path leads nowhere.",
       ('profile.set("x.y", 1).unset("x.y")["x"]', "{}"), _unset, params=(Param("path", STRING),))  # fmt: skip
_entry("remove_field", "The map without an entry; the key is no path.", ('profile.remove_field("address")', '{"name":"Alice"}'),
       _remove_field, params=(Param("key", STRING),))  # fmt: skip
