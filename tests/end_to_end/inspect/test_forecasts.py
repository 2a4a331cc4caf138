"""`errata plan --diff` and `errata diff --pipeline`: what a run would change is what it then changes, and nothing is committed."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from errata.core.options import RunOptions
from errata.rendering.forecasts import as_markdown, merged
from tests.support.examples import examples
from tests.support.pipelines import Folder, command

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PIPELINE = """\
pipeline: {name: books}
error_handling: {strategy: continue}
nodes:
  - type: source
    name: bookings
    config:
      name: bookings
      type: csv
      path: bookings.csv
      merge: {strategy: snapshot, primary_key: [no]}
      schema: [{name: no, type: int}, {name: month, type: string}, {name: amt, type: int}, {name: fee, type: "decimal(10,2)"}]
  - {type: aggregate, name: totals, input: bookings, config: {group_by: [month], cxl: "emit total = sum(amt)\\nemit fees = sum(fee)"}}
  - {type: output, name: out, input: totals, config: {name: out, type: csv, path: out.csv}}
  - {type: output, name: all, input: bookings, config: {name: all, type: csv, path: all.csv, history: {key: [no], recorded: epoch}}}
"""
steps = st.lists(st.dictionaries(st.integers(1, 4), st.tuples(st.sampled_from(["jan", "feb"]), st.integers(1, 3)), min_size=1, max_size=4), min_size=2, max_size=3)


def project(place: Path) -> Folder:
    folder = Folder(place)
    folder.write("pipeline.yaml", PIPELINE)
    return folder


def deliver(folder: Folder, rows: dict[int, tuple[str, int]]) -> None:
    folder.write_csv("bookings.csv", ("no", "month", "amt", "fee"), [{"no": no, "month": month, "amt": amt, "fee": f"{amt}.25"} for no, (month, amt) in rows.items()])


@given(steps=steps)
@examples(16, 2)
def test_what_a_run_would_change_is_what_it_changes(tmp_path_factory: pytest.TempPathFactory, steps: list[dict[int, tuple[str, int]]]) -> None:
    folder, epoch = project(tmp_path_factory.mktemp("books")), 0
    before: dict[int, tuple[str, int]] = {}
    for rows in steps:
        deliver(folder, rows)
        found = folder.load().forecast(RunOptions(max_retract_share=1.0))  # the run's own: a script may take most rows back
        assert found.epoch == epoch
        assert folder.load().head_epoch() == (epoch or None)
        now = folder.run().epoch
        for node in found.nodes:
            changed = list(folder.load().diff(node.name, epoch, now)) if now != epoch else []
            assert list(node.changes) == changed
            assert [node.added, node.removed, node.corrected] == [sum(row["op"] == op for row in changed) for op in ("+A", "-R", "+C")]
        total = sum(amt for _, amt in rows.values()) - sum(amt for _, amt in before.values())
        assert found.nodes[0].figures.get("total", 0) == total
        before, epoch = rows, now
    assert folder.violations() == []


def test_an_edited_pipeline_against_the_state_of_another(tmp_path: Path) -> None:
    folder = project(tmp_path)
    deliver(folder, {1: ("jan", 1), 2: ("feb", 2)})
    folder.run()
    folder.write("edited.yaml", PIPELINE.replace("name: books", "name: renamed").replace("sum(amt)", "sum(amt * 10)"))
    pipeline, edited = str(tmp_path / "pipeline.yaml"), str(tmp_path / "edited.yaml")
    code, stdout, _ = command("diff", pipeline, "out", "--pipeline", edited, "--format", "json")
    assert code == 0
    [node] = json.loads(stdout)["nodes"]
    assert [(change["before"]["total"], change["after"]["total"]) for change in node["changes"]] == [(2, 20), (1, 10)]
    assert node["figures"] == {"total": 27}
    assert node["reason"] == "input changed: totals"
    assert command("diff", pipeline, "out", "--pipeline", edited, "--format", "csv")[1].count("\n") == 3
    assert folder.load().head_epoch() == 1
    assert folder.violations() == []
    assert not (tmp_path / ".errata" / "renamed").exists()


def test_a_first_run_leaves_no_state(tmp_path: Path) -> None:
    folder = project(tmp_path)
    deliver(folder, {1: ("jan", 1)})
    code, stdout, notes = command("plan", str(tmp_path / "pipeline.yaml"), "--diff", "--rows", "0")
    assert code == 0
    assert [line.split()[:5] for line in stdout.splitlines()[2:4]] == [["out", "first", "1", "0", "0"], ["all", "first", "1", "0", "0"]]
    assert "total +1" in stdout
    assert "fees +1.25" in stdout
    assert "Nothing was changed." in notes
    assert not (tmp_path / ".errata").exists()
    assert not (tmp_path / "out.csv").exists()


def test_a_guard_that_would_stop_the_run_is_told(tmp_path: Path) -> None:
    folder = project(tmp_path)
    deliver(folder, {no: ("jan", no) for no in range(1, 5)})
    folder.run()
    folder.write("pipeline.yaml", PIPELINE.replace("strategy: continue", "strategy: continue, type_error_threshold: 0.1"))
    folder.write("bookings.csv", folder.text("bookings.csv").replace("4,jan,4", "4,jan,x"))
    code, stdout, _ = command("plan", str(tmp_path / "pipeline.yaml"), "--diff", "--format", "markdown")
    assert code == 0
    assert "> Rejected records: 1 more, 0 repaired." in stdout
    assert "> The run would stop: " in stdout
    assert "| -R | 4 |" in stdout or "| +C | 4 |" in stdout
    assert folder.load().head_epoch() == 1


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    folder = project(tmp_path)
    deliver(folder, {1: ("jan", 1)})
    pipeline = str(tmp_path / "pipeline.yaml")
    for words in (["plan", pipeline, "--format", "markdown"], ["diff", pipeline, "out", "--format", "markdown"], ["diff", pipeline, "out", "--from", "0", "--to", "1", "--format", "markdown"],
                  ["diff", pipeline, "out", "--from", "0", "--pipeline", pipeline], ["diff", pipeline, "nowhere", "--pipeline", pipeline]):  # fmt: skip
        assert command(*words)[0] == 64, words


def test_digits_of_a_decimal_within_an_array_are_a_change() -> None:
    change = {"op": "+C", "before": {"a": [Decimal("10.10")], "n": Decimal("1.0")}, "after": {"a": [Decimal("10.100")], "n": Decimal("1.0")}}
    assert merged(change) == {"op": "+C", "a": "[10.10] → [10.100]", "n": Decimal("1.0")}


def test_markdown_has_no_signs_of_its_own_in_cells() -> None:
    change = {"op": "+C", "before": {"a|b": "x", "n": None}, "after": {"a|b": "<i>*y*", "n": 1}}
    assert merged(change) == {"op": "+C", "a|b": "x → <i>*y*", "n": "null → 1"}

    class Node:
        name, action, reason, added, removed, corrected, changed, figures, changes = "n", "delta", "", 0, 0, 1, 1, {}, [change]

    markdown = "".join(as_markdown([Node()], ["a\nb"]))  # type: ignore[list-item]  # a stand-in
    assert "| op | a\\|b | n |" in markdown
    assert "x → &lt;i&gt;\\*y\\*" in markdown
    assert markdown.endswith("\n> a b\n")
    assert "change nothing" in "".join(as_markdown([], []))
