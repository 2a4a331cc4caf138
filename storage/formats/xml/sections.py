"""The sections of a document, found in one pass of expat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from typing_extensions import TypeAliasType, override

from storage.formats import limits
from storage.formats.xml.collector import BeyondError, Collector, Fields, Record

_Ways = TypeAliasType("_Ways", "dict[str, _Ways]")


class SectionCollector(Collector):
    """Passes the events of expat to a collector for each section, except for elements that no section's path leads through.

    `take` is called with a section's name and the fields of each element at its path.
    """

    def __init__(self, sections: Mapping[str, Collector], take: Callable[[str, Fields], None]) -> None:
        first = next(iter(sections.values()))
        super().__init__(None, first.prefix, (), strip=first.strip)
        self.sections, self.take = sections, take
        self.collectors = list(sections.values())
        self.ways = [_tree(self.collectors)]
        """For each open element the names below it that lead to sections, as a tree."""
        self.skipped = 0
        """The number of open elements that no path leads through."""

    @override
    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.depth += 1
        if self.depth > limits.DEPTH:
            raise BeyondError(limits.too_deep)
        name = self.plain(tag)
        if self.skipped or not (name in self.ways[-1] or self.node is not None or self._is_section()):
            self.skipped += 1
            return
        self.ways.append(self.ways[-1].get(name, {}))
        self.tags.append(tag)
        for collector in self.collectors:
            collector.start(tag, attributes)
        self._notice()

    @override
    def end(self, tag: str) -> None:
        self.depth -= 1
        if self.skipped:
            self.skipped -= 1
            return
        self.ways.pop()
        self.tags.pop()
        for collector in self.collectors:
            collector.end(tag)
        self._notice()

    @override
    def characters(self, text: str) -> None:
        if not self.skipped:
            for collector in self.collectors:
                collector.characters(text)

    @override
    def taken(self) -> list[Record]:
        for name, collector in self.sections.items():
            for fields, _, _ in collector.taken():
                self.take(name, fields)
        self.records = []
        return []

    def _is_section(self) -> bool:
        """Whether the element that opens is the root, and a section's path names just that."""
        return not self.tags and any(not collector.steps for collector in self.collectors)

    def _notice(self) -> None:
        """Set what the scan reads: the node of an open section and the records of a complete one."""
        self.node = next((collector.node for collector in self.collectors if collector.node is not None), None)
        self.records = next((collector.records for collector in self.collectors if collector.records), [])


def _tree(collectors: Iterable[Collector]) -> _Ways:
    tree: _Ways = {}
    for collector in collectors:
        below = tree
        for step in collector.steps:
            below = below.setdefault(step, {})
    return tree
