"""Records that are rolled back while their own files stay as they are: a lookup breaks what they meet, or an edited expression does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder

HEAD = """\
pipeline: { name: orders, vars: { pipeline: { limit: { type: int, default: 0 } } } }
error_handling: { strategy: continue, dlq: { path: out/rejected.csv } }
nodes:
  - type: source
    name: lines
    config:
      { name: lines, type: csv, path: lines.csv, correlation_key: order, schema: [{ name: order, type: string }, { name: dept, type: string }, { name: qty, type: int }] }
  - { type: source, name: limits, config: { name: limits, type: csv, path: limits.csv, schema: [{ name: dept, type: string }, { name: lim, type: string }] } }
  - { type: source, name: sizes, config: { name: sizes, type: csv, path: sizes.csv, schema: [{ name: size, type: int }] } }
"""
TOTALS = "  - { type: aggregate, name: totals, input: lines, config: { group_by: [GROUP], cxl: 'emit total = sum(qty)' } }\n"
RATE = """\
  - type: combine
    name: rated
    input: { a: BEFORE, b: limits }
    config: { where: a.dept == b.dept, match: first, on_miss: null_fields, propagate_ck: driver, cxl: "emit dept = a.dept\\nemit r = a.VALUE * b.lim.to_int()" }
"""
STATE = """\
  - { type: aggregate, name: everything, input: lines, config: { group_by: [], cxl: 'emit qty = sum(qty)' } }
  - { type: state, name: set_limit, input: everything, config: { scope: pipeline, phase: init, set: [{ var: limit, cxl: qty }] } }
  - { type: transform, name: over, input: sizes, config: { cxl: 'emit over = size > $pipeline.limit' } }
"""
OUTPUT = "  - { type: output, name: NAME_out, input: NAME, config: { name: NAME_out, type: csv, path: out/NAME.csv } }\n"

BY_LINE = RATE.replace("BEFORE", "lines").replace("VALUE", "qty")
BY_TOTAL = RATE.replace("BEFORE", "totals").replace("VALUE", "total")
SHAPES = {
    "outputs ahead of the failing node": (BY_LINE, {"rated": "dept,r\nx,2\n"}),
    "a relaxed aggregate": (TOTALS.replace("GROUP", "dept") + BY_TOTAL, {"totals": "dept,total\nx,1\n", "rated": "dept,r\nx,2\n"}),
    "a strict aggregate": (TOTALS.replace("GROUP", "order, dept") + BY_TOTAL, {"totals": "order,dept,total\nA,x,1\n", "rated": "dept,r\nx,2\n"}),
    "what is handed to another branch": (STATE + BY_LINE, {"over": "size,over\n1,false\n3,true\n"}),
}  # fmt: skip
"""Nodes, and the outputs once order B is rolled back: of the line A,x,1 alone."""


def project(place: Path, nodes: str, outputs: list[str]) -> Folder:
    folder = Folder(place)
    folder.write("pipeline.yaml", HEAD + nodes + "".join(OUTPUT.replace("NAME", name) for name in ["lines", *outputs]))
    folder.write("lines.csv", "order,dept,qty\nA,x,1\nB,x,3\nB,z,1\n")
    folder.write("limits.csv", "dept,lim\nx,2\nz,4\n")
    folder.write("sizes.csv", "size\n1\n3\n")
    return folder


@pytest.mark.parametrize("persist", ["all", "boundaries"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_lookup_that_breaks_a_group_takes_it_out_everywhere_and_one_that_is_repaired_brings_it_back(tmp_path: Path, shape: str, persist: str) -> None:
    nodes, broken = SHAPES[shape]
    folder = project(tmp_path, nodes, list(broken))
    folder.write("pipeline.yaml", folder.text("pipeline.yaml") + f"changelog: {{ persist: {persist} }}\n")
    folder.run()
    whole = {name: folder.text(f"out/{name}.csv") for name in ("lines", *broken)}
    folder.write("limits.csv", "dept,lim\nx,2\nz,oops\n")
    assert folder.run().exit_code == 2
    assert {name: folder.text(f"out/{name}.csv") for name in whole} == {"lines": "order,dept,qty\nA,x,1\n", **broken}
    assert sorted(row["_cxl_dlq_source_row"] for row in folder.rows("out/rejected.csv") if row["_cxl_dlq_source_row"]) == ["2", "3"]
    assert folder.violations() == []
    assert not folder.run().committed
    folder.write("limits.csv", "dept,lim\nx,2\nz,4\n")
    assert folder.run().exit_code == 0
    assert {name: folder.text(f"out/{name}.csv") for name in whole} == whole
    assert [(row["op"], row["data"]["qty"]) for row in folder.load().log("lines_out") if row["data"]["order"] == "B"] == [
        ("+A", 3), ("+A", 1), ("-R", 3), ("-R", 1), ("+A", 3), ("+A", 1),
    ]  # fmt: skip
    assert folder.violations() == []


def test_an_edited_expression_that_breaks_groups_takes_them_out_everywhere(tmp_path: Path) -> None:
    """z's total breaks order B, so x's total is 1, which breaks order A."""
    checked = "  - { type: transform, name: checked, input: totals, config: { cxl: 'emit r = EXPRESSION' } }\n"
    nodes = TOTALS.replace("GROUP", "dept") + checked
    folder = project(tmp_path, nodes.replace("EXPRESSION", "total / 1"), ["checked", "totals"])
    folder.run()
    assert folder.text("out/totals.csv") == "dept,total\nx,4\nz,1\n"
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("total / 1", "10 / (total - 1)"))
    folder.run()
    assert {name: folder.text(f"out/{name}.csv") for name in ("lines", "totals", "checked")} == {
        "lines": "order,dept,qty\n", "totals": "dept,total\n", "checked": "dept,total,r\n",
    }  # fmt: skip
    assert folder.violations() == []


EVENTS = """\
  - {{ type: source, name: events, config: {{ name: events, type: csv, glob: events/*.csv, on_unmapped: auto_widen, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: events_out, input: events, config: {{ name: events_out, type: csv, path: "out/{}.csv" }} }}
"""


@pytest.mark.parametrize(("path", "header"), [("events", "id,extra"), ("events-{source_file}", "id")])
def test_a_file_without_rows_leaves_what_is_suppressed_known(tmp_path: Path, path: str, header: str) -> None:
    """Outputs get another column, or another file, though no row changed."""
    folder = project(tmp_path, BY_LINE + EVENTS.format(path), ["rated"])
    folder.write("events/a.csv", "id\n1\n")
    folder.write("limits.csv", "dept,lim\nx,2\nz,oops\n")
    folder.run()
    before = {name: folder.text(f"out/{name}.csv") for name in ("lines", "rated", "rejected")}
    folder.write("events/b.csv", f"{header}\n")
    assert folder.run().committed
    assert {name: folder.text(f"out/{name}.csv") for name in before} == before
    assert {one["name"]: one["rows_suppressed"] for one in folder.load().status()["sources"]}["lines"] == 2
    folder.write("limits.csv", "dept,lim\nx,2\nz,4\n")
    assert folder.run().exit_code == 0
    assert folder.text("out/lines.csv") == "order,dept,qty\nA,x,1\nB,x,3\nB,z,1\n"
