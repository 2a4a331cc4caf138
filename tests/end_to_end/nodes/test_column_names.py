"""Columns whose names are no identifiers (a path into nested records, blanks, backticks) go through nodes that compute in Python, on both engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from errata.core.options import Correction, EngineOptions, RunOptions
from storage.engines import Engine
from tests.support.pipelines import Folder

SAIL = RunOptions(engine=EngineOptions("sail"))
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


OF_SOURCES = ["_side", "_stood", "_known", "_same", "_mark", "_version", "_place", "_of", "_kind", "_code", "_print", "_delivery", "_at", "_k", "_h", "_count", "_first", "_taken", "_held"]
OF_RUNS = ["_why", "_to", "_as", "_by", "_dead", "_part", "_old", "_new", "_weight", "_came", "_went", "_net", "_was", "_is", "_since", "_when", "_group", "_n"]
"""Names that begin as names of columns on the way begin, where these do not begin with two underscores."""


def plain(names: list[str]) -> list[str]:
    return [f"c{at}" for at in range(len(names))]


MERGES = {
    "upsert": "{ strategy: upsert, primary_key: [id], deleted: gone }",
    "ledger": "{ strategy: ledger, primary_key: [id] }",
    "changelog": "{ strategy: changelog, primary_key: [id], op: op }",
    "versions": "{ strategy: changelog, primary_key: [id], op: op, ops: { append: [N], correct: [C], retract: [X] }, version_field: FIRST }",
    "snapshot": "{ strategy: snapshot, primary_key: [id] }",
    "rows": "snapshot",
}
DELIVERIES = [[(1, "N", 1), (2, "N", 1), (1, "C", 2)], [(2, "X", 3), (1, "C", 1), (3, "N", 1)], [(3, "C", 2), (4, "C", 9), (1, "X", 5), (9, "X", 1)]]


def merged(folder: Folder, names: list[str]) -> dict[str, list[list[str | None]]]:
    """The rows of each source, and its dead letters, where the columns of the records have these names."""
    columns = ", ".join(f"{{ name: {name}, type: {'int' if name == names[0] else 'string'} }}" for name in names)
    text = "pipeline: { name: merged }\nnodes:\n"
    for name, merge in MERGES.items():
        schema = f"[{{ name: id, type: int }}, {{ name: op, type: string }}, {{ name: gone, type: bool }}, {columns}]"
        text += f"  - {{ type: source, name: {name}, config: {{ name: {name}, type: csv, glob: '{name}/*.csv', merge: {merge.replace('FIRST', names[0])}, schema: {schema} }} }}\n"
        text += f"  - {{ type: output, name: {name}_out, input: {name}, config: {{ name: {name}_out, type: csv, path: {name}.csv }} }}\n"
    folder.write("pipeline.yaml", text + "error_handling: { strategy: continue, dlq: { path: rejected.csv } }\n")
    head = ",".join(["id", "op", "gone", *names])
    for turn, delivery in enumerate(DELIVERIES):
        for name in MERGES:
            coded = {"N": "+A", "C": "+C", "X": "-R"} if name == "changelog" else {}
            lines = [",".join([str(key), coded.get(op, op), str(op == "X").lower(), str(version), *(f"{name}{version}" for name in range(1, len(names)))]) for key, op, version in delivery]
            unique = {line.partition(",")[0]: line for line in lines} if name == "snapshot" else dict(enumerate(lines))
            folder.write(f"{name}/{0 if name == 'snapshot' else turn}.csv", "\n".join([head, *unique.values()]) + "\n")
        folder.run()
    files = [*(f"{name}.csv" for name in MERGES), "rejected.csv"]
    assert folder.violations() == []
    return {file: [list(row.values()) for row in folder.rows(file)] for file in files if (folder.path / file).exists()}


def test_records_may_have_the_names_of_columns_on_the_way(tmp_path: Path) -> None:
    """Beside the same records with other names of columns."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "alike").mkdir()
    expected = merged(Folder(tmp_path / "plain"), plain(OF_SOURCES))
    alike = merged(Folder(tmp_path / "alike"), OF_SOURCES)
    assert len(expected) == len(MERGES) + 1
    for file, rows in expected.items():
        assert [row[3:] if file == "rejected.csv" else row for row in alike[file]] == [row[3:] if file == "rejected.csv" else row for row in rows]


GROUPED = """\
pipeline: { name: grouped }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: "in/*.csv", correlation_key: g, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: g, type: string }, { name: v, type: int }, COLUMNS] } }
  - { type: transform, name: t, input: s, config: { cxl: "emit w = 100 / v" } }
  - { type: aggregate, name: a, input: t, config: { group_by: [g, FIRST], cxl: "emit total = sum(w)" } }
  - { type: output, name: rows, input: t, config: { name: rows, type: csv, path: rows.csv } }
  - { type: output, name: totals, input: a, config: { name: totals, type: csv, path: totals.csv } }
"""
"""A value of 0 fails, and takes its group back."""


def grouped(folder: Folder, names: list[str]) -> list[list[list[str | None]]]:
    """The rows of the outputs after each step: a group that goes and returns, a record that goes, one that a correction changes, and an epoch that is taken back."""
    columns = ", ".join(f"{{ name: {name}, type: string }}" for name in names)
    folder.write("pipeline.yaml", GROUPED.replace("COLUMNS", columns).replace("FIRST", names[0]))
    steps = [[(1, "x", 1), (2, "x", 2), (3, "y", 4), (4, "z", 5)], [(1, "x", 1), (2, "x", 0), (3, "y", 5), (5, "z", 5)], [(1, "x", 3), (2, "x", 2), (5, "z", 5)]]
    found = []

    def look() -> None:
        found.extend([list(row.values()) for row in folder.rows(file)] for file in ("rows.csv", "totals.csv"))
        assert folder.violations() == []

    for turn, rows in enumerate(steps):
        lines = [",".join([str(key), group, str(value), *(f"{at}-{key}" for at in range(len(names)))]) for key, group, value in rows]
        folder.write("in/a.csv", "\n".join([",".join(["id", "g", "v", *names]), *lines]) + "\n")
        folder.run()
        look()
        if turn == 1:
            folder.load().correct(Correction("s", {"id": "3"}, {"v": "7"}, "by hand"), SAIL)
            look()
    folder.load().revert(2, SAIL)
    look()
    return found


def test_groups_and_corrections_leave_such_names_alone(tmp_path: Path) -> None:
    """Beside the same records with other names of columns."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "alike").mkdir()
    expected = grouped(Folder(tmp_path / "plain"), plain(OF_RUNS))
    assert len(expected[0]) == 4
    assert len(expected[2]) == 2
    assert grouped(Folder(tmp_path / "alike"), OF_RUNS) == expected
