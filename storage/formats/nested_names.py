r"""Names of columns taken apart at their points: `address.city` is the member `city` of `address`. `\.` is a point of the name, `\\` a backslash."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_STEP = re.compile(r"(?:\\[.\\]|[^.])*", re.DOTALL)
_ESCAPED = re.compile(r"\\([.\\])")


def steps_of(name: str) -> tuple[str, ...]:
    """The steps of a name."""
    steps, at = [], 0
    while True:
        found = _STEP.match(name, at)
        assert found is not None
        steps.append(_ESCAPED.sub(r"\1", found[0]))
        if found.end() == len(name):
            return tuple(steps)
        at = found.end() + 1


def clash(names: Iterable[str], *, attributes: bool = False) -> tuple[str, str] | None:
    """Two names that cannot both be written, the one that is found later last; None where there are none.

    Args:
        attributes: whether a last step that begins with `@` goes beside the text of its element
    """
    values: dict[tuple[str, ...], str] = {}
    holders: dict[tuple[str, ...], str] = {}
    for name in names:
        steps = steps_of(name)
        owners = [steps[:size] for size in range(1, len(steps))]
        if attributes and steps[-1].startswith("@"):
            del owners[-1:]
        other = values.get(steps) or holders.get(steps) or _first(values, owners)
        if other is not None:
            return other, name
        values[steps] = name
        for owner in owners:
            holders.setdefault(owner, name)
    return None


def _first(values: dict[tuple[str, ...], str], owners: Collection[tuple[str, ...]]) -> str | None:
    return next((values[owner] for owner in owners if owner in values), None)
