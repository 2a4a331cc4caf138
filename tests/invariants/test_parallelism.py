"""I8: the number of threads, and with it of partitions, changes no byte of an output and no row of a changelog; nor does a cluster."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from errata.core.options import EngineOptions
from storage.engines import stop_engines
from tests.support.pipelines import Folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders"
ROWS = 12_000  # beyond what is held on the driver, so that the engine cuts the rows into partitions
KEYS = 40
PIPELINE = """\
pipeline: { name: spread }
error_handling: { strategy: continue, dlq: { path: out/dlq.csv, include_source_row: true } }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      glob: rows/*.csv
      watermark: { column: ts, delay: 5m }
      schema: [{ name: id, type: int }, { name: k, type: string }, { name: v, type: float }, { name: w, type: int }, { name: ts, type: date_time }]
  - type: source
    name: items
    config: { name: items, type: csv, path: items.csv, schema: [{ name: k, type: string }, { name: low, type: int }, { name: label, type: string }] }
  - { type: transform, name: shares, input: rows, config: { cxl: "emit share = 100 / w\\nfilter v != 3.5" } }
  - { type: route, name: sized, input: shares, config: { conditions: { big: w > 5 }, default: small } }
  - { type: merge, name: again, inputs: [sized.small, sized.big] }
  - { type: transform, name: firsts, input: again, config: { cxl: "distinct by k" } }
  - type: aggregate
    name: sums
    input: again
    config: { group_by: [k], cxl: "emit total = sum(v)\\nemit mean = avg(v)\\nemit opened = first(id)\\nemit some = min(v)\\nemit n = count(*)" }
  - type: transform
    name: running
    input: rows
    config: { analytic_window: { partition_by: [k], sort_by: [w] }, cxl: "emit so_far = $window.sum(v)\\nemit place = $window.rank()\\nemit before = $window.lag(1).id" }
  - { type: aggregate, name: hours, input: rows, config: { group_by: [w], time_window: { tumbling: { size: 1h } }, cxl: "emit all = collect(id)" } }
  - type: combine
    name: joined
    input: { r: rows, i: items }
    config: { where: "r.k == i.k and r.w >= i.low", match: first, propagate_ck: driver, cxl: "emit id = r.id\\nemit label = i.label" }
"""
NODES = ("again", "firsts", "sums", "running", "hours", "joined")


def pipeline() -> str:
    outputs = (f"  - {{ type: output, name: {node}_out, input: {node}, config: {{ name: {node}_out, type: json, path: out/{node}.json }} }}\n" for node in NODES)
    return PIPELINE + "".join(outputs)


def records(changed: int) -> list[dict[str, Any]]:
    """The records; the first ones have other values once they are changed."""
    chance, other = random.Random(7), random.Random(8)
    rows = [_record(chance, number) for number in range(ROWS)]
    return [_record(other, number) for number in range(changed)] + rows[changed:]


def _record(chance: random.Random, number: int) -> dict[str, Any]:
    minute = number // 20 + chance.randrange(90)
    moment = f"2026-03-{2 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:00"
    key = "half" if chance.random() < 0.5 else f"k{chance.randrange(KEYS)}"
    return {"id": number, "k": key, "v": chance.choice([0.1, 0.2, 1e16, -1e16, 3.5, None]), "w": chance.randrange(-1, 9), "ts": moment}


def written(place: Path, engine: EngineOptions) -> dict[str, Any]:
    """The outputs after a first run and after one with corrections, and every changelog, by name."""
    folder = Folder(place, options={"engine": engine})
    folder.write("pipeline.yaml", pipeline())
    folder.write_csv("items.csv", ["k", "low", "label"], [{"k": f"k{number % KEYS}", "low": number % 7, "label": f"item {number}"} for number in range(3 * KEYS)])
    found: dict[str, Any] = {}
    for step, changed in enumerate((0, 30)):
        rows = records(changed)
        for name, part in (("a", rows[: ROWS // 3]), ("b", rows[ROWS // 3 :])):
            folder.write_csv(f"rows/{name}.csv", list(rows[0]), part)
        folder.run()
        found |= {f"{step} {node}": folder.text(f"out/{node}.json") for node in NODES}
    return found | {f"log {node}": folder.log(node) for node in ("firsts", "sums")}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return written(tmp_path_factory.mktemp("alone"), EngineOptions("sail", threads=1))


def test_any_number_of_threads_gives_the_same(tmp_path: Path, alone: dict[str, Any]) -> None:
    for name, content in written(tmp_path, EngineOptions("sail", threads=16)).items():
        assert content == alone[name], name


@pytest.mark.spark
@pytest.mark.deep
def test_executors_in_processes_of_their_own_give_the_same(tmp_path: Path, alone: dict[str, Any]) -> None:
    try:
        for name, content in written(tmp_path, EngineOptions("spark", master="local-cluster[2,1,1024]")).items():
            assert content == alone[name], name
    finally:
        stop_engines()


@pytest.mark.spark
def test_the_example_on_executors_in_processes_of_their_own(tmp_path: Path) -> None:
    found = []
    try:
        for place, engine in (("sail", EngineOptions("sail")), ("cluster", EngineOptions("spark", master="local-cluster[2,1,1024]"))):
            folder = Folder(shutil.copytree(EXAMPLE, tmp_path / place), options={"engine": engine})
            for _ in range(2):
                folder.run()
                found.append([folder.text("out/revenue.csv"), folder.log("revenue"), folder.log("valued")])
                shutil.copytree(folder.path / "corrected", folder.path / "data", dirs_exist_ok=True)
    finally:
        stop_engines()
    assert found[:2] == found[2:]
    assert found[0] != found[1]


@pytest.mark.parametrize("node", ["running", "joined"])
def test_rows_of_large_outputs_stand_in_the_order_of_their_records(alone: dict[str, Any], node: str) -> None:
    assert [row["id"] for row in json.loads(alone[f"0 {node}"])] == list(range(ROWS))
