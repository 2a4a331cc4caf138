"""Triage of dead letters: decisions hold for what an entry says, through runs, refreshes, compactions, reverts and kills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from errata.amend import repairs
from errata.core.failures import Stopped, Usage
from errata.core.options import Erasure, LetterChoice, RepairNotes, RunOptions
from errata.rollback import triage
from tests.support.killing import kill_points
from tests.support.pipelines import Folder, command
from tests.support.shop import HEADER, decide, shop


def entries(folder: Folder) -> list[tuple[str, str, str]]:
    return [(row["category"], row["assigned"], row["waived"]) for row in folder.load().dlq_triage()]


def waived(folder: Folder) -> list[str]:
    """The detail of each waived entry."""
    return sorted(row["stage"] for row in folder.load().dlq_triage(LetterChoice(waived=True)))


@pytest.mark.parametrize("merge", ["", "merge: { strategy: snapshot, primary_key: [id] }"])
def test_a_waiver_holds_for_what_the_record_says(tmp_path: Path, merge: str) -> None:
    folder = shop(tmp_path, merge=merge)
    assert folder.run().exit_code == 2
    assert decide(folder, "waive", stage="source:orders") == 2
    assert decide(folder, "waive", stage="valued") == 0
    result = folder.run()
    assert (result.exit_code, result.rejected, result.waived) == (0, 0, 2)
    assert {row["_cxl_dlq_waived"] for row in folder.rows("out/rejected.csv")} == {"a test order"}
    assert [row["id"] for row in folder.rows("out/report.csv")] == ["A", "D"]
    folder.write("in/a.csv", HEADER + "A,1.5,2\nB,y,1\nC,3,one\nD,4,1\n")  # still wrong, but another record by now
    assert (folder.run().exit_code, waived(folder)) == (2, ["valued"])
    folder.write("in/a.csv", HEADER + "A,1.5,2\nD,4,1\n")
    assert (folder.run().exit_code, waived(folder)) == (0, [])
    folder.write("in/a.csv", HEADER + "N,1,1\nA,1.5,2\nB,x,1\nC,3,one\nD,4,1\n")  # both come back as they were
    assert (folder.run().exit_code, waived(folder)) == (0, ["source:orders", "valued"])
    assert (folder.run(full_refresh=True).exit_code, waived(folder)) == (0, ["source:orders", "valued"])
    assert decide(folder, "unwaive", stage="valued", reason="it is one after all") == 2
    folder.write("in/a.csv", HEADER + "A,1.5,2\nB,2,1\nC,3,1\nD,4,1\n")  # repaired: it comes back by itself
    result = folder.run()
    assert (result.exit_code, result.waived, [row["id"] for row in folder.rows("out/report.csv")]) == (0, 0, ["A", "B", "C", "D"])
    assert [(row["action"], row["author"], row["holds"]) for row in folder.load().dlq_history()] == [("end", "ben", None), ("waive", "ben", None), ("waive", "ben", False)]
    assert folder.violations() == []


def test_decisions_outlive_compaction_and_revert(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    folder.run()
    decide(folder, "assign", stage="valued", assignee="ana")
    decide(folder, "waive", stage="valued")
    folder.write("in/b.csv", HEADER + "E,1,two\n")
    folder.run()
    expected = [("type_coercion_failure", "", ""), ("type_coercion_failure", "ana", "a test order"), ("type_coercion_failure", "", "")]
    assert entries(folder) == expected
    list(folder.load().compact(4))
    assert entries(folder) == expected
    result = folder.load().revert(3)
    assert (result.exit_code, entries(folder)) == (2, expected[:2])
    assert folder.load().status()["waived"] == 1
    assert folder.violations() == []


def test_an_assignment_passes_on_and_ends(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    folder.run()
    decide(folder, "assign", older_than="0s", assignee="ana", reason="")
    decide(folder, "assign", stage="valued", assignee="ben", reason="knows the shop")
    assert [row["assigned"] for row in folder.load().dlq_triage()] == ["ana", "ben"]
    decide(folder, "assign", assigned="ana", reason="")
    assert [row["assigned"] for row in folder.load().dlq_triage()] == ["", "ben"]
    with pytest.raises(Usage, match="assigned so already"):
        decide(folder, "assign", assigned="ben", assignee="ben")
    with pytest.raises(Usage, match="no entry is meant"):
        decide(folder, "assign", older_than="1d", assignee="ben")
    with pytest.raises(Usage, match="no entry has the id"):
        decide(folder, "waive", "0123456789")


def test_an_id_or_its_beginning_names_an_entry(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    folder.run()
    first, second = (row["id"] for row in folder.load().dlq_triage())
    assert {first, second} == {row["_cxl_dlq_id"] for row in folder.rows("out/rejected.csv")}
    with pytest.raises(Usage, match="2 entries have ids that begin with"):
        decide(folder, "waive", first[:9])
    decide(folder, "waive", second)
    assert waived(folder) == ["valued"]


def test_of_equal_records_the_chosen_one_is_waived(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    folder.write("in/a.csv", HEADER + "B,x,1\nB,x,1\nB,x,1\n")
    folder.run()
    decide(folder, "waive", [row["id"] for row in folder.load().dlq_triage()][1])
    folder.write("in/b.csv", HEADER + "B,x,1\n")
    assert folder.run().rejected == 3
    assert [(row["row"], row["waived"] != "") for row in folder.load().dlq_triage()] == [(1, False), (2, True), (3, False), (1, False)]
    folder.write("in/a.csv", HEADER + "B,x,1\n")
    folder.run()
    assert [row["waived"] != "" for row in folder.load().dlq_triage()] == [True, False]


def test_a_killed_decision_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = shop(tmp_path / "whole")
    folder.run()
    for killed in kill_points(folder, lambda one: decide(one, "waive", stage="valued"), tmp_path / "killed"):
        assert waived(killed.folder) == (["valued"] if killed.committed else []), killed.moment
        result = killed.folder.run()
        assert (result.waived, result.exit_code) == (int(killed.committed), 2), killed.moment
        decide(killed.folder, "waive", stage="source:orders")
        assert len(waived(killed.folder)) == 1 + killed.committed, killed.moment
        assert killed.folder.violations() == [], killed.moment


def test_thresholds_by_category_count_no_waived_record(tmp_path: Path) -> None:
    folder = shop(tmp_path, handling=", thresholds: { type_coercion_failure: { records: 2 } }")
    folder.run()
    folder.write("in/b.csv", HEADER + "E,1,two\n")
    with pytest.raises(Stopped, match="3 records were rejected as type_coercion_failure, more than the 2 of"):
        folder.run()
    decide(folder, "waive", stage="valued")
    assert folder.run().rejected == 2
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{ records: 2 }", "{ share: 0.3 }"))
    with pytest.raises(Stopped, match=r"2 of 5 records were rejected as type_coercion_failure, more than the share 0\.3"):
        folder.run()


def test_a_retry_for_a_reason_is_an_epoch_and_may_reopen_a_period(tmp_path: Path) -> None:
    folder = shop(tmp_path, merge="correlation_key: id", closed='closed: "price < 2"')
    folder.run()
    result = folder.load().dlq_retry("C", RunOptions(reopen=True), "asked by the shop", "ben")
    assert (result.committed, result.exit_code) == (True, 2)
    [last] = [row for row in folder.load().runs() if row["epoch"] == result.epoch]
    assert (last["kind"], last["reason"], last["author"]) == ("dlq retry", "asked by the shop", "ben")
    assert [(row["action"], row["group"]) for row in folder.load().dlq_history()] == [("retry", "C")]


def test_the_end_of_a_run_names_the_command(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    code, _, errors = command("run", str(folder.path / "pipeline.yaml"))
    told = "errata dlq lists the rejected records and what can be done about them; out/rejected.csv holds them.\n"
    assert (code, told in errors) == (2, True)
    code, _, errors = command("run", str(folder.path / "pipeline.yaml"))
    assert (code, told in errors) == (2, True)
    code, out, _ = command("dlq", str(folder.path / "pipeline.yaml"), "waive", "--all", "--reason", "trial", "--author", "ben")
    assert (code, out) == (0, "")
    code, out, _ = command("dlq", str(folder.path / "pipeline.yaml"), "--format", "csv")
    assert [line.split(",")[9:11] for line in out.splitlines()] == [["waived", "id"], ["trial", "B"], ["trial", "C"]]
    code, out, _ = command("status", str(folder.path / "pipeline.yaml"))
    assert "0 records rejected; 2 waived" in out


def test_an_erasure_takes_decisions_about_the_records_along(tmp_path: Path) -> None:
    folder = shop(tmp_path, merge="correlation_key: id")
    folder.write("in/b.csv", HEADER + "personal-id-7,9,none\n")
    folder.run()
    decide(folder, "waive", "personal-id-7", "C", reason="a test order")
    assert folder.load().status()["waived"] == 2
    folder.remove("in/b.csv")
    erased = folder.load().erase(Erasure("asked for", "ben", key={"id": "personal-id-7"}))
    assert erased.result.waived == 1
    assert folder.load().status()["waived"] == 1
    assert [row["group"] for row in folder.load().dlq_history()] == ["C"]
    assert folder.violations() == []


def test_many_decisions_cost_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests are made once a run, of entries that a decision may be about; where cells can be repaired is looked up once a source."""
    folder = shop(tmp_path)
    taking = "type: csv\n      corrections: { path: corrections/*.yaml, key: [id] }"
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("type: csv", taking, 1))
    (tmp_path / "corrections").mkdir()
    folder.write("in/a.csv", HEADER + "".join(f"A{at},x{at},1\n" for at in range(1000)) + "".join(f"B{at},1,one\n" for at in range(500)) + "D,1\n")
    folder.run()
    ids = [row["id"] for row in folder.load().dlq_triage(LetterChoice(stage="source:orders", category="type_coercion_failure"))]
    decide(folder, "waive", *ids[:300])
    digested: list[int] = []
    monkeypatch.setattr(triage, "contents_of", lambda rejects, original=triage.contents_of: (digested.append(rejects.height), original(rejects))[1])
    folder.write("in/b.csv", HEADER + "C,1,1\n")
    assert (folder.run().rejected, digested) == (1201, [1500])
    sheet = tmp_path / "letters.csv"
    folder.load().dlq_export(sheet, LetterChoice(stage="source:orders", category="type_coercion_failure", waived=False))
    sheet.write_text(re.sub(r",x([0-9]+),1$", r",\1,1", sheet.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
    looked: list[str] = []
    monkeypatch.setattr(repairs.Repairs, "_targets_of", lambda self, source, accepted, original=repairs.Repairs._targets_of: (looked.append(source), original(self, source, accepted))[1])
    rows = list(folder.load().dlq_import(sheet, RepairNotes(reason="asked the shop")))
    assert ([row["verdict"] for row in rows], looked) == (["written"] * 700, ["orders"])
    assert folder.run().rejected == 501


@pytest.mark.parametrize("merge", ["", pytest.param("merge: { strategy: snapshot, primary_key: [id] }", marks=pytest.mark.deep)])
def test_a_record_that_its_source_rejects_keeps_its_age_when_a_correlation_key_is_added(tmp_path: Path, merge: str) -> None:
    """Its content is the same. Only a record with other content is a new entry."""
    folder = shop(tmp_path, merge=merge)
    folder.run()
    folder.write("in/b.csv", HEADER + "E,y,1\n")
    folder.run()
    before = since(folder)
    without = folder.text("pipeline.yaml")
    folder.write("pipeline.yaml", without.replace("      schema:", "      correlation_key: id\n      schema:"))
    folder.run()
    assert since(folder) == before
    assert {*before} <= {row["_cxl_dlq_id"] for row in folder.rows("out/rejected.csv")}
    folder.write("in/b.csv", HEADER + "E,z,1\n")
    folder.run()
    assert len({*since(folder)} - {*before}) == 1
    folder.write("pipeline.yaml", without)
    folder.run()
    assert len({*since(folder)} & {*before}) == len(before) - 1
    assert folder.violations() == []


def since(folder: Folder) -> dict[str, str]:
    """When each record came that the source itself rejected."""
    return {row["id"]: row["since"] for row in folder.load().dlq_triage(LetterChoice(stage="source:orders", category="type_coercion_failure"))}
