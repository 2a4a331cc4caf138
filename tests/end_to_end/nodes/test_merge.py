"""Merge nodes: inputs in the order of the list, each in its own order, after every change of any of them."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import errata
from tests.support.examples import examples
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: merged }
nodes:
  - { type: source, name: a, config: { name: a, type: csv, path: a.csv, schema: [ { name: id, type: int }, { name: v, type: int } ] } }
  - { type: source, name: b, config: { name: b, type: csv, path: b.csv, schema: [ { name: v, type: float }, { name: id, type: int } ] } }
  - type: merge
    name: m
    inputs: [b, a, a]
    config: { mode: MODE }
  - { type: transform, name: named, input: m, config: { cxl: "emit source = $source.name" } }
  - { type: output, name: out, input: named, config: { name: out, type: csv, path: out.csv } }
"""

rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, list[tuple[int, int]]]]:
    files = {"a": draw(rows), "b": draw(rows)}
    versions = [copy.deepcopy(files)]
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from("ab"))
        at = draw(st.integers(0, len(files[name])))
        files[name][at : at + draw(st.integers(0, 1))] = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2))
        versions.append(copy.deepcopy(files))
    return versions


def expected(files: dict[str, list[tuple[int, int]]]) -> list[dict[str, str]]:
    """Floats that are whole have no point in a file; the columns are taken from the first input, `b`."""
    return [{"v": str(v), "id": str(key), "source": name} for name in "baa" for key, v in files[name]]


@examples(24, 2, suppress_health_check=list(HealthCheck))
@given(histories(), st.sampled_from(["concat", "interleave", "interleave, interleave_seed: 7"]))
def test_every_step_is_the_inputs_one_after_another(versions: list[dict[str, list[tuple[int, int]]]], mode: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place))
        folder.write("pipeline.yaml", PIPELINE.replace("MODE", mode))
        for files in versions:
            folder.write_csv("a.csv", ("id", "v"), [{"id": key, "v": v} for key, v in files["a"]])
            folder.write_csv("b.csv", ("id", "v"), [{"id": key, "v": v} for key, v in files["b"]])
            folder.run()
            assert folder.rows("out.csv") == expected(files)
        assert folder.violations() == []


def declared(columns: str, extra: str = "") -> str:
    return f"config: {{ name: x, type: csv, path: x.csv, {extra}schema: [ {columns} ] }}"


KEYED = "{ name: id, type: int }, { name: v, type: int }"
WRONG = [
    (declared("{ name: id, type: int }"), "E270", "'b' lacks v"),
    (declared("{ name: id, type: int }, { name: v, type: date }"), "E272", "column 'v' is int in 'a' and date in 'b'"),
    (declared(KEYED, "on_unmapped: { mode: drop }, "), "E315", "$widened"),
    (declared(KEYED, "correlation_key: id, "), "E271", "none and id"),
]


@pytest.mark.parametrize(("second", "code", "part"), WRONG)
@pytest.mark.parametrize("through", ["b", "t"])
def test_inputs_that_do_not_go_together(second: str, code: str, part: str, through: str, tmp_path: Path) -> None:
    nodes = [
        f"{{ type: source, name: a, {declared(KEYED)} }}", f"{{ type: source, name: b, {second} }}",
        "{ type: transform, name: t, input: b, config: { cxl: 'emit id = id' } }",
        f"{{ type: merge, name: both, inputs: [a, {through}] }}", "{ type: output, name: o, input: both, config: { name: o, type: csv, path: o.csv } }",
    ]  # fmt: skip
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", "pipeline: { name: wrong }\nnodes:\n" + "".join(f"  - {node}\n" for node in nodes))
    with pytest.raises(errata.PipelineErrors) as found:
        folder.load()
    (one,) = found.value.diagnostics
    assert (one.code, one.line) == (code, 6)
    assert part.replace("'b'", f"'{through}'") in one.message
    assert "both" in one.message


SCALES = """\
pipeline: { name: scales }
nodes:
  - { type: source, name: a, config: { name: a, type: csv, path: a.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [ { name: id, type: int }, { name: v, type: "decimal(38,0)" }, { name: w, type: int } ] } }
  - { type: source, name: b, config: { name: b, type: csv, path: b.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [ { name: id, type: int }, { name: v, type: "decimal(38,2)" }, { name: w, type: "decimal(38,30)" } ] } }
  - { type: merge, name: m, inputs: [a, b] }
  - { type: output, name: out, input: m, config: { name: out, type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
"""
NINES = "9" * 36


def test_a_decimal_that_does_not_fit_the_greater_scale_is_a_dead_letter(tmp_path: Path) -> None:
    """At scale 2 there is room for 36 digits ahead of the point, at scale 30 for 8."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SCALES)
    folder.write("b.csv", "id,v,w\n1,1.25,0.5\n")
    folder.write("a.csv", f"id,v,w\n1,{NINES},99999999\n2,-1{NINES},1\n3,5,-100000000\n4,,\n")
    assert folder.run().exit_code == 2
    zeros = "0" * 30
    good = [{"id": "1", "v": f"{NINES}.00", "w": f"99999999.{zeros}"}, {"id": "4", "v": "", "w": ""}, {"id": "1", "v": "1.25", "w": f"0.5{zeros[1:]}"}]
    assert folder.rows("out.csv") == good
    letters = [(one["_cxl_dlq_error_category"], one["_cxl_dlq_error_detail"], one["_cxl_dlq_stage"]) for one in folder.rows("dlq.csv")]
    assert letters == [
        ("type_coercion_failure", "overflow: column 'v' has more than 38 digits with 2 of them behind the point", "m"),
        ("type_coercion_failure", "overflow: column 'w' has more than 38 digits with 30 of them behind the point", "m"),
    ]
    assert folder.violations() == []
    folder.write("a.csv", f"id,v,w\n1,1{NINES},99999999\n2,-{NINES},1\n4,,\n")
    assert folder.run().exit_code == 2
    assert folder.rows("out.csv") == [{"id": "2", "v": f"-{NINES}.00", "w": f"1.{zeros}"}, *good[1:]]
    assert [one["_cxl_dlq_stage"] for one in folder.rows("dlq.csv")] == ["m"]
    folder.write("a.csv", "id,v,w\n1,1,1\n")
    assert folder.run().exit_code == 0
    assert folder.violations() == []
