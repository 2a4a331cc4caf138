"""Names and where they occur.

A node is known by its file and name; a column by the node that gives it. A column that passes on to the next node is the same name there, so all its places
make one group: they are renamed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from errata.editor.positions import Region

Kind = Literal["node", "column", "port", "qualifier", "let", "function", "variable", "parameter", "module"]


@dataclass(frozen=True, slots=True)
class Name:
    """The thing that a name stands for.

    Args:
        owner: What it belongs to: the file of a node, the node of a column, the node or program of the others.
    """

    kind: Kind
    owner: str
    name: str


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place of a name. `defines`: whether it is made there."""

    region: Region
    name: Name
    defines: bool = False


@dataclass(slots=True)
class Names:
    """All places of names, and which names are one.

    Args:
        passes: The columns of its inputs that a column of a node may come from.
    """

    found: list[Occurrence] = field(default_factory=list)
    passes: dict[Name, list[Name]] = field(default_factory=dict)
    _group: dict[Name, Name] = field(default_factory=dict)

    def add(self, region: Region | None, name: Name, *, defines: bool = False) -> None:
        """Record a place. One that is not known is left out."""
        if region is not None:
            self.found.append(Occurrence(region, name, defines))

    def join(self, one: Name, other: Name) -> None:
        """Record that two names are one."""
        first, second = self.group(one), self.group(other)
        if first != second:
            self._group[second] = first

    def passed(self, name: Name, source: Name) -> None:
        """Record that a column comes from one of an input under the same name."""
        self.passes.setdefault(name, []).append(source)
        self.join(source, name)

    def group(self, name: Name) -> Name:
        """Return the one name of a group: equal for all names that are one."""
        trail: list[Name] = []
        while name in self._group:
            trail.append(name)
            name = self._group[name]
        for one in trail:
            self._group[one] = name
        return name

    def join_shared(self) -> None:
        """Make names one that share a place: a composition that is used twice has one text."""
        at: dict[tuple[str, int, int], Name] = {}
        for one in self.found:
            other = at.setdefault(one.region.key, one.name)
            if other != one.name and other.kind == one.name.kind:
                self.join(other, one.name)

    def at(self, file: str, offset: int) -> Occurrence | None:
        """Return the innermost name at a place."""
        here = [one for one in self.found if one.region.file == file and one.region.start <= offset <= one.region.end]
        return min(here, key=lambda one: one.region.end - one.region.start, default=None)

    def places(self, name: Name) -> list[Occurrence]:
        """Return every place of a name, each once, in the order of the files."""
        wanted = self.group(name)
        found: dict[tuple[str, int, int], Occurrence] = {}
        for one in self.found:
            if self.group(one.name) == wanted and (one.region.key not in found or one.defines):
                found[one.region.key] = one
        return [found[key] for key in sorted(found)]

    def definitions(self, name: Name) -> list[Region]:
        """Return where a name is made: of a column, the nearest places upstream."""
        own = self._made()
        if name.kind != "column":
            return _once(region for one, regions in own.items() if self.group(one) == self.group(name) for region in regions)
        found: list[Region] = []
        seen: set[Name] = set()
        turn = [name]
        while turn:
            one = turn.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in own:
                found += own[one]
            else:
                turn += reversed(self.passes.get(one, ()))
        return _once(found)

    def makers(self, name: Name) -> list[Name]:
        """Return the columns upstream that are made under this name, the nearest ones."""
        own = self._made()
        found: dict[Name, None] = {}
        seen: set[Name] = set()
        turn = [name]
        while turn:
            one = turn.pop()
            if one not in seen:
                seen.add(one)
                found |= {one: None} if one in own else {}
                turn += [] if one in own else reversed(self.passes.get(one, ()))
        return list(found)

    def _made(self) -> Mapping[Name, list[Region]]:
        made: dict[Name, list[Region]] = {}
        for one in self.found:
            if one.defines:
                made.setdefault(one.name, []).append(one.region)
        return made


def _once(regions: Iterable[Region]) -> list[Region]:
    return list({region.key: region for region in regions}.values())
