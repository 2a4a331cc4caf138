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
