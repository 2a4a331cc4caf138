"""`errata revert`, `correct` and `compact`: what they do, that it stands, and that they may die at any durable step (issue 7, item 5)."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import errata
from errata.core.failures import Usage
from errata.core.options import Correction, EngineOptions, LogFilter, RunOptions
from storage import durable
from storage.durable import Moment
from tests.support.audited import BRIEF, LINES, lines, with_history
from tests.support.killing import Died, kill_points, leftovers
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
TYPO = Correction("lines", {"line": "l03"}, {"qty": "77"}, "a typo")
FILES = """\
pipeline:
  name: files
nodes:
  - type: source
    name: words
    config: { name: words, type: csv, glob: in/*.csv, schema: [{ name: word, type: string }] }
  - type: output
    name: out
    input: words
    config: { name: out, type: csv, path: out.csv }
"""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return with_history(tmp_path_factory.mktemp("history"))


@pytest.fixture
def folder(history: Folder, tmp_path: Path) -> Folder:
    return copied(history, tmp_path / "copy")


def copied(folder: Folder, place: Path) -> Folder:
    shutil.copytree(folder.path, place)
    return Folder(place)


def state(folder: Folder) -> dict[str, Any]:
    project = folder.load()
    return {node: list(project.show(node)) for node in project.node_names} | {"costs.csv": folder.text("costs.csv")}


def revert(folder: Folder) -> None:
    folder.load().revert(1, SAIL)


def correct(folder: Folder) -> None:
    folder.load().correct(TYPO, SAIL)


def compact(folder: Folder) -> None:
    folder.load().compact(3, SAIL.engine)


def refresh(folder: Folder) -> None:
    folder.run(full_refresh=True)


# -- revert


def test_a_revert_brings_back_what_stood_and_says_so(folder: Folder) -> None:
    then = {node: list(folder.load().show(node, 1)) for node in folder.load().node_names}
    result = folder.load().revert(1, SAIL)
    assert result.epoch == 4
    assert {node: list(folder.load().show(node)) for node in then} == then
    assert {row["cause"] for row in folder.log("lines") if row["epoch"] == 4} == {"revert:1"}
    assert folder.violations() == []


def test_a_revert_stands_until_a_file_changes(folder: Folder) -> None:
    revert(folder)
    reverted = state(folder)
    assert not folder.run().committed
    assert state(folder) == reverted
    folder.write_csv("lines.csv", LINES, lines(0)[:5])
    folder.run()
    assert [row["line"] for row in folder.load().show("lines")] == ["l00", "l01", "l02", "l03", "l04"]
    assert folder.violations() == []


def test_records_of_a_file_that_is_gone_stand_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", FILES)
    for name, word in (("a", "one"), ("b", "two")):
        folder.write(f"in/{name}.csv", f"word\n{word}\n")
    folder.run()
    folder.remove("in/b.csv")
    folder.run()
    folder.load().revert(1, SAIL)
    assert [row["word"] for row in folder.load().show("words")] == ["one", "two"]
    assert not folder.run().committed
    folder.write("in/c.csv", "word\nthree\n")
    folder.run()
    assert [row["word"] for row in folder.load().show("words")] == ["one", "two", "three"]
    folder.write("in/b.csv", "word\nfour\n")
    folder.run()
    assert sorted(row["word"] for row in folder.load().show("words")) == ["four", "one", "three"]
    assert folder.violations() == []


def test_a_revert_to_before_the_first_run_takes_everything_back(folder: Folder) -> None:
    folder.load().revert(0, SAIL)
    assert list(folder.load().show("lines")) == []
    assert folder.text("costs.csv") == "label,cost,n\n"


def test_what_stands_already_makes_no_epoch(folder: Folder) -> None:
    assert not folder.load().revert(3, SAIL).committed


def test_an_epoch_that_is_not_there_is_told(folder: Folder) -> None:
    with pytest.raises(Usage, match="there is no epoch 9"):
        folder.load().revert(9, SAIL)


def test_an_epoch_of_other_keys_cannot_be_reverted_to(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("in/a.csv", "word\none\n")
    for merge in ("{ strategy: snapshot }", "{ strategy: snapshot, primary_key: [word] }"):
        folder.write("pipeline.yaml", FILES.replace("glob:", f"merge: {merge}, glob:"))
        folder.run()
    with pytest.raises(Usage, match="epoch 1 knows the records of 'words' by their places in files, epoch 2 by the values of a primary key"):
        folder.load().revert(1, SAIL)
    assert folder.load().head_epoch() == 2


@pytest.mark.parametrize("words", [("log", "lines", "--epoch", "9"), ("show", "lines", "--at", "9"), ("diff", "lines", "--from", "1", "--to", "9")])
def test_an_epoch_that_is_not_there_cannot_be_shown(words: tuple[str, ...], history: Folder, tmp_path: Path) -> None:
    before = Folder(tmp_path)
    before.write("pipeline.yaml", history.text("pipeline.yaml"))
    for folder, message in ((history, "there is no epoch 9; the last one is 3"), (before, "no run yet, so there is nothing to show")):
        code, out, errors = command(words[0], str(folder.path / "pipeline.yaml"), *words[1:])
        assert (code, out) == (64, "")
        assert errors.startswith(f"error: {message}\n")


def test_a_log_since_an_epoch_to_come_is_empty(history: Folder) -> None:
    assert command("log", str(history.path / "pipeline.yaml"), "lines", "--since", "9", "--format", "jsonl") == (0, "", "")


def test_the_log_of_a_folded_epoch_is_refused(folder: Folder) -> None:
    compact(folder)
    code, _, errors = command("log", str(folder.path / "pipeline.yaml"), "lines", "--epoch", "1")
    assert code == 64
    assert "the history before epoch 2 was folded into a base" in errors


def test_what_a_state_tells_without_its_pipeline_knows_its_nodes(folder: Folder) -> None:
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("type: combine", "type: combined"))
    assert command("log", str(folder.path / "pipeline.yaml"), "lines", "--epoch", "1", "--format", "csv")[0] == 0
    code, _, errors = command("log", str(folder.path / "pipeline.yaml"), "lins")
    assert (code, "did you mean 'lines'" in errors) == (64, True)


# -- correct


def test_a_correction_shows_its_effect_and_stands(folder: Folder) -> None:
    before = next(row for row in folder.load().show("lines") if row["line"] == "l03")
    effect, result = folder.load().correct(TYPO, SAIL)
    assert result.epoch == 4
    assert {"node": "lines", "op": "+C", "before": before, "after": {**before, "qty": 77}} in list(effect)
    assert not folder.run().committed
    assert next(row for row in folder.load().why("lines", {"line": "l03"}) if row["live"])["reason"] == "a typo"
    assert [row.get("reason") for row in folder.load().runs()] == [None, None, None, "a typo"]
    assert folder.violations() == []


def test_a_corrected_record_is_the_files_again_when_its_file_changes(folder: Folder) -> None:
    correct(folder)
    folder.write_csv("lines.csv", LINES, lines(0)[:5])
    folder.run()
    assert [row["qty"] for row in folder.load().show("lines")] == [record["qty"] for record in lines(0)[:5]]


HANDED = """\
pipeline: {{ name: handed }}
error_handling: {{ strategy: continue }}
nodes:
  - type: source
    name: s
    config: {{ name: s, type: csv, glob: in/*.csv, merge: {merge}, schema: [{schema}] }}
  - {{ type: output, name: out, input: s, config: {{ name: out, type: csv, path: out.csv }} }}
"""
SCHEMA = "{ name: id, type: int }, { name: v, type: int }"
EDITS = {
    "another type": SCHEMA.replace("v, type: int", "v, type: float"),
    "a column more": SCHEMA + ", { name: w, type: string }",
    "a column less": "{ name: id, type: int }",
}
PK = "{ strategy: snapshot, primary_key: [id] }"


def handed(place: Path, merge: str) -> Folder:
    """A source with one corrected record and one retracted record."""
    folder = Folder(place)
    folder.write("pipeline.yaml", HANDED.format(merge=merge, schema=SCHEMA))
    folder.write("in/a.csv", "id,v,w\n1,10,p\n2,20,q\n3,30,r\n")
    folder.write("in/b.csv", "id,v,w\n4,40,p\n")
    folder.run()
    folder.load().correct(Correction("s", {"id": "2"}, {"v": "25"}, "a typo"), SAIL)
    folder.load().correct(Correction("s", {"id": "3"}, {}, "never ordered"), SAIL)
    return folder


def values(folder: Folder) -> list[tuple[str, float, str]]:
    return [(row["id"], float(row["v"]), row["w"]) for row in folder.rows("out.csv")]


@pytest.mark.parametrize("merge", ["snapshot", PK, "append", PK.replace("snapshot", "ledger"), PK.replace("snapshot", "upsert")])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_the_source_takes_back_nothing_that_was_changed_by_hand(tmp_path: Path, merge: str, edit: str) -> None:
    """Unchanged files are not read again, so a revert holds until a file changes."""
    folder = handed(tmp_path, merge)
    for schema in (EDITS[edit], SCHEMA):
        folder.write("pipeline.yaml", HANDED.format(merge=merge, schema=schema))
        folder.write("in/c.csv", folder.text("in/b.csv").replace("4,", "5,"))
        folder.run()
        assert values(folder) == [("1", 10, "p"), ("2", 25, "q"), ("4", 40, "p"), ("5", 40, "p")]
        assert folder.violations() == []


@pytest.mark.parametrize("merge", ["snapshot", PK])
def test_a_file_that_changes_together_with_its_source_says_what_stands(tmp_path: Path, merge: str) -> None:
    folder = handed(tmp_path, merge)
    folder.write("pipeline.yaml", HANDED.format(merge=merge, schema=EDITS["another type"]))
    folder.write("in/a.csv", "id,v,w\n1,11,p\n2,20,q\n3,30,r\n")
    folder.run()
    assert values(folder) == [("1", 11, "p"), ("2", 20, "q"), ("3", 30, "r"), ("4", 40, "p")]
    assert folder.violations() == []


FILED = {"1": 10.0, "2": 20.0, "3": 30.0, "4": 40.0}
UPSERT = PK.replace("snapshot", "upsert")


def gone(folder: Folder) -> None:
    folder.remove("in/a.csv")


def renamed(folder: Folder) -> None:
    folder.write("in/c.csv", folder.text("in/a.csv"))
    folder.remove("in/a.csv")


def delivered(folder: Folder) -> None:
    folder.write("in/c.csv", "id,v,w\n2,99,q\n3,98,r\n")


def grown(folder: Folder) -> None:
    folder.write("in/a.csv", folder.text("in/a.csv") + "7,70,p\n")


def compacted(folder: Folder) -> None:
    folder.load().compact(3, SAIL.engine)


@pytest.mark.parametrize(
    ("merge", "happens", "expected"),
    [
        ("snapshot", gone, {"4": 40.0}), (PK, gone, {"4": 40.0}), ("snapshot", renamed, FILED), (PK, renamed, FILED), (UPSERT, delivered, FILED | {"2": 99.0, "3": 98.0}),
        ("append", grown, FILED | {"7": 70.0}), ("snapshot", compacted, {"1": 10.0, "2": 20.0, "4": 40.0}), (PK, compacted, {"1": 10.0, "2": 20.0, "4": 40.0}),
    ],
)  # fmt: skip
def test_what_happens_to_files_together_with_an_edit_of_their_source_counts(tmp_path: Path, merge: str, happens: Callable[[Folder], None], expected: dict[str, float]) -> None:
    """A manual correction holds until the record's file changes. Folded epochs no longer show which changes were manual."""
    folder = handed(tmp_path, merge)
    happens(folder)
    folder.write("pipeline.yaml", HANDED.format(merge=merge, schema=EDITS["another type"]))
    folder.load().run(RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0))
    assert sorted((row["id"], float(row["v"])) for row in folder.rows("out.csv")) == sorted(expected.items())
    assert folder.violations() == []


def test_records_that_an_edit_splits_are_those_of_the_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    pipeline = HANDED.format(merge="snapshot", schema="{ name: id, type: int }, { name: t, type: string }").replace("type: csv, glob: in/*.csv", "type: json, path: in.json, array_paths: MODE", 1)
    folder.write("pipeline.yaml", pipeline.replace("MODE", "[{ path: t, mode: join }]"))
    folder.write("in.json", '[{"id": 1, "t": ["a"]}, {"id": 2, "t": ["c", "d"]}]')
    folder.run()
    folder.load().correct(Correction("s", {"id": "2"}, {"t": "x"}, "a typo"), SAIL)
    folder.write("pipeline.yaml", pipeline.replace("MODE", "[{ path: t, mode: explode }]"))
    folder.load().run(RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0))
    assert [(row["id"], row["t"]) for row in folder.rows("out.csv")] == [("1", "a"), ("2", "c"), ("2", "d")]
    assert folder.violations() == []


ROLLED_BACK = """\
pipeline: {{ name: rolled_back }}
error_handling: {{ strategy: continue, dlq: {{ path: rejected.csv }} }}
nodes:
  - type: source
    name: lines
    config: {{ name: lines, type: csv, glob: in/*.csv, merge: {merge}, correlation_key: o, schema: [{{ name: o, type: string }}, {{ name: id, type: int }}, {schema}] }}
  - {{ type: transform, name: t, input: lines, config: {{ cxl: "emit n = w.to_int()" }} }}
  - {{ type: output, name: out, input: t, config: {{ name: out, type: csv, path: out.csv, exclude: [n] }} }}
"""
QTY = "{ name: qty, type: int }, { name: w, type: string }"


def corrected_while_suppressed(folder: Folder) -> None:
    folder.load().correct(Correction("lines", {"id": "1"}, {"qty": "7"}, "a typo"), SAIL)


def taken_back_while_suppressed(folder: Folder) -> None:
    folder.load().correct(Correction("lines", {"id": "1"}, {}, "never ordered"), SAIL)


def trigger_corrected(folder: Folder) -> None:
    folder.load().correct(Correction("lines", {"id": "3"}, {"w": "worse", "qty": "9"}, "a typo"), SAIL)


def reverted_while_suppressed(folder: Folder) -> None:
    folder.write("in/a.csv", folder.text("in/a.csv").replace("1,10", "1,11"))
    folder.run()
    folder.load().revert(1, SAIL)


@pytest.mark.parametrize("merge", ["snapshot", PK])
@pytest.mark.parametrize(
    ("change", "expected"),
    [(corrected_while_suppressed, ["7", "20", "30"]), (taken_back_while_suppressed, ["20", "30"]), (trigger_corrected, ["10", "20", "9"]), (reverted_while_suppressed, ["10", "20", "30"])],
)
def test_an_edit_of_the_source_takes_back_nothing_that_was_changed_while_suppressed(tmp_path: Path, merge: str, change: Callable[[Folder], None], expected: list[str]) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", ROLLED_BACK.format(merge=merge, schema=QTY))
    folder.write("in/a.csv", "o,id,qty,w\nA,1,10,1\nB,2,20,2\n")
    folder.write("in/b.csv", "o,id,qty,w\nA,3,30,bad\n")
    folder.write("in/c.csv", "o,id,qty,w\nA,4,1,bad\n")
    folder.run()
    change(folder)
    for schema in (QTY.replace("qty, type: int", "qty, type: float"), QTY + ", { name: z, type: string, optional: true }"):
        folder.write("pipeline.yaml", ROLLED_BACK.format(merge=merge, schema=schema))
        folder.run()
    if change is trigger_corrected:
        folder.load().correct(Correction("lines", {"id": "3"}, {"w": "5"}, "another"), SAIL)
    else:
        folder.write("in/b.csv", "o,id,qty,w\nA,3,30,5\n")
    folder.write("in/c.csv", "o,id,qty,w\n")
    folder.run()
    assert [row["qty"] for row in folder.rows("out.csv")] == expected
    assert folder.violations() == []


@pytest.mark.parametrize("merge", ["snapshot", PK])
def test_a_record_corrected_by_hand_joins_the_groups_of_a_correlation_key_that_comes_later(tmp_path: Path, merge: str) -> None:
    folder = Folder(tmp_path)
    keyed = ROLLED_BACK.format(merge=merge, schema=QTY)
    folder.write("pipeline.yaml", keyed.replace("correlation_key: o, ", ""))
    folder.write("in/a.csv", "o,id,qty,w\nA,1,10,1\nB,2,20,2\n")
    folder.write("in/b.csv", "o,id,qty,w\nA,3,30,bad\n")
    folder.run()
    folder.load().correct(Correction("lines", {"id": "1"}, {"qty": "7"}, "a typo"), SAIL)
    assert [row["qty"] for row in folder.rows("out.csv")] == ["7", "20"]
    folder.write("pipeline.yaml", keyed)
    folder.run()
    assert [row["qty"] for row in folder.rows("out.csv")] == ["20"]
    assert [row for row in folder.load().verify(recompute=True) if row["verdict"] != "ok"] == []


def test_a_record_that_a_return_brings_back_joins_the_groups_of_a_later_correlation_key(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    keyed = ROLLED_BACK.format(merge=PK, schema=QTY)
    folder.write("pipeline.yaml", keyed.replace("correlation_key: o, ", ""))
    folder.write("in/a.csv", "o,id,qty,w\nA,1,10,1\nB,2,20,2\n")
    folder.run()
    folder.write("in/a.csv", "o,id,qty,w\nB,2,20,2\n")
    folder.write("pipeline.yaml", keyed)
    folder.write("in/b.csv", "o,id,qty,w\nA,3,30,bad\n")
    folder.run()
    folder.load().revert(1, SAIL)
    assert [row for row in folder.load().verify(recompute=True) if row["verdict"] != "ok"] == []


@pytest.mark.parametrize("merge", ["snapshot", PK])
def test_an_edit_of_the_source_takes_no_revert_back(tmp_path: Path, merge: str) -> None:
    folder = handed(tmp_path, merge)
    folder.write("in/a.csv", "id,v,w\n1,10,p\n2,21,q\n3,30,r\n6,60,r\n")
    folder.run()
    folder.load().revert(1, SAIL)
    folder.write("pipeline.yaml", HANDED.format(merge=merge, schema=EDITS["another type"]))
    folder.run()
    assert values(folder) == [("1", 10, "p"), ("2", 20, "q"), ("3", 30, "r"), ("4", 40, "p")]
    assert folder.violations() == []


def test_a_retraction_takes_the_record_back(folder: Folder) -> None:
    folder.load().correct(Correction("lines", {"line": "l03"}, {}, "never ordered"), SAIL)
    assert "l03" not in [row["line"] for row in folder.load().show("lines")]


def test_a_dry_run_shows_the_same_and_keeps_nothing(folder: Folder) -> None:
    before = state(folder)
    shown, result = folder.load().correct(TYPO, RunOptions(engine=EngineOptions("sail"), dry_run=True))
    assert not result.committed
    assert state(folder) == before
    made, _ = folder.load().correct(TYPO, SAIL)
    assert list(shown) == list(made)


@pytest.mark.parametrize(
    ("correction", "said"),
    [
        (Correction("lines", {"line": "l99"}, {"qty": "1"}, ""), "no record of 'lines' has line=l99"),
        (Correction("lines", {"line": "l03"}, {"qty": "many"}, ""), "column 'qty' is int: 'many' cannot be read as one"),
        (Correction("lines", {"line": "l03"}, {"line": "l04"}, ""), "part of the primary key"),
        (Correction("lines", {"line": "l03"}, {"quantity": "1"}, ""), "has no column 'quantity'"),
        (Correction("totals", {"label": "x"}, {"cost": "1"}, ""), "'totals' is no source"),
    ],
)
def test_what_cannot_be_corrected_is_told(folder: Folder, correction: Correction, said: str) -> None:
    with pytest.raises(Usage, match=said):
        folder.load().correct(correction, SAIL)
    assert folder.load().head_epoch() == 3


def test_a_record_that_could_not_be_read_is_corrected_in_its_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", FILES.replace("type: string", "type: int") + "error_handling: { strategy: continue }\n")
    folder.write("in/a.csv", "word\n1\nx\n")
    folder.run()
    with pytest.raises(Usage, match="no record of 'words' has word=2") as caught:
        folder.load().correct(Correction("words", {"word": "2"}, {"word": "3"}, ""), SAIL)
    assert caught.value.help == "a rejected record is repaired by corrections of its source, or in its file: errata dlq lists it"


# -- compact


def test_a_base_changes_no_later_answer(folder: Folder) -> None:
    before, middle = state(folder), list(folder.load().show("totals", 2))
    compacted = list(folder.load().compact(3, SAIL.engine))
    assert all(row["files"] <= 1 for row in compacted)
    assert state(folder) == before
    assert list(folder.load().show("totals", 2)) == middle
    assert {row["epoch"] for row in folder.log("lines")} == {2, 3}
    assert folder.violations() == []


NUMBERED = """\
pipeline: { name: numbered }
nodes:
  - type: source
    name: rows
    config: { name: rows, type: csv, path: rows.csv, merge: { primary_key: [id] }, schema: [{ name: id, type: string }, { name: v, type: int }] }
  - { type: output, name: out, input: rows, config: { name: out, type: csv, path: out.csv, changelog: { path: "log/{epoch}.jsonl" } } }
  - { type: output, name: table, input: rows, config: { name: table, type: delta, path: table, options: { mode: changelog } } }
error_handling: { strategy: continue }
"""


def test_rows_behind_a_base_are_numbered_on(tmp_path: Path) -> None:
    """`offset` counts from 0 per node over all committed epochs, without gaps."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", NUMBERED)
    for first, value in enumerate(["1\nb,2\nc,x", "3\nb,2", "4\nb,2", "5\nb,6", "7\nb,6"]):
        folder.write("rows.csv", f"id,v\na,{value}\n")
        folder.run()
        if first in (2, 3):
            list(folder.load().compact(first, SAIL.engine))
    assert [(row["epoch"], row["offset"]) for row in folder.log("rows")] == [(2, 2), (2, 3), (3, 4), (3, 5), (4, 6), (4, 7), (4, 8), (4, 9), (5, 10), (5, 11)]
    assert [row["offset"] for row in folder.load().log("rows", LogFilter(epoch=5))] == [10, 11]
    assert [row["offset"] for row in errata.changelog_stream(folder.load().changelog("rows")).collect()] == [*range(2, 12)]
    written = [[json.loads(line)["offset"] for line in folder.text(f"log/{epoch}.jsonl").splitlines()] for epoch in range(1, 6)]
    assert written == [[0, 1], [2, 3], [4, 5], [6, 7, 8, 9], [10, 11]]
    assert sorted(DeltaTable(str(tmp_path / "table")).to_pyarrow_table(columns=["offset"])["offset"].to_pylist()) == [*range(12)]
    folder.run(full_refresh=True)
    assert [row["offset"] for row in folder.log("table")] == [0, 1]


def test_readers_of_folded_epochs_are_told_so(folder: Folder) -> None:
    compact(folder)
    with pytest.raises(Usage, match="the history before epoch 2 was folded into a base"):
        list(folder.load().show("lines", 1))
    with pytest.raises(Usage, match="the history before epoch 2 was folded into a base"):
        revert(folder)


def test_runs_go_on_from_a_base(folder: Folder, history: Folder, tmp_path: Path) -> None:
    other = copied(history, tmp_path / "other")
    folder.load().compact(4, SAIL.engine)
    for one in (folder, other):
        one.write_csv("lines.csv", LINES, lines(1))
        one.run()
    assert state(folder) == state(other)
    assert folder.violations() == []


# -- dying


@pytest.mark.deep
@pytest.mark.parametrize("action", [revert, correct, compact, refresh])
def test_it_may_be_killed_at_every_step(action: Callable[[Folder], None], tmp_path: Path) -> None:
    history = with_history(tmp_path / "history", pipeline=BRIEF)
    done = copied(history, tmp_path / "done")
    points = kill_points(done, action, tmp_path / "killed")
    outcomes = (state(history), state(done))
    for point in points:
        point.folder.run()
        assert json.dumps(state(point.folder)) == json.dumps(outcomes[point.committed]), point
        assert point.folder.violations() == [], point
        assert leftovers(point.folder) == [], point


def test_a_refresh_that_dies_leaves_what_stood(history: Folder, tmp_path: Path) -> None:
    dying = copied(history, tmp_path / "dying")

    def probe(moment: Moment) -> None:
        if moment.name == "append:ledger" and moment.side == "before":
            raise Died

    with pytest.raises(Died), durable.probing(probe):
        dying.run(full_refresh=True)
    gc.collect()
    assert {node: list(dying.load().show(node)) for node in ("lines", "totals")} == {node: list(history.load().show(node)) for node in ("lines", "totals")}
    dying.run()
    assert state(dying) == state(history)
    assert dying.load().head_epoch() == 3
    assert dying.violations() == []
    dying.run(full_refresh=True)
    assert dying.load().head_epoch() == 1
    assert dying.violations() == []


@pytest.mark.parametrize("merge", ["", "merge: { primary_key: [id] }, "])
def test_a_run_whose_files_undo_manual_corrections_says_so(tmp_path: Path, merge: str) -> None:
    folder = Folder(tmp_path, options={"engine": SAIL.engine})
    source = "{ name: items, type: csv, path: in.csv, MERGE schema: [{ name: id, type: int }, { name: v, type: int }] }".replace("MERGE ", merge)
    folder.write("pipeline.yaml", FILES.replace("{ name: words, type: csv, glob: in/*.csv, schema: [{ name: word, type: string }] }", source).replace("words", "items"))

    def run(values: dict[int, int]) -> list[str]:
        said: list[str] = []
        folder.write("in.csv", "id,v\n" + "".join(f"{id_},{v}\n" for id_, v in values.items()))
        folder.run(listener=lambda event: said.append(event.action) if event.kind == "warning" else None)
        return said

    def correct(id_: int, **changes: str) -> None:
        folder.load().correct(Correction("items", {"id": str(id_)}, changes, "a call"), SAIL)

    run({1: 10, 2: 20, 3: 30, 4: 40})
    correct(1, v="11")
    correct(3)
    correct(4, v="44")
    assert run({1: 10, 2: 20, 3: 30, 4: 40}) == []
    [said] = run({1: 10, 2: 20, 3: 30, 4: 44, 5: 50})
    assert said == (
        "source 'items': its input changed, so manual corrections hold no more: 'id=1' of epoch 2, 'id=3' of epoch 3"
        " (errata correct --save keeps a correction in a file beside the pipeline)"
    )
    assert [int(row["v"]) for row in folder.rows("out.csv")] == [10, 20, 30, 44, 50]
    assert run({1: 12, 2: 20, 3: 30, 4: 44}) == []  # said once
    correct(2, v="22")
    folder.load().revert(1, SAIL)
    assert run({1: 12, 2: 20, 3: 30, 4: 44, 5: 51}) == []  # the correction was taken back
    correct(2, v="22")
    head = folder.load().head_epoch()
    assert head is not None
    folder.load().compact(head + 1, SAIL.engine)
    assert run({1: 13, 2: 20, 3: 30, 4: 44, 5: 51}) == []  # nothing tells folded corrections from other rows


def test_dead_letters_have_the_values_of_a_manual_correction(tmp_path: Path) -> None:
    """A record that a later node still rejects has its new values in the file of dead letters, and its old ones after a return."""
    folder = Folder(tmp_path, options={"engine": SAIL.engine})
    source = "{ name: items, type: csv, path: in.csv, schema: [{ name: id, type: int }, { name: k, type: string }, { name: v, type: int }] }"
    text = FILES.replace("{ name: words, type: csv, glob: in/*.csv, schema: [{ name: word, type: string }] }", source).replace("words", "items")
    checked = "  - { type: transform, name: checked, input: items, config: { cxl: emit w = v, validations: [{ field: k, check: not_empty }] } }\n"
    text = text.replace("  - type: output", checked + "  - type: output").replace("input: items\n    config: { name: out", "input: checked\n    config: { name: out")
    folder.write("pipeline.yaml", text + "error_handling: { strategy: continue, dlq: { path: dlq.csv, include_source_row: true } }\n")
    folder.write("in.csv", "id,k,v\n1,a,1\n2,,2\n")
    folder.run()
    for change, value in ((lambda: folder.load().correct(Correction("items", {"id": "2"}, {"v": "5"}, "a call"), SAIL), "5"), (lambda: folder.load().revert(1, SAIL), "2")):
        change()
        assert [(row["id"], row["v"]) for row in folder.rows("dlq.csv")] == [("2", value)]
