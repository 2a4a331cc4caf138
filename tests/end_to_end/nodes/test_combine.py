"""Combine nodes: after every change of any input, the incremental result is what nested loops over the present files give."""

from __future__ import annotations

import copy
import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import errata
from tests.support.examples import examples
from tests.support.joins import FEW, HEADERS, JOINS, Join, gathered, pipeline, with_broken_builds
from tests.support.pipelines import Folder, command, jsonl, standing_in

Tables = dict[str, list[dict[str, Any]]]

small = st.one_of(st.none(), st.integers(0, 4))
RECORDS = {
    "orders": st.fixed_dictionaries({"id": st.integers(1, 99), "k": small, "q": small}),
    "items": st.fixed_dictionaries({"k": st.sampled_from([None, 1.0, 2.0, 2.5, 3.0]), "low": small, "high": small, "v": small}),
    "tags": st.fixed_dictionaries({"v": small, "label": st.sampled_from(["x", "y", ""])}),
}


@st.composite
def histories(draw: st.DrawFn) -> list[Tables]:
    """Versions of the three inputs: records are put in, removed, corrected and moved, on one side or on several at once."""
    tables: Tables = {name: draw(st.lists(record, max_size=6)) for name, record in RECORDS.items()}
    versions = [copy.deepcopy(tables)]
    for _ in range(draw(st.integers(1, 3))):
        for name in draw(st.lists(st.sampled_from(sorted(RECORDS)), min_size=1, max_size=3)):
            _change(draw, tables[name], RECORDS[name])
        versions.append(copy.deepcopy(tables))
    return versions


def _change(draw: st.DrawFn, rows: list[dict[str, Any]], record: st.SearchStrategy[dict[str, Any]]) -> None:
    at = draw(st.integers(0, len(rows)))
    kind = draw(st.sampled_from(["insert", "remove", "correct", "move"]))
    if kind == "insert" or at == len(rows):
        rows.insert(at, draw(record))
    elif kind == "remove":
        del rows[at]
    elif kind == "correct":
        rows[at] = draw(record)
    else:
        rows.insert(0, rows.pop(at))


def write(folder: Folder, tables: Tables) -> None:
    for name, rows in tables.items():
        folder.write_csv(f"{name}.csv", HEADERS[name], rows)


def cells(folder: Folder, name: str) -> list[list[str]]:
    return list(csv.reader(folder.text(f"out/{name}.csv").splitlines()))


def check(folder: Folder, tables: Tables, joins: Sequence[Join] = JOINS) -> None:
    """Compare every output and the dead letter queue with the model."""
    rejected = []
    for join in joins:
        rows, numbers = join.expected(tables)
        assert cells(folder, join.name) == [list(join.columns), *rows], join.name
        rejected += [(join.name, f"{join.inputs[next(iter(join.inputs))]}.csv", str(number)) for number in numbers]
    rows, numbers = with_broken_builds(tables)
    assert cells(folder, "build_fails") == [["id", "v"], *rows]
    rejected += [("build_fails", "items.csv", str(number)) for number in numbers]
    assert jsonl(folder.text("out/gathered.ndjson")) == gathered(tables)
    assert queue(folder) == sorted(rejected)


def queue(folder: Folder) -> list[tuple[str, ...]]:
    if not (folder.path / "out/dlq.csv").exists():
        return []
    columns = ("_cxl_dlq_stage", "_cxl_dlq_source_file", "_cxl_dlq_source_row")
    rows = folder.rows("out/dlq.csv")
    assert {row["_cxl_dlq_error_category"] for row in rows} <= {"combine_output_row"}
    return sorted(tuple(row[name] for name in columns) for row in rows)


@examples(24, 2, suppress_health_check=list(HealthCheck))
@given(histories())
def test_every_step_is_what_nested_loops_give(versions: list[Tables]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(Path(name))
        folder.write("pipeline.yaml", pipeline())
        for tables in versions:
            write(folder, tables)
            result = folder.run()
            check(folder, tables)
            assert result.exit_code == (2 if queue(folder) else 0)
        assert folder.violations() == []


FIXED: list[Tables] = [
    {
        "orders": [{"id": 1, "k": 1, "q": 3}, {"id": 2, "k": 2, "q": None}, {"id": 3, "k": None, "q": 1}],
        "items": [{"k": 1.0, "low": 0, "high": 2, "v": 3}, {"k": 1.0, "low": 2, "high": 4, "v": 2}, {"k": 2.5, "low": 1, "high": 4, "v": 0}],
        "tags": [{"v": 2, "label": "x"}, {"v": 3, "label": "y"}],
    },
    {
        "orders": [{"id": 1, "k": 1, "q": 3}, {"id": 2, "k": 2, "q": 4}, {"id": 3, "k": 3, "q": 1}],
        "items": [{"k": 1.0, "low": 2, "high": 4, "v": 2}, {"k": 2.0, "low": 1, "high": 4, "v": 0}, {"k": 3.0, "low": None, "high": 1, "v": 3}],
        "tags": [{"v": 2, "label": "z"}, {"v": 3, "label": "y"}, {"v": 2, "label": "x"}],
    },
]


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_one_history_on_both_engines(engine: str, tmp_path: Path) -> None:
    joins = JOINS if engine == "sail" else FEW
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", pipeline(joins))
    for tables in FIXED:
        write(folder, tables)
        folder.run()
        check(folder, tables, joins)


MISS = """\
pipeline: { name: strict }
error_handling: { strategy: continue }
nodes:
  - { type: source, name: a, config: { name: a, type: csv, path: a.csv, schema: [ { name: k, type: int } ] } }
  - { type: source, name: b, config: { name: b, type: csv, path: b.csv, schema: [ { name: k, type: int } ] } }
  - type: combine
    name: joined
    input: { a: a, b: b }
    config: { where: "a.k == b.k", on_miss: error, propagate_ck: driver, cxl: "emit k = a.k" }
  - { type: output, name: out, input: joined, config: { name: out, type: csv, path: out.csv } }
"""


def test_on_miss_error_ends_the_run_under_every_strategy_and_keeps_the_last_epoch(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", MISS)
    folder.write("a.csv", "k\n1\n2\n")
    folder.write("b.csv", "k\n2\n1\n")
    folder.run()
    folder.write("b.csv", "k\n2\n")
    with pytest.raises(errata.Stopped, match=r"'joined': a\.csv: record 1: ") as stopped:
        folder.run()
    assert stopped.value.exit_code == 3
    assert folder.text("out.csv") == "k\n1\n2\n"
    folder.write("a.csv", "k\n2\n")
    folder.run()
    assert folder.text("out.csv") == "k\n2\n"


WHOLE = """\
pipeline: { name: whole }
nodes:
  - { type: source, name: o, config: { name: o, type: csv, path: o.csv, schema: [ { name: oid, type: string }, { name: pid, type: string } ] } }
  - { type: source, name: p, config: { name: p, type: csv, path: p.csv, schema: [ { name: pid, type: string }, { name: title, type: string }, { name: cat, type: int } ] } }
  - { type: source, name: c, config: { name: c, type: csv, path: c.csv, schema: [ { name: cat, type: int }, { name: label, type: string } ] } }
  - type: combine
    name: joined
    input: { o: o, p: p, c: c }
    config: { where: "o.pid == p.pid and p.cat == c.cat", MODES, propagate_ck: driver, cxl: "emit oid = o.oid emit t = p.title emit l = c.label" }
  - { type: output, name: out, input: joined, config: { name: out, type: csv, path: out.csv } }
"""


def test_a_driver_that_matches_no_row_of_the_last_input_ends_the_run_under_on_miss_error(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", WHOLE.replace("MODES", "match: first, on_miss: error"))
    folder.write("o.csv", "oid,pid\nO1,P1\n")
    folder.write("p.csv", "pid,title,cat\nP1,Old,7\nP1,New,1\n")
    folder.write("c.csv", "cat,label\n2,Home\n")
    with pytest.raises(errata.Stopped, match=r"a record of 'o' has no match in 'c'") as stopped:
        folder.run()
    assert stopped.value.exit_code == 3


def test_collect_keeps_ten_thousand_matches(tmp_path: Path) -> None:
    """ "A per-group entry limit of 10,000 prevents unbounded growth." The others are left out, in build order, with a warning (reference, Combine)."""
    folder = Folder(tmp_path)
    text = MISS.replace("on_miss: error", "match: collect").replace(', cxl: "emit k = a.k"', "").replace("type: csv, path: out.csv", "type: json, options: {format: ndjson}, path: out.ndjson")
    folder.write("pipeline.yaml", text.replace("schema: [ { name: k, type: int } ] } }\n  - type: combine", "schema: [ { name: k, type: int }, { name: n, type: int } ] } }\n  - type: combine"))
    folder.write("a.csv", "k\n1\n2\n3\n")

    def result(ones: int, twos: int) -> tuple[bool, list[list[int]]]:
        folder.write("b.csv", "k,n\n" + "".join(f"1,{n}\n" for n in range(ones)) + "".join(f"2,{n}\n" for n in range(twos)))
        with standing_in(tmp_path):
            code, _, err = command("run", "pipeline.yaml", "--max-retract-share", "1")
        assert code == 0
        assert folder.violations() == []
        warned = "warning: node 'joined': 1 records have 10,000 rows of 'b', as many as match: collect keeps; any more were left out" in err
        return warned, [[one["n"] for one in row["b"]] for row in jsonl(folder.text("out.ndjson"))]

    assert result(10_001, 9_999) == (True, [[*range(10_000)], [*range(9_999)], []])
    assert result(9_998, 9_999) == (False, [[*range(9_998)], [*range(9_999)], []])
    assert result(9_998, 10_003) == (True, [[*range(9_998)], [*range(10_000)], []])


WRONG = [
    ("a.k == 1 and b.k == 1", "cxl: 'emit k = a.k'", "E305"),
    ("a.k != b.k", "cxl: 'emit k = a.k'", "E305"),
    ("a.k == b.k", "cxl: ''", "E309"),
    ("a.k == b.k", "cxl: 'let x = a.k'", "E309"),
    ("a.k == b.k", "match: collect, cxl: 'emit k = a.k'", "E311"),
    ("a.k == b.k", "cxl: 'emit k = a.k distinct'", "E312"),
    ("a.k == b.k", "drive: c, cxl: 'emit k = a.k'", "E306"),
    ("a.k == b.x", "cxl: 'emit k = a.k'", "CXL-R001"),
    ("k == b.k", "cxl: 'emit k = a.k'", "CXL-R010"),
]


@pytest.mark.parametrize(("where", "config", "code"), WRONG)
def test_what_is_wrong_has_a_code_at_its_place(where: str, config: str, code: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    text = MISS.replace('"a.k == b.k", on_miss: error', f'"{where}"').replace('cxl: "emit k = a.k"', config)
    folder.write("pipeline.yaml", text)
    with pytest.raises(errata.PipelineErrors) as found:
        folder.load()
    (one,) = found.value.diagnostics
    assert (one.code, one.line) == (code, 9)
    assert "joined" in str(one.node)


PARTS = """\
pipeline: { name: parts }
nodes:
  - { type: source, name: a, config: { name: a, type: csv, path: a.csv, schema: [{ name: k, type: string }, { name: v, type: string }] } }
  - { type: source, name: b, config: { name: b, type: csv, path: b.csv, schema: [{ name: k, type: string }, { name: u, type: string }] } }
  - { type: transform, name: each, input: a, config: { cxl: 'emit each p in v.split(";") { emit part = p }' } }
  - { type: combine, name: met, input: { a: each, b: b }, config: { where: "a.k == b.k", match: collect, on_miss: MISS, propagate_ck: driver } }
  - { type: output, name: out, input: met, config: { name: out, type: json, path: out.ndjson, options: { format: ndjson } } }
"""


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("miss", ["skip", "null_fields"])
def test_what_emit_each_made_collects(tmp_path: Path, engine: str, miss: str) -> None:
    """"If the source array has N elements, emit each produces exactly N output records"; "one synthesized output row per driver"."""
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", PARTS.replace("MISS", miss))
    folder.write("b.csv", "k,u\n1,x\n")
    for drivers in ([("1", "m;n"), ("2", "o")], [("1", "m"), ("2", "o;p"), ("1", "n")]):
        folder.write_csv("a.csv", ["k", "v"], [{"k": k, "v": v} for k, v in drivers])
        folder.run()
        made = [{"k": k, "v": v, "part": part, "b": [{"k": "1", "u": "x"}] if k == "1" else []} for k, v in drivers for part in v.split(";")]
        assert jsonl(folder.text("out.ndjson")) == [one for one in made if one["b"] or miss == "null_fields"]


ALL = """\
pipeline: { name: whole }
error_handling: { strategy: continue, dlq: { path: out/dlq.csv } }
nodes:
  - { type: source, name: orders, config: { name: orders, type: csv, path: orders.csv, schema: [{ name: id, type: int }, { name: who, type: string }, { name: amount, type: int }] } }
  - { type: source, name: customers, config: { name: customers, type: csv, path: customers.csv, schema: [{ name: code, type: string }, { name: since, type: date }] } }
  - type: combine
    name: met
    input: { o: orders, c: customers }
    config:
      where: "o.who == c.code"
      propagate_ck: driver
      cxl: |
        BODY
  - { type: output, name: out, input: met, config: { name: out, type: csv, path: out/out.csv, include_unmapped: false } }
"""


def whole(tmp_path: Path, body: str) -> Folder:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", ALL.replace("BODY", body.replace("\n", "\n        ")))
    folder.write("orders.csv", "id,who,amount,note\n1,a,5,x\n2,b,7,y\n3,z,9,z\n")
    folder.write("customers.csv", "code,since,more\na,2020-01-01,m\nb,2021-01-01,n\n")
    return folder


def test_all_fields_of_an_input_are_emitted_in_their_order(tmp_path: Path) -> None:
    folder = whole(tmp_path, "emit o.*\nemit twice = amount * 2\nemit c.*\nemit late = since > #2020-06-01#")
    folder.run()
    header = "id,who,amount,twice,code,since,late"
    assert folder.text("out/out.csv").splitlines() == [header, "1,a,5,10,a,2020-01-01,false", "2,b,7,14,b,2021-01-01,true", "3,z,9,18,,,"]
    folder.write("customers.csv", "code,since,more\na,2020-01-01,m\nz,2022-02-02,n\n")
    folder.run()
    assert folder.text("out/out.csv").splitlines() == [header, "1,a,5,10,a,2020-01-01,false", "2,b,7,14,,,", "3,z,9,18,z,2022-02-02,true"]


def test_a_column_that_comes_to_be_declared_is_emitted_from_then_on(tmp_path: Path) -> None:
    folder = whole(tmp_path, "emit o.*")
    folder.run()
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{ name: amount, type: int }]", "{ name: amount, type: int }, { name: note, type: string }]"))
    folder.run()
    assert folder.text("out/out.csv").splitlines() == ["id,who,amount,note", "1,a,5,x", "2,b,7,y", "3,z,9,z"]


@pytest.mark.parametrize(("body", "code", "message", "places"), [
    ("emit o.*\nemit who = c.code", "CXL-R011", "'who' emitted twice", [(14, 14), (13, 14)]),
    ("emit who = c.code\nemit o.*", "CXL-R011", "'who' emitted twice", [(14, 14), (13, 14)]),
    ("emit o.*\nemit o.*", "CXL-R011", "'id', 'who', 'amount' emitted twice", [(14, 14), (13, 14)]),
    ("emit who = o.who\nemit ordrs.*", "CXL-R012", "there is no input 'ordrs'", [(14, 14)]),
    ('emit each p in o.who.split(";") {\n  emit o.*\n}', "CXL-R012", "'emit o.*' does not belong into emit each", [(14, 11)]),
])  # fmt: skip
def test_what_cannot_be_emitted_as_a_whole(tmp_path: Path, body: str, code: str, message: str, places: list[tuple[int, int]]) -> None:
    with pytest.raises(errata.PipelineErrors) as found:
        whole(tmp_path, body).load()
    (one,) = found.value.diagnostics
    assert (one.code, one.message) == (code, message)
    assert [(one.line, one.column), *((label.line, label.column) for label in one.labels)] == places


def test_what_is_left_out_is_explained_and_what_comes_whole_has_its_lineage(tmp_path: Path) -> None:
    whole(tmp_path, "emit o.*")
    with standing_in(tmp_path):
        plan = command("explain", "pipeline.yaml")[1]
    assert "declared fields left out: c.code, c.since" in plan
    assert "undeclared fields of 'o' pass on" in plan
    assert "undeclared fields of 'c' are dropped" in plan
    from errata.plan.column_lineage import column_lineage

    lineage = column_lineage(Folder(tmp_path).load().plan)["met"]
    assert lineage == {name: frozenset({("orders", name)}) for name in ("id", "who", "amount")}
