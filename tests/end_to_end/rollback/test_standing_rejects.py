"""Rejects that an earlier run let pass, under `fail_fast` or a lower threshold: they end runs, and no decision, amendment or erasure. Waived ones end no run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from errata.core.failures import Failure, Stopped, StorageFailed
from errata.core.options import Correction, Erasure, RunOptions
from tests.support.pipelines import Folder, command
from tests.support.shop import HEADER, decide, shop

KEYED = "merge: { strategy: snapshot, primary_key: [id] }"
MERGES = pytest.mark.parametrize("merge", ["", KEYED], ids=["bag", "keyed"])


def grown(path: Path, merge: str = "") -> Folder:
    """A shop with a reject at its source (B) and one behind it (C). E was there at the second epoch."""
    folder = shop(path, merge=merge)
    assert folder.run().exit_code == 2
    folder.write("in/b.csv", f"{HEADER}E,1,1\n")
    assert folder.run().exit_code == 2
    folder.remove("in/b.csv")
    assert folder.run().exit_code == 2
    return folder


def grown_strict(path: Path, merge: str = "") -> Folder:
    """The same, now under `fail_fast`."""
    folder = grown(path, merge)
    strict(folder)
    return folder


def strict(folder: Folder) -> None:
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("strategy: continue", "strategy: fail_fast"))


def limit(folder: Folder, handling: str) -> None:
    """Give `error_handling` another key."""
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("strategy: continue", f"strategy: continue, {handling}"))


def ids(folder: Folder) -> list[str]:
    return [row["id"] for row in folder.load().dlq_triage()]


def erase(folder: Folder, name: str) -> int:
    return folder.load().erase(Erasure("asked for", "ben", key={"id": name})).result.exit_code


DECISIONS: dict[str, Callable[[Folder], int]] = {
    "waive one": lambda folder: decide(folder, "waive", ids(folder)[0]),
    "waive a stage": lambda folder: decide(folder, "waive", stage="valued"),
    "assign": lambda folder: decide(folder, "assign", assignee="ana"),
    "correct": lambda folder: folder.load().correct(Correction("orders", {"id": "A"}, {"price": "2"}, "typo"))[1].exit_code,
    "correct a reject": lambda folder: folder.load().correct(Correction("orders", {"id": "C"}, {"pieces": "1"}, "typo"))[1].exit_code,
    "retract": lambda folder: folder.load().correct(Correction("orders", {"id": "A"}, {}, "typo"))[1].exit_code,
    "revert": lambda folder: folder.load().revert(2, RunOptions(max_retract_share=1.0)).exit_code,
    "erase what went": lambda folder: erase(folder, "E"),
}


@pytest.mark.parametrize("name", DECISIONS)
@MERGES
def test_only_runs_end_at_what_stood_before(tmp_path: Path, merge: str, name: str) -> None:
    """A decision, an amendment or an erasure is kept, and ends with 2 as entries are left; runs still end with 3."""
    folder = grown_strict(tmp_path, merge)
    assert DECISIONS[name](folder) == 2
    assert folder.load().head_epoch() == 4
    with pytest.raises(Stopped, match="by earlier runs and would end a full run"):
        folder.run()
    assert folder.load().head_epoch() == 4
    assert folder.violations() == []


SHARE = ("type_error_threshold: 0.2", r"2 of 4 records failed, more than the share 0\.2 of type_error_threshold")
RECORDS = ("thresholds: { type_coercion_failure: { records: 0 } }", "2 records were rejected as type_coercion_failure, more than the 0 of")
CATEGORY = ("thresholds: { type_coercion_failure: { share: 0.2 } }", r"2 of 4 records were rejected as type_coercion_failure, more than the share 0\.2")


@pytest.mark.parametrize(("name", "threshold"), [*((name, SHARE) for name in DECISIONS), ("waive one", RECORDS), ("correct a reject", RECORDS), ("retract", CATEGORY)])
def test_only_runs_end_at_a_threshold_that_became_lower(tmp_path: Path, name: str, threshold: tuple[str, str]) -> None:
    folder = grown(tmp_path, KEYED)
    limit(folder, threshold[0])
    with pytest.raises(Stopped, match=threshold[1]) as caught:
        folder.run()
    assert caught.value.help == "repair the input, repair or waive what errata dlq lists, or raise the threshold"
    assert DECISIONS[name](folder) == 2
    assert folder.load().head_epoch() == 4
    with pytest.raises(Stopped, match="more than the"):
        folder.run()
    assert folder.load().head_epoch() == 4
    assert folder.violations() == []


def test_the_ways_below_a_threshold_that_became_lower(tmp_path: Path) -> None:
    folder = grown(tmp_path, KEYED)
    folder.write("in/c.csv", f"{HEADER}F,5,five\n")
    assert folder.run().exit_code == 2
    limit(folder, SHARE[0])
    pipeline = str(tmp_path / "pipeline.yaml")
    why = ("--reason", "asked for")
    assert command("run", pipeline)[0] == 3
    assert command("dlq", pipeline, "waive", ids(folder)[0], *why)[0] == 2
    assert command("run", pipeline)[0] == 3
    assert command("correct", pipeline, "orders", "--key", "id=C", "--set", "pieces=1", *why, "--dry-run")[0] == 2
    assert command("correct", pipeline, "orders", "--key", "id=C", "--set", "pieces=1", *why)[0] == 2
    assert command("run", pipeline)[0] == 2
    folder.remove("in/c.csv")
    assert command("erase", pipeline, "--key", "id=F", *why)[0] == 0
    assert (folder.run().exit_code, folder.load().status()["waived"]) == (0, 1)
    assert folder.violations() == []


def test_a_retry_reads_input_and_ends_at_a_threshold(tmp_path: Path) -> None:
    folder = shop(tmp_path, merge="correlation_key: id")
    assert folder.run().exit_code == 2
    limit(folder, SHARE[0])
    code, _, notes = command("dlq", str(tmp_path / "pipeline.yaml"), "retry", "C", "--reason", "asked for")
    assert (code, "2 of 4 records failed" in notes) == (3, True)


@pytest.mark.parametrize("dry", [True, False])
def test_an_amendment_that_rejects_more_ends_at_a_threshold(tmp_path: Path, dry: bool) -> None:
    """Also where the threshold was exceeded before; another cause of one reject is no more rejects."""
    folder = grown(tmp_path, KEYED)
    limit(folder, SHARE[0])
    with pytest.raises(Stopped, match="3 of 4 records failed, more than the share"):
        folder.load().correct(Correction("orders", {"id": "A"}, {"pieces": "two"}, "typo"), RunOptions(dry_run=dry))
    assert folder.load().head_epoch() == 3
    assert folder.load().correct(Correction("orders", {"id": "C"}, {"pieces": "two"}, "typo"), RunOptions(dry_run=dry))[1].exit_code == 2


def test_a_waiver_above_a_threshold_can_be_taken_back(tmp_path: Path) -> None:
    """It rejects no record."""
    folder = grown(tmp_path, KEYED)
    limit(folder, SHARE[0])
    assert [decide(folder, "waive"), folder.run().exit_code, decide(folder, "unwaive")] == [0, 0, 2]
    with pytest.raises(Stopped, match=SHARE[1]):
        folder.run()


@MERGES
def test_a_rejected_record_can_be_erased(tmp_path: Path, merge: str) -> None:
    folder = grown_strict(tmp_path, merge)
    folder.write("in/a.csv", f"{HEADER}A,1.5,2\nC,3,one\nD,4,1\n")
    assert erase(folder, "B") == 2
    folder.write("in/a.csv", f"{HEADER}A,1.5,2\nD,4,1\n")
    assert erase(folder, "C") == 0
    assert folder.run().exit_code == 0
    assert folder.violations() == []


@MERGES
def test_waivers_can_be_taken_back(tmp_path: Path, merge: str) -> None:
    folder = grown_strict(tmp_path, merge)
    assert [decide(folder, "waive"), folder.run().exit_code] == [0, 0]
    assert decide(folder, "unwaive") == 2
    with pytest.raises(Stopped):
        folder.run()
    assert folder.violations() == []


def test_other_commands_look_at_rejects_and_go_on(tmp_path: Path) -> None:
    folder = grown_strict(tmp_path)
    pipeline = str(tmp_path / "pipeline.yaml")
    assert command("dlq", pipeline)[0] == 0
    assert command("dlq", pipeline, "groups")[0] == 0
    assert command("dlq", pipeline, "history")[0] == 0
    assert command("dlq", pipeline, "export", str(tmp_path / "letters.csv"))[0] == 0
    assert command("compact", pipeline)[0] == 0
    assert folder.load().head_epoch() == 3


@MERGES
def test_a_waived_record_ends_no_run(tmp_path: Path, merge: str) -> None:
    """A run, a full run, and a run to which the record comes back agree; what nobody waived ends each of them, with its own message."""
    folder = grown_strict(tmp_path, merge)
    assert decide(folder, "waive") == 0
    full = folder.text("in/a.csv")
    for changed in ({}, {"full_refresh": True}):
        result = folder.run(**changed)
        assert (result.exit_code, result.rejected, result.waived) == (0, 0, 2)
        assert [row["id"] for row in folder.rows("out/report.csv")] == ["A", "D"]
    folder.write("in/a.csv", f"{HEADER}A,1.5,2\nD,4,1\n")
    assert folder.run().waived == 0
    folder.write("in/a.csv", full)
    assert (folder.run().exit_code, folder.load().status()["waived"]) == (0, 2)
    folder.write("in/a.csv", f"{full}F,2.5,two\n")
    for changed in ({}, {"full_refresh": True}):
        with pytest.raises(Stopped, match=r"node 'valued': in/a\.csv: record 5: .*two") as caught:
            folder.run(**changed)
        assert caught.value.details == ("expression: emit value = price * pieces.to_int()", "record: {price: 2.5, pieces: two}")
    assert folder.violations() == []


@MERGES
def test_a_malformed_record_beside_waived_ones_ends_a_run(tmp_path: Path, merge: str) -> None:
    folder = grown_strict(tmp_path, merge)
    decide(folder, "waive")
    folder.write("in/a.csv", f"{folder.text('in/a.csv')}F,2\n")
    for changed in ({}, {"full_refresh": True}):
        with pytest.raises(StorageFailed, match="malformed_record"):
            folder.run(**changed)


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_waived_record_of_a_group(tmp_path: Path, refreshed: bool) -> None:
    """A waived record takes its group out, whose other records end no run."""
    folder = shop(tmp_path, merge="correlation_key: id")
    folder.write("in/a.csv", f"{HEADER}A,1.5,2\nA,2,one\nB,1,1\n")
    assert folder.run().exit_code == 2
    strict(folder)
    with pytest.raises(Stopped):
        folder.run(full_refresh=refreshed)
    decide(folder, "waive", category="type_coercion_failure")
    result = folder.run(full_refresh=refreshed)
    assert (result.exit_code, result.rejected, result.waived) == (2, 1, 1)
    assert [row["id"] for row in folder.rows("out/report.csv")] == ["B"]
    assert folder.violations() == []


GROUPS = """\
pipeline: { name: groups }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      glob: in/*.csv
      correlation_key: g
      schema: [{ name: id, type: string }, { name: g, type: string }, { name: v, type: int }]
  - { type: aggregate, name: parts, input: rows, config: { group_by: [g], cxl: "emit part = 12 / sum(v)" } }
  - { type: output, name: out, input: parts, config: { name: out, type: csv, path: out/parts.csv } }
"""
GROUPED = "id,g,v\nA,x,0\nB,x,0\nC,y,3\nD,y,3\nE,z,1\nF,z,-2\n"


def groups(path: Path) -> Folder:
    """Three groups: x divides by zero and was let pass, now under `fail_fast`."""
    folder = Folder(path)
    folder.write("pipeline.yaml", GROUPS)
    folder.write("in/a.csv", GROUPED)
    assert folder.run().exit_code == 2
    strict(folder)
    return folder


@pytest.mark.parametrize("name", ["B", "D"])
def test_a_group_that_fails_again_ends_no_erasure(tmp_path: Path, name: str) -> None:
    """Each epoch tries groups again. One that failed before is nothing new, whether the record is of this group or not."""
    folder = groups(tmp_path)
    folder.write("in/a.csv", "".join(line for line in GROUPED.splitlines(keepends=True) if not line.startswith(name)))
    assert erase(folder, name) == 2
    with pytest.raises(Stopped):
        folder.run()
    assert folder.violations() == []


@pytest.mark.parametrize("waived", [False, True])
def test_a_group_that_a_correction_breaks_ends_it(tmp_path: Path, waived: bool) -> None:
    folder = groups(tmp_path)
    if waived:
        decide(folder, "waive", category="aggregate_finalize")
    epoch = folder.load().head_epoch()
    with pytest.raises(Stopped, match="node 'parts': group g=z: division by zero"):
        folder.load().correct(Correction("rows", {"id": "F"}, {"v": "-1"}, "typo"))
    assert folder.load().correct(Correction("rows", {"id": "F"}, {"v": "1"}, "typo"))[1].exit_code == 2
    assert folder.load().head_epoch() == (epoch or 0) + 1
    folder.write("in/a.csv", GROUPED + "G,w,0\n")
    with pytest.raises(Stopped, match="node 'parts': group g=w: division by zero" if waived else "g=[wx]"):
        folder.run()
    assert folder.violations() == []


@pytest.mark.parametrize("change", ["", "F,1,1\n"], ids=["unchanged", "another record"])
@pytest.mark.parametrize("row", ["", "G,2\n"], ids=["failing", "malformed"])
def test_the_plan_tells_that_the_run_would_stop(tmp_path: Path, change: str, row: str) -> None:
    folder = shop(tmp_path)
    folder.write("in/a.csv", f"{HEADER}A,1.5,2\nB,x,1\n{row}")
    folder.run()
    strict(folder)
    folder.write("in/a.csv", f"{HEADER}A,1.5,2\nB,x,1\n{row}{change}")
    with pytest.raises(Failure, match="by earlier runs") as caught:
        folder.run()
    pipeline = str(tmp_path / "pipeline.yaml")
    code, shown, _ = command("plan", pipeline, "--diff")
    assert (code, f"The run would stop: {caught.value.message}" in " ".join(shown.split())) == (0, True)
    for words in (["plan", pipeline], ["run", pipeline, "--dry-run"]):
        code, _, notes = command(*words)
        assert (code, f"The run would stop: {caught.value.message}\n" in notes) == (0, not change)
    decide(folder, "waive")
    assert "would stop" not in command("plan", pipeline, "--diff")[1]
    assert "would stop" not in command("plan", pipeline)[2]
    assert "would stop" not in command("run", pipeline, "--dry-run")[2]
    assert folder.run().exit_code == 0


@pytest.mark.parametrize("threshold", [SHARE, RECORDS, CATEGORY], ids=["type errors", "records", "share"])
def test_the_plan_tells_of_a_threshold_that_became_lower(tmp_path: Path, threshold: tuple[str, str]) -> None:
    """Also where only the place of an output changes, by which no row does."""
    folder = grown(tmp_path)
    limit(folder, threshold[0])
    pipeline = str(tmp_path / "pipeline.yaml")
    for place in ("out/report.csv", "out/moved.csv"):
        folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("out/report.csv", place))
        with pytest.raises(Stopped, match=threshold[1]) as caught:
            folder.run()
        told = caught.value.message
        assert [folder.load().outlook().stopped(), folder.load().forecast().stopped] == [told, told]
        result = folder.run(dry_run=True)
        assert (result.exit_code, result.committed, result.message) == (0, False, told)
        line = f"The run would stop: {told}"
        assert line in " ".join(command("plan", pipeline, "--diff")[1].split())
        assert line in command("plan", pipeline)[2]
        assert command("run", pipeline, "--dry-run")[2].splitlines() == [line, "The pipeline is valid; nothing was changed."]
    assert folder.load().head_epoch() == 3


def test_a_dry_run_tells_of_its_own_options(tmp_path: Path) -> None:
    """`--error-threshold` belongs to the run. A full refresh and a run without a state begin without rejects."""
    grown(tmp_path)
    words = ("run", str(tmp_path / "pipeline.yaml"), "--dry-run", "--error-threshold")
    assert "The run would stop: 2 records were rejected, more than the threshold of 1" in command(*words, "1")[2]
    for more in (["2"], ["1", "--full-refresh"], ["1", "--ephemeral"]):
        code, _, notes = command(*words, *more)
        assert (code, "would stop" in notes) == (0, False)


def test_a_dry_run_tells_of_an_expectation(tmp_path: Path) -> None:
    """One that a run counted, and that ends runs from now on."""
    folder = shop(tmp_path)
    place = "type: transform, name: valued"
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace(place, f"{place}, expect: [{{ row_count: {{ min: 3 }} }}]"))
    folder.run()
    assert folder.run(dry_run=True).message == ""
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("min: 3 }", "min: 3 }, severity: stop"))
    with pytest.raises(Stopped) as caught:
        folder.run()
    assert folder.run(dry_run=True).message == folder.load().outlook().stopped() == caught.value.message
