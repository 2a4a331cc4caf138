"""Which keys of nodes name columns, and whose: the node's own, or an input's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Path = tuple[str | int, ...]
Side = Literal["own", "input", "last input", "written"]
"""Whose columns: the node's, its first input's, its last input's (the rows of a window), or an input's before what an output writes."""


@dataclass(frozen=True, slots=True)
class ColumnKey:
    """A key whose texts, or whose keys, name columns.

    Args:
        path: The way from the node down; `*` is any name or position, and a list stands for each of its texts.
        names: Whether the keys of the map name the columns.
        defines: Whether the column is made here.
    """

    path: tuple[str, ...]
    side: Side
    names: bool = False
    defines: bool = False


COLUMN_KEYS: Mapping[str, tuple[ColumnKey, ...]] = {
    "source": (
        ColumnKey(("config", "schema", "*", "name"), "own", defines=True),
        *(ColumnKey(("config", "merge", key), "own") for key in ("primary_key", "compare", "op", "cursor", "scope")),
        ColumnKey(("config", "merge", "version_field"), "own"),
        ColumnKey(("config", "merge", "of", "*"), "own"),
        ColumnKey(("config", "merge", "of"), "own", names=True),
        ColumnKey(("config", "watermark", "column"), "own"),
        ColumnKey(("config", "correlation_key"), "own"),
        ColumnKey(("config", "sort_order"), "own"),
        ColumnKey(("config", "sort_order", "*", "field"), "own"),
    ),
    "transform": (
        ColumnKey(("config", "validations", "*", "field"), "own"),
        ColumnKey(("config", "log", "*", "fields"), "own"),
        ColumnKey(("config", "analytic_window", "on"), "input"),
        ColumnKey(("config", "analytic_window", "group_by"), "last input"),
        ColumnKey(("config", "analytic_window", "partition_by"), "last input"),
        ColumnKey(("config", "analytic_window", "sort_by"), "last input"),
        ColumnKey(("config", "analytic_window", "sort_by", "*", "field"), "last input"),
    ),
    "aggregate": (ColumnKey(("config", "group_by"), "input"),),
    "corrections": (ColumnKey(("config", "key"), "input"),),
    "combine": (ColumnKey(("config", "propagate_ck", "named"), "input"),),
    "output": (
        ColumnKey(("config", "mapping", "*"), "input"),
        ColumnKey(("config", "mapping"), "own", names=True, defines=True),
        ColumnKey(("config", "exclude"), "input"),
        ColumnKey(("config", "schema", "*", "name"), "written"),
        ColumnKey(("config", "sort_order"), "written"),
        ColumnKey(("config", "sort_order", "*", "field"), "written"),
        ColumnKey(("config", "split", "group_key"), "written"),
        ColumnKey(("config", "history", "key"), "written"),
        ColumnKey(("config", "history", "valid_from"), "written"),
        ColumnKey(("config", "closed", "into"), "written", names=True),
        ColumnKey(("config", "closed", "figures"), "written"),
        ColumnKey(("config", "primary_key"), "written"),
    ),
}
"""The keys that name columns, by node type."""
_OF_INPUT = ("output", "route")
"""Node types whose expectations look at the rows that come in."""


def column_keys(kind: object) -> tuple[ColumnKey, ...]:
    """Return the keys of a node type that name columns, with the keys of expectations."""
    side: Side = "input" if kind in _OF_INPUT else "own"
    lists = (ColumnKey(("expect", "*", key), side) for key in ("not_null", "unique"))
    single = (ColumnKey(("expect", "*", key, "column"), side) for key in ("values", "range", "matches", "freshness"))
    return (*COLUMN_KEYS.get(str(kind), ()), *lists, *single)


def column_key_at(kind: object, path: Path) -> ColumnKey | None:
    """Return the key at a place below a node; None where the place names no column."""
    return next((one for one in column_keys(kind) if not one.names and _fits(one.path, path)), None)


def _fits(pattern: tuple[str, ...], path: Path) -> bool:
    """Whether a path is that of a key, or of an entry of its list."""
    if len(path) == len(pattern) + 1 and isinstance(path[-1], int):
        path = path[:-1]
    return len(pattern) == len(path) and all(wanted in ("*", step) for wanted, step in zip(pattern, path, strict=True))


def spread(value: object, pattern: tuple[str, ...], path: Path = ()) -> Iterator[Path]:
    """Yield the paths of a plain value that a pattern fits."""
    if not pattern:
        yield path
    elif pattern[0] != "*":
        if isinstance(value, dict) and pattern[0] in value:
            yield from spread(value[pattern[0]], pattern[1:], (*path, pattern[0]))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from spread(inner, pattern[1:], (*path, str(name)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from spread(inner, pattern[1:], (*path, index))
