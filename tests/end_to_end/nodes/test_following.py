"""A node that follows its deltas, one that computes all rows by counts known beforehand, and one that turns to that on the way: all write the same op rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from operators.core import following
from operators.core.delta import Delta
from operators.core.operator import Keyed, Operator
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: ways }
changelog: { persist: all }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      path: rows.csv
      merge: { strategy: snapshot, primary_key: [id] }
      watermark: { column: at }
      schema: [{ name: id, type: int }, { name: g, type: int }, { name: k, type: string }, { name: v, type: float }, { name: at, type: date_time }]
  - { type: source, name: items, config: { name: items, type: csv, path: items.csv, merge: { strategy: snapshot, primary_key: [g] }, schema: [{ name: g, type: int }, { name: low, type: float }] } }
  - { type: aggregate, name: sums, input: rows, config: { group_by: [g], cxl: "emit n = count(*)\\nemit total = sum(v)\\nemit low = min(v)\\nemit share = 1.0 / sum(v)" } }
  - { type: aggregate, name: lists, input: rows, config: { group_by: [g], cxl: "emit ids = collect(id)" } }
  - { type: aggregate, name: whole, input: rows, config: { group_by: [], cxl: "emit words = collect(k)" } }
  - { type: transform, name: kinds, input: rows, config: { cxl: "distinct by k" } }
  - { type: transform, name: chain, input: rows, config: { cxl: "distinct by k\\ndistinct by g\\nemit one = id" } }
  - type: transform
    name: running
    input: rows
    config: { analytic_window: { partition_by: [g], sort_by: [{ field: at }, { field: id }] }, cxl: "emit so_far = $window.sum(v)\\nemit place = $window.row_number()" }
  - { type: combine, name: firsts, input: { r: rows, i: items }, config: { where: "r.g == i.g", match: first, propagate_ck: driver, cxl: "emit id = r.id\\nemit over = 10 / (r.v - i.low)" } }
  - { type: combine, name: alls, input: { r: rows, i: items }, config: { where: "r.g == i.g and r.v >= i.low", match: all, on_miss: skip, propagate_ck: driver, cxl: "emit id = r.id\\nemit low = i.low" } }
  - { type: combine, name: bands, input: { r: rows, i: items }, config: { where: "r.v >= i.low and r.v <= i.low + 2", match: all, propagate_ck: driver, cxl: "emit id = r.id\\nemit g = i.g" } }
  - { type: aggregate, name: hours, input: rows, config: { group_by: [g], time_window: { tumbling: { size: 1h } }, allowed_lateness: 2h, cxl: "emit n = count(*)" } }
  - { type: aggregate, name: visits, input: rows, config: { group_by: [g], time_window: { session: { gap: 30m } }, allowed_lateness: 4h, cxl: "emit n = count(*)\\nemit most = max(v)" } }
  - { type: output, name: versions, input: rows, config: { name: versions, type: csv, path: out/versions.csv, history: { key: [k], valid_from: at } } }
  - { type: output, name: recorded, input: rows, config: { name: recorded, type: csv, path: out/recorded.csv, history: { key: [k], recorded: epoch } } }
  - { type: output, name: both, input: rows, config: { name: both, type: csv, path: out/both.csv, history: { key: [g], valid_from: at, recorded: epoch } } }
"""
KEYED = ("sums", "lists", "whole", "kinds", "chain", "running", "firsts", "alls", "bands", "hours", "visits", "versions", "recorded", "both")
NAMES = ("id", "g", "k", "v", "at")
WAYS = ("followed", "anew", "turned")


@dataclass
class Data:
    """The records and items of the sources, by their keys."""

    chance: random.Random
    records: dict[int, list[object]] = field(default_factory=dict)
    items: dict[int, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Fill both."""
        self.records = {one: self._made() for one in range(60)}
        self.items = {g: float(self.chance.randrange(8)) for g in range(7)}

    def change(self) -> None:
        """Correct, remove and add some records, and change an item."""
        for one in self.chance.sample(sorted(self.records), 5):
            self.records[one] = self._made()
        for one in self.chance.sample(sorted(self.records), 3):
            del self.records[one]
        first = max(self.records) + 1
        self.records |= {one: self._made() for one in range(first, first + 4)}
        self.items[self.chance.randrange(8)] = float(self.chance.randrange(8))

    def _made(self) -> list[object]:
        at = datetime(2026, 3, 1) + timedelta(minutes=7 * self.chance.randrange(100))
        value = self.chance.choice([None, *range(8)])
        return [self.chance.randrange(7), f"k{self.chance.randrange(12)}", value, at.isoformat()]

    def lay_out(self, folder: Folder) -> None:
        """Write the files."""
        folder.write_csv("rows.csv", NAMES, [dict(zip(NAMES, [one, *values], strict=True)) for one, values in self.records.items()])
        folder.write_csv("items.csv", ["g", "low"], [{"g": g, "low": low} for g, low in self.items.items()])


def forced(patch: pytest.MonkeyPatch, way: str) -> None:
    """Let all keyed nodes go one way."""
    if way == "followed":
        patch.setattr(following, "may_choose", lambda operator, context: False)
    else:
        patch.setattr(following, "are_too_many", lambda operator, context: way == "anew" and isinstance(operator, Keyed) and not context.first)
        patch.setattr(following, "ENOUGH", 0)
        patch.setattr(following, "exceed", lambda rows, most, held: way == "turned")


def noting(patch: pytest.MonkeyPatch, rebuilt: set[str]) -> None:
    """Note the nodes that compute all of their rows."""
    for kind in subclasses(Keyed):
        if "rebuild" in vars(kind):
            patch.setattr(kind, "rebuild", noted(vars(kind)["rebuild"], rebuilt))


def noted(rebuild: Callable[..., Delta], rebuilt: set[str]) -> Callable[..., Delta]:
    """A function that notes the node, and calls another."""

    def wrapped(self: Operator, *given: object, **named: object) -> Delta:
        rebuilt.add(self.name)
        return rebuild(self, *given, **named)

    return wrapped


def subclasses(kind: type) -> list[type]:
    """A class and all classes that inherit from it."""
    return [kind, *(below for one in kind.__subclasses__() for below in subclasses(one))]


def op_rows(folder: Folder, node: str) -> list[dict[str, object]]:
    """All op rows of a node, as they are stored."""
    rows = pa.table(DeltaTable(folder.path / f".errata/ways/changelog/{node}").to_pyarrow_dataset().to_table()).to_pylist()
    return sorted(rows, key=lambda row: (row["_epoch"], row["_key"], row["_op"]))


def test_all_ways_write_the_same_op_rows(tmp_path: Path) -> None:
    data, rebuilt = Data(random.Random(24)), dict[str, set[str]]()
    folders = {way: Folder(tmp_path / way) for way in WAYS}
    data.begin()
    for turn in range(3):
        if turn:
            data.change()
        codes = set()
        for way, folder in folders.items():
            data.lay_out(folder)
            folder.write("pipeline.yaml", PIPELINE)
            with pytest.MonkeyPatch.context() as patch:
                forced(patch, way)
                noting(patch, rebuilt.setdefault(way, set()))
                codes.add(folder.run().exit_code)
        assert len(codes) == 1
    for node in KEYED:
        expected = op_rows(folders["followed"], node)
        assert expected
        for way in WAYS[1:]:
            assert op_rows(folders[way], node) == expected, (node, way)
    assert folders["turned"].violations() == []
    assert rebuilt["followed"] == set()
    assert rebuilt["anew"] == set(KEYED)
    assert rebuilt["turned"] >= set(KEYED) - {"sums", "bands"}  # of few op rows accumulators look nothing up, and bands lead to all drivers anyway
