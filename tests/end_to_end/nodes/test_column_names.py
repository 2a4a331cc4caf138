"""Columns whose names are no identifiers (a path into nested records, blanks, backticks) go through nodes that compute in Python, on both engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storage.engines import Engine
from tests.support.pipelines import Folder

SOURCE = """\
pipeline: { name: odd, vars: { source: { seen: { type: int, default: 0 } } } }
nodes:
  - { type: source, name: s, config: { name: s, type: json, glob: "in/*.ndjson", schema: [{ name: id, type: int }, { name: m.q, type: int }, { name: "a b`c", type: string, optional: true }] } }
"""
OUTPUT = "  - { type: output, name: out, input: t, config: { name: out, type: json, path: out.json } }\n"
NODES = {
    "state": '  - { type: state, name: n, input: s, config: { scope: source, set: [{ var: seen, cxl: "sum(id)" }] } }\n  - { type: transform, name: t, input: n, config: { cxl: "emit seen = $source.seen" } }\n',
    "aggregate": '  - { type: aggregate, name: t, input: s, config: { group_by: [m.q, "a b`c"], cxl: "emit all = collect(id)\\nemit total = sum(id)" } }\n',
    "window": '  - { type: transform, name: t, input: s, config: { analytic_window: { partition_by: [m.q], sort_by: [id] }, cxl: "emit all = $window.collect(id)" } }\n',
    "distinct": "  - { type: transform, name: t, input: s, config: { cxl: distinct } }\n",
}
ONE, OTHER = {"m.q": 1, "a b`c": "x"}, {"m.q": 3, "a b`c": ""}
EXPECTED = {
    "state": [{"id": 1, **ONE, "seen": 1}, {"id": 1, **ONE, "seen": 2}, {"id": 5, **ONE, "seen": 7}, {"id": 2, **OTHER, "seen": 2}],
    "aggregate": [{**ONE, "all": [1, 1, 5], "total": 7}, {**OTHER, "all": [2], "total": 2}],
    "window": [{"id": 1, **ONE, "all": [1]}, {"id": 1, **ONE, "all": [1, 1]}, {"id": 5, **ONE, "all": [1, 1, 5]}, {"id": 2, **OTHER, "all": [2]}],
    "distinct": [{"id": 1, **ONE}, {"id": 5, **ONE}, {"id": 2, **OTHER}],
}


@pytest.mark.parametrize("node", ["state", "aggregate"])
def test_names_that_are_no_identifiers(engine: Engine, tmp_path: Path, node: str) -> None:
    goes_through(Folder(tmp_path, engine.name), node)


@pytest.mark.parametrize("node", ["window", "distinct"])
def test_such_names_behind_other_nodes(tmp_path: Path, node: str) -> None:
    """A bare `distinct` in a program that emits nothing compares the fields of the record."""
    goes_through(Folder(tmp_path), node)


def goes_through(folder: Folder, node: str) -> None:
    record = {"id": 1, "m": {"q": 1}, "a b`c": "x"}
    folder.write("in/a.ndjson", "".join(json.dumps(one) + "\n" for one in (record, record, {**record, "id": 5})))
    folder.write("in/b.ndjson", '{"id":8,"m":{"q":1}}\n')
    folder.write("pipeline.yaml", SOURCE + NODES[node] + OUTPUT)
    folder.run()
    folder.write("in/b.ndjson", '{"id":2,"m":{"q":3}}\n')
    folder.run()
    assert json.loads(folder.text("out.json")) == EXPECTED[node]
    assert folder.violations() == []
