"""Incremental equals batch where the way of computing changes with size: on the driver or in the engine, files read by tasks or in chunks.

One pipeline with all kinds of nodes goes through deltas whose sizes lie around these limits. After each step its outputs are equal to the outputs of a full run.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from changelog.rows import Limits
from operators.source.reading import SMALL_BYTES
from tests.invariants.walking import written
from tests.support.pipelines import Folder

LIMITS = Limits()

PIPELINE = """\
pipeline: { name: large, vars: { pipeline: { most: { type: int, default: 0 } } } }
changelog: { persist: PERSIST }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      glob: rows/*.csv
      watermark: { column: at }
      MERGE
      schema: [{ name: id, type: int }, { name: g, type: int }, { name: k, type: string }, { name: v, type: int }, { name: at, type: date_time }]
  - type: source
    name: items
    config: { name: items, type: csv, path: items.csv, schema: [{ name: g, type: int }, { name: low, type: int }, { name: label, type: string }] }
  - { type: transform, name: parts, input: rows, config: { cxl: "emit twice = v * 2\\nfilter v != 13" } }
  - { type: route, name: sides, input: parts, config: { mode: exclusive, conditions: { even: "v % 2 == 0" }, default: odd } }
  - { type: transform, name: words, input: sides.even, config: { cxl: "emit each it in k.split(\\"-\\") { emit word = it }" } }
  - { type: merge, name: both, inputs: [sides.odd, sides.even], config: { mode: concat } }
  - { type: merge, name: woven, inputs: [sides.odd, sides.even], config: { mode: interleave } }
  - { type: aggregate, name: sums, input: both, config: { group_by: [g], cxl: "emit n = count(*)\\nemit total = sum(v)\\nemit mean = avg(twice)" } }
  - { type: aggregate, name: ends, input: both, config: { group_by: [g], cxl: "emit low = min(v)\\nemit high = max(v)\\nemit opened = first(id)\\nemit closed = last(id)\\nemit one = any(k)" } }
  - { type: aggregate, name: lists, input: words, config: { group_by: [word], cxl: "emit ids = collect(id)" } }
  - { type: aggregate, name: turns, input: woven, config: { group_by: [g], cxl: "emit opened = first(id)\\nemit closed = last(id)" } }
  - { type: transform, name: kinds, input: both, config: { cxl: "distinct by k" } }
  - type: transform
    name: behind
    input: parts
    config:
      analytic_window: { partition_by: [g], sort_by: [{ field: v }, { field: id }] }
      cxl: "emit before = $window.lag(1).v\\nemit place = $window.row_number()\\nemit running = $window.sum(v)\\nemit most = $window.max(v)"
  - { type: combine, name: firsts, input: { r: both, i: items }, config: { where: "r.g == i.g", match: first, propagate_ck: driver, cxl: "emit id = r.id\\nemit label = i.label" } }
  - { type: combine, name: alls, input: { r: parts, i: items }, config: { where: "r.g == i.g and r.v >= i.low", match: all, propagate_ck: driver, cxl: "emit id = r.id\\nemit label = i.label" } }
  - { type: combine, name: gathered, input: { i: items, r: parts }, config: { where: "i.g == r.g", match: collect, propagate_ck: driver, cxl: "" } }
  - { type: aggregate, name: hours, input: parts, config: { group_by: [g], time_window: { tumbling: { size: 1h } }, allowed_lateness: forever, cxl: "emit n = count(*)\\nemit high = max(v)" } }
  - { type: aggregate, name: visits, input: rows, config: { group_by: [g], time_window: { session: { gap: 3m } }, cxl: "emit n = count(*)\\nemit total = sum(v)" } }
  - { type: state, name: noted, input: parts, config: { scope: pipeline, set: [{ var: most, cxl: "max(v)" }] } }
  - { type: transform, name: told, input: noted, config: { cxl: "emit so_far = $pipeline.most" } }
"""
SHOWN = ("both", "words", "sums", "ends", "turns", "kinds", "behind", "firsts", "alls", "hours", "visits", "told")
IN_JSON = ("lists", "gathered")


def _output(node: str, form: str) -> str:
    return f"  - {{ type: output, name: {node}_out, input: {node}, config: {{ name: {node}_out, type: {form}, path: out/{node}.{form} }} }}\n"


OUTPUTS = "".join([*(_output(node, "csv") for node in SHOWN), *(_output(node, "json") for node in IN_JSON)])


@dataclass(frozen=True)
class Step:
    """How many records are corrected, removed and added in one run, and whether half of the items change."""

    corrected: int = 0
    removed: int = 0
    added: int = 0
    items: bool = False


@dataclass(frozen=True)
class Story:
    """How a pipeline keeps changelogs and reads its rows, how many of them there are at first, and what happens to them. `note`: the length of an undeclared column."""

    persist: str
    merge: str
    rows: int
    steps: Sequence[Step]
    note: int = 0

    @property
    def pipeline(self) -> str:
        """The text of the pipeline."""
        return PIPELINE.replace("PERSIST", self.persist).replace("MERGE", self.merge) + OUTPUTS


def stories() -> Sequence[Story]:
    """Sizes around the limits, and others by chance: a correction is two op rows. With notes, files grow from small ones to large ones, which are read in stretches."""
    chance = random.Random(7)
    half = LIMITS.small_rows // 2
    return (
        Story("all", "", half + 800, [Step(corrected=half + 1), Step(corrected=chance.randrange(4_000, half), removed=600, items=True)]),
        Story("boundaries", KEYED, half + 900, [Step(corrected=half), Step(corrected=chance.randrange(half + 1, half + 900), added=700, items=True)]),
        Story("all", KEYED, 300, [Step(added=LIMITS.small_rows - 1), Step(corrected=400, removed=half + 1)], note=SMALL_BYTES // 4_000),
        Story(chance.choice(["all", "boundaries"]), "", 900, [Step(added=chance.randrange(LIMITS.driver_rows, 120_000), items=True)]),
    )


KEYED = "merge: { strategy: snapshot, primary_key: [id] }"


class Rows:
    """The records and items of a story. A record that is corrected has another value, group, word and time."""

    def __init__(self, story: Story) -> None:
        self.chance, self.note = random.Random(story.rows), "x" * story.note
        self.records = [self._made(one) for one in range(story.rows)]
        self.items = [(g, self.chance.randrange(900), f"item {g}") for g in range(400)]

    def _made(self, one: int) -> tuple[int, int, str, int, str]:
        at = datetime(2026, 3, 1) + timedelta(seconds=one * 4 + self.chance.randrange(40))
        return one, self.chance.randrange(500), f"{one % 977}-{self.chance.randrange(50)}", self.chance.randrange(1_000), at.isoformat()

    def go(self, step: Step) -> None:
        """Change the records by a step."""
        for at in self.chance.sample(range(len(self.records)), step.corrected):
            self.records[at] = self._made(self.records[at][0])
        gone = set(self.chance.sample(range(len(self.records)), step.removed))
        self.records = [one for at, one in enumerate(self.records) if at not in gone]
        first = 1 + max(one[0] for one in self.records)
        self.records += [self._made(first + at) for at in range(step.added)]
        if step.items:
            self.items = [(g, low, label) if self.chance.random() < 0.5 else (g, self.chance.randrange(900), f"{label}+") for g, low, label in self.items]

    def lay_out(self, folder: Folder) -> None:
        """Write the files: earlier records in one, later ones in another."""
        (folder.path / "rows").mkdir(parents=True, exist_ok=True)
        for name, some in (("a", self.records[:5_000]), ("b", self.records[5_000:])):
            rows = pl.DataFrame(some, schema=["id", "g", "k", "v", "at"], orient="row")
            noted = rows.with_columns(note=pl.lit(self.note)) if self.note else rows
            noted.write_csv(folder.path / f"rows/{name}.csv")
        pl.DataFrame(self.items, schema=["g", "low", "label"], orient="row").write_csv(folder.path / "items.csv")


def walk(story: Story, place: Path, engine: str) -> None:
    """Run each step, and compare with a full run over the same files."""
    made, folder = Rows(story), Folder(place / "steps", engine)
    _ran(made, folder, story)
    for at, step in enumerate(story.steps):
        made.go(step)
        found, full = _ran(made, folder, story), _ran(made, Folder(place / f"full{at}", engine), story)
        assert sorted(found) == sorted(full)
        assert [name for name in full if found[name] != full[name]] == [], step
        shutil.rmtree(place / f"full{at}")


def _ran(made: Rows, folder: Folder, story: Story) -> Mapping[str, str]:
    """The files after a run, and its exit code."""
    made.lay_out(folder)
    folder.write("pipeline.yaml", story.pipeline)
    code = folder.run().exit_code
    return written(folder) | {"exit code": str(code)}


@pytest.mark.parametrize("number", range(len(stories())))
def test_deltas_of_any_size_end_as_a_full_run(tmp_path: Path, number: int) -> None:
    walk(stories()[number], tmp_path, "sail")


@pytest.mark.parametrize("engine", ["spark"])
def test_deltas_of_any_size_on_spark(tmp_path: Path, engine: str) -> None:
    story = stories()[0]
    walk(replace(story, steps=story.steps[:1]), tmp_path, engine)
