"""Route nodes: after every change each branch holds what plain Python puts there, and failing records are in no branch."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import errata
from tests.support.examples import examples
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: routed }
error_handling: { strategy: continue, dlq: { path: out/dlq.csv, include_reason: true, include_source_row: true } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [ { name: id, type: int }, { name: v, type: int } ] } }
  - type: route
    name: r
    input: s
    config: { mode: MODE, conditions: { big: "v > 5", share: "12 / v == 3", odd: "v % 2 == 1" }, default: rest }
  - { type: output, name: big, input: r.big, config: { name: big, type: csv, path: out/big.csv } }
  - { type: output, name: share, input: r.share, config: { name: share, type: csv, path: out/share.csv } }
  - { type: output, name: odd, input: r.odd, config: { name: odd, type: csv, path: out/odd.csv } }
  - { type: output, name: rest, input: r.rest, config: { name: rest, type: csv, path: out/rest.csv } }
  - { type: aggregate, name: counted, input: r.odd, config: { group_by: [v], cxl: "emit n = count(*)" } }
  - { type: output, name: counts, input: counted, config: { name: counts, type: csv, path: out/counts.csv } }
"""
BRANCHES = ("big", "share", "odd", "rest")
Rows = list[int | None]


def branches_of(value: int | None, mode: str) -> Sequence[str] | None:
    """The branches of a record; None where a condition that is looked at divides by zero."""
    tests = {"big": lambda v: v > 5, "share": lambda v: v != 0 and 12 // v == 3, "odd": lambda v: v % 2 == 1}
    found: list[str] = []
    for name, holds in tests.items():
        if name == "share" and value == 0:
            return None
        if value is not None and holds(value):
            found.append(name)
            if mode == "exclusive":
                break
    return found or ["rest"]


@st.composite
def histories(draw: st.DrawFn) -> list[Rows]:
    value = st.one_of(st.none(), st.integers(0, 9))
    rows: Rows = draw(st.lists(value, max_size=6))
    versions = [copy.copy(rows)]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(rows)))
        rows[at : at + draw(st.integers(0, 1))] = draw(st.lists(value, max_size=2))
        versions.append(copy.copy(rows))
    return versions


def check(folder: Folder, rows: Rows, mode: str) -> None:
    places = [branches_of(value, mode) for value in rows]
    for name in BRANCHES:
        want = [{"id": "7", "v": "" if value is None else str(value)} for value, found in zip(rows, places, strict=True) if found and name in found]
        assert folder.rows(f"out/{name}.csv") == want, name
    odd = [value for value, found in zip(rows, places, strict=True) if found and "odd" in found]
    assert folder.rows("out/counts.csv") == [{"v": str(value), "n": str(odd.count(value))} for value in sorted({one for one in odd if one is not None})]
    failing = [number for number, found in enumerate(places, 1) if found is None]
    entries = folder.rows("out/dlq.csv") if failing else []
    assert [int(row["_cxl_dlq_source_row"]) for row in entries] == failing
    assert {row["_cxl_dlq_error_category"] for row in entries} <= {"type_coercion_failure"}


def run(folder: Folder, versions: Sequence[Rows], mode: str) -> None:
    folder.write("pipeline.yaml", PIPELINE.replace("MODE", mode))
    for rows in versions:
        folder.write_csv("s.csv", ("id", "v"), [{"id": 7, "v": value} for value in rows])
        folder.run()
        check(folder, rows, mode)


@examples(24, 2, suppress_health_check=list(HealthCheck))
@given(histories(), st.sampled_from(["exclusive", "inclusive"]))
def test_every_step_is_what_the_conditions_say(versions: list[Rows], mode: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place))
        run(folder, versions, mode)
        assert folder.violations() == []


@pytest.mark.parametrize("engine", ["sail", "spark"])
@pytest.mark.parametrize("mode", ["exclusive", "inclusive"])
def test_one_history_on_both_engines(engine: str, mode: str, tmp_path: Path) -> None:
    run(Folder(tmp_path, engine), [[7, 4, 0, None, 1], [7, 3, 4, None], [0, 9, 9]], mode)


CLOCK = """\
pipeline: { name: volatile }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [ { name: id, type: int } ] } }
  - { type: route, name: r, input: s, config: { conditions: { mine: '$pipeline.batch_id == "x"' }, default: other } }
  - { type: output, name: mine, input: r.mine, config: { name: mine, type: csv, path: mine.csv } }
  - { type: output, name: other, input: r.other, config: { name: other, type: csv, path: other.csv } }
"""


def test_a_condition_on_the_run_is_decided_once_for_each_record(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", CLOCK)
    folder.write("s.csv", "id\n1\n2\n")
    folder.run(batch_id="x")
    folder.write("s.csv", "id\n2\n3\n")
    folder.run(batch_id="y")
    assert (folder.text("mine.csv"), folder.text("other.csv")) == ("id\n2\n", "id\n3\n")


def conditions(count: int) -> str:
    return ", ".join(f"b{number}: 'id == {number}'" for number in range(count))


WRONG = [(conditions(256), "rest", "E260"), (conditions(2), "b1", "E261")]


@pytest.mark.parametrize(("branches", "default", "code"), WRONG)
def test_branches_that_cannot_be(branches: str, default: str, code: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", CLOCK.replace("mine: '$pipeline.batch_id == \"x\"'", branches).replace("default: other", f"default: {default}"))
    with pytest.raises(errata.PipelineErrors) as found:
        folder.load()
    assert [one.code for one in found.value.diagnostics] == [code]
