"""A plain model of outputs with a history: versions by event time, by recording, and by both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of the input: the thing, from when it holds, what it says, whether the thing ended."""

    thing: str | None
    since: int | None
    said: tuple[Any, ...]
    ended: bool | None = False


Facts = Mapping[int, Fact]
"""The live rows of the input by key."""
Version = tuple[str | None, int | None, tuple[Any, ...], int | None, int | None]
"""Thing, since, what it says, valid from, valid to."""


def printed(value: Any) -> Any:
    """A value that equals another one exactly where both print the same."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    return tuple(map(printed, value)) if isinstance(value, tuple) else value


def by_time(facts: Facts) -> list[Version]:
    """The versions of all things by event time."""
    found: list[Version] = []
    for thing in {fact.thing for fact in facts.values()}:
        last = {fact.since: fact for _, fact in sorted(facts.items()) if fact.thing == thing and fact.since is not None}
        versions: list[Fact] = []
        for _, fact in sorted(last.items()):
            if not versions or (printed(versions[-1].said), bool(versions[-1].ended)) != (printed(fact.said), bool(fact.ended)):
                versions.append(fact)
        for fact, end in zip(versions, [*(one.since for one in versions), None][1:], strict=True):
            found += [] if fact.ended else [(thing, fact.since, fact.said, fact.since, end)]
    return found


def untimed(facts: Facts) -> list[int]:
    """The keys of the rows without a time."""
    return sorted(key for key, fact in facts.items() if fact.since is None)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A version, the row that it comes from, and the epochs of its begin and its end."""

    version: Version
    key: int
    begin: int
    end: int | None = None


@dataclass
class Recording:
    """The recorded content of the output in each epoch. `timed`: whether versions by event time are recorded."""

    timed: bool
    rows: list[Recorded] = field(default_factory=list)

    def tell(self, epoch: int, facts: Facts) -> None:
        """Record what the input says in an epoch."""
        if self.timed:
            versions = [(0, version) for version in by_time(facts)]
        else:
            versions = [(key, (fact.thing, fact.since, fact.said, None, None)) for key, fact in sorted(facts.items()) if not fact.ended]
        open_rows = [row for row in self.rows if row.end is None]
        kept: list[Recorded] = []
        for exact in (True, False):
            for key, version in list(versions):
                same = [row for row in open_rows if printed(row.version) == printed(version) and (row.key == key or not exact)]
                if same:
                    versions.remove((key, version))
                    open_rows.remove(first := min(same, key=lambda row: (row.begin, row.key)))
                    kept.append(first)
        closed = [row for row in self.rows if row.end is not None]
        self.rows = [*closed, *kept, *(replace(row, end=epoch) for row in open_rows), *(Recorded(version, key, epoch) for key, version in versions)]

    def in_order(self) -> list[Recorded]:
        """The rows as a file has them."""
        return sorted(self.rows, key=lambda row: (row.version[0] is None, row.version[0] or "", row.version[3] or 0, row.begin, row.key))


def in_order(versions: Sequence[Version]) -> list[Version]:
    """Versions as a file has them."""
    return sorted(versions, key=lambda row: (row[0] is None, row[0] or "", row[3]))
