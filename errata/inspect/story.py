"""The way of one live row up to its source records, as a tree of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from changelog.columns import column
from errata.inspect.snapshot import Snapshot
from errata.inspect.why import LineageWalk, applied_corrections, record_versions
from storage.values.python_rows import dictionaries

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UpstreamRows:
    """The rows of one node from which a row is made.

    Attributes:
        name: The node.
        kind: Its type.
        count: How many of its rows have a part.
        rows: The first of them, by key in hexadecimal, with their data.
        records: Of a source, the versions of these records; of it and of a node of corrections, the entries that hold for them, without an op (`errata.inspect.why`).
        inputs: The same of each node that it reads. A node that was described before has neither rows nor inputs (`repeated`).
        repeated: Whether the node was described before in the tree.
    """

    name: str
    kind: str
    count: int
    rows: tuple[tuple[str, Row], ...] = ()
    records: tuple[Row, ...] = ()
    inputs: tuple[UpstreamRows, ...] = ()
    repeated: bool = False


def tree(reading: Snapshot, name: str, key: bytes, most: int = 10) -> UpstreamRows:
    """Return the rows upstream of a live row.

    Args:
        reading: The state.
        name: The node that has the row.
        key: The row's key.
        most: How many rows of each node are shown.

    Raises:
        Usage: The pipeline is not the one that last ran.
    """
    trail = LineageWalk(reading)
    return _Tree(reading, trail, {node: found for node, found in trail.upstream(name, {key}).items() if found}, most).of(name)


class _Tree:
    def __init__(self, reading: Snapshot, trail: LineageWalk, keys: Mapping[str, set[bytes]], most: int) -> None:
        self.reading = reading
        self.trail = trail
        self.keys = keys
        self.most = most
        self.described: set[str] = set()

    def of(self, name: str) -> UpstreamRows:
        """A node with the rows upstream of its own."""
        node, keys = self.trail.plan[name], self.keys[name]
        if name in self.described:
            return UpstreamRows(name, node.kind, len(keys), repeated=True)
        self.described.add(name)
        shown = set(sorted(keys)[: self.most])
        applied = tuple(applied_corrections(self.trail, node, keys))[: self.most]
        if node.is_source:
            return UpstreamRows(name, node.kind, len(keys), records=(*record_versions(self.trail, name, shown), *applied))
        above = dict.fromkeys(above for above, _ in node.inputs if above in self.keys)
        return UpstreamRows(name, node.kind, len(keys), tuple(self._rows(name, shown)), applied, tuple(self.of(one) for one in above))

    def _rows(self, name: str, keys: set[bytes]) -> Iterator[tuple[str, Row]]:
        node = self.reading.committed(name)
        live = self.trail.live(self.trail.plan[name], self.reading.last).as_frame()
        found = live.join(self.trail.engine.keys_frame(keys), "_key", "left_semi").select("_key", *map(column, node.shown))
        for row in sorted(dictionaries(self.trail.engine.to_arrow(found)), key=lambda row: bytes(row["_key"])):
            yield bytes(row["_key"]).hex(), node.values(row)
