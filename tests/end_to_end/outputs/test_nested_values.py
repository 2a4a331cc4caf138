"""Arrays and maps that CXL makes, from records that are corrected to files that nest, and names that only the data brings together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pipelines import Folder, command, jsonl

PIPELINE = """\
pipeline: { name: items }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: json
      path: orders.ndjson
      options: { format: ndjson }
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: "ship.city", type: string }, { name: lines, type: array }]
  - type: transform
    name: kept
    input: orders
    config:
      cxl: |
        emit kept = [{sku: l.sku, total: l.qty * 100 / l.parts} for l in lines if l.qty > 0]
        emit firsts = {[kept[0].sku ?? "none"]: kept.length(), id: id}.unset("id")
  - { type: aggregate, name: cities, input: kept, config: { group_by: ["ship.city"], cxl: "emit all = {n: count(*), ids: [i * 10 for i in collect(id)]}" } }
  - { type: output, name: o1, input: kept, config: { name: o1, type: json, path: kept.ndjson, exclude: [lines], preserve_nulls: true, options: { format: ndjson, nested: true } } }
  - { type: output, name: o2, input: cities, config: { name: o2, type: xml, path: cities.xml, mapping: { city: ship.city } } }
"""
Order = tuple[int, str, list[dict[str, Any]] | None]
LINE = {"sku": "A", "qty": 2, "parts": 1}
STEPS: tuple[list[Order], ...] = (
    [(1, "LA", [LINE, {"sku": "B", "qty": 0, "parts": 0}]), (2, "LA", []), (3, "NY", None), (4, "NY", [{"sku": "C", "qty": 1, "parts": 0}])],
    [(1, "LA", [LINE | {"qty": 5}]), (2, "NY", [LINE, LINE]), (4, "NY", [{"sku": "C", "qty": 1, "parts": 4}])],
    [(1, "LA", [LINE | {"sku": None}]), (2, "NY", [LINE | {"sku": 7}]), (5, "LA", [])],
)


def kept(lines: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The lines that are kept; raises ZeroDivisionError where the record fails."""
    return None if lines is None else [{"sku": one["sku"], "total": one["qty"] * 100 // one["parts"]} for one in lines if one["qty"] > 0]


def model(orders: list[Order]) -> tuple[list[dict[str, Any]], dict[str, list[int]]]:
    """The records of the JSON output, and the orders of each city."""
    rows, cities = [], dict[str, list[int]]()
    for id_, city, lines in orders:
        try:
            found = kept(lines)
        except ZeroDivisionError:
            continue
        key = (found[0]["sku"] if found else None) or "none"
        if not isinstance(key, str):
            continue
        rows.append({"id": id_, "ship": {"city": city}, "kept": found, "firsts": {key: None if found is None else len(found)}})
        cities.setdefault(city, []).append(id_ * 10)
    return rows, cities


def written(folder: Folder, orders: list[Order]) -> None:
    folder.write("orders.ndjson", "".join(json.dumps({"id": id_, "ship": {"city": city}, "lines": lines}) + "\n" for id_, city, lines in orders))


def outputs(folder: Folder) -> list[str]:
    return [folder.text(name) for name in ("kept.ndjson", "cities.xml")]


def xml_of(cities: dict[str, list[int]]) -> str:
    records = "".join(
        f"<Record><city>{city}</city><all><n>{len(ids)}</n>{''.join(f'<ids>{one}</ids>' for one in ids)}</all></Record>\n" for city, ids in sorted(cities.items())
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Root>\n{records}</Root>\n'


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_history_of_nested_values_ends_as_full_runs_do(tmp_path: Path, engine: str) -> None:
    folder = Folder(tmp_path / "history", engine)
    folder.write("pipeline.yaml", PIPELINE)
    for number, orders in enumerate(STEPS):
        written(folder, orders)
        folder.run()
        rows, cities = model(orders)
        assert jsonl(folder.text("kept.ndjson")) == rows
        assert folder.text("cities.xml") == xml_of(cities)
        assert folder.violations() == []
        full = Folder(tmp_path / f"full{number}", engine)
        full.write("pipeline.yaml", PIPELINE)
        written(full, orders)
        full.run()
        assert outputs(full) == outputs(folder)


@pytest.mark.parametrize(("options", "exit_code"), [("{ format: ndjson, nested: true }", 4), ("{ format: ndjson }", 0)])
def test_undeclared_names_that_cannot_both_nest_end_the_run(tmp_path: Path, options: str, exit_code: int) -> None:
    folder = Folder(tmp_path)
    folder.write("s.csv", "id,a,a.b\n1,2,3\n")
    folder.write(
        "pipeline.yaml",
        "pipeline: { name: clash }\nnodes:\n  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [{ name: id, type: int }] } }\n"
        f"  - {{ type: output, name: out, input: s, config: {{ name: out, type: json, path: out.ndjson, options: {options} }} }}\n",
    )
    code, _, stderr = command("run", str(tmp_path / "pipeline.yaml"), "--engine", "sail")
    assert code == exit_code, stderr
    assert (tmp_path / "out.ndjson").exists() == (exit_code == 0)
    assert ("E329: columns 'a' and 'a.b' cannot both be written" in stderr) == (exit_code == 4)


def test_the_way_out_of_a_map_in_a_flat_output_names_the_column_as_exclude_takes_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("s.ndjson", '{"id":1,"place":{"city":"LA"}}\n')
    out = "name: out, type: csv, path: out.csv, mapping: { where: place }"
    text = (
        "pipeline: { name: flat }\nnodes:\n"
        "  - { type: source, name: s, config: { name: s, type: json, path: s.ndjson, options: { format: ndjson }, schema: [{ name: id, type: int }, { name: place, type: map }] } }\n"
        f"  - {{ type: output, name: out, input: s, config: {{ {out} }} }}\n"
    )
    folder.write("pipeline.yaml", text)
    code, _, stderr = command("check", str(tmp_path / "pipeline.yaml"))
    assert (code, "column 'where' of output 'out' is a map" in stderr, "exclude: [place]" in stderr) == (1, True, True)
    folder.write("pipeline.yaml", text.replace("mapping: { where: place }", "exclude: [place]"))
    assert command("check", str(tmp_path / "pipeline.yaml"))[0] == 0
