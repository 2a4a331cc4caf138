"""Changed rows for people: the values that changed, old and new, apart from what stayed."""

from collections.abc import Mapping
from typing import Any

from errata.rendering.rows import cell

Row = Mapping[str, Any]
ARROW = "→"


def changed_values(change: Row) -> dict[str, str]:
    """Return `old → new` by column, for each value of a corrected row that changes, if only in the digits of a decimal."""
    before, after = change["before"], change["after"]
    if before is None or after is None:
        return {}
    cells = {name: (_shown(before.get(name)), _shown(value)) for name, value in after.items()}
    return {name: f"{old} {ARROW} {new}" for name, (old, new) in cells.items() if old != new or not _same(before.get(name), after[name])}


def in_short(change: Row) -> Row:
    """Return a changed row as one line of a table: its first value, which is most often the key, then what changed, then the others."""
    row = change["after"] if change["after"] is not None else change["before"]
    changed = changed_values(change)
    first = list(row)[:1]
    names = dict.fromkeys([*first, *changed, *row])
    values = ", ".join(f"{name}: {changed.get(name) or _shown(row[name])}" for name in names)
    return {**{name: value for name, value in change.items() if name not in ("before", "after")}, "row": values}


def _same(old: Any, new: Any) -> bool:
    """Whether a value stays. NaN is NaN."""
    return bool(old == new or (old != old and new != new))  # noqa: PLR0124  # only NaN is not itself


def _shown(value: Any) -> str:
    """The text of a value within a line, where an empty text would not be seen."""
    return "null" if value is None else cell(value)
