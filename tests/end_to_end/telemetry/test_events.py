"""`--events jsonl` of whole runs: each stream fits the schema, and no value of the data is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.pipelines import Folder, command, jsonl

PIPELINE = """\
pipeline: { name: events }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: region, type: string }, { name: amount, type: int }]
  - { type: transform, name: halves, input: orders, config: { cxl: "emit half = 100 / amount" } }
  - { type: aggregate, name: sums, input: halves, config: { group_by: [region], cxl: "emit total = sum(half)" } }
  - { type: output, name: out, input: sums, config: { name: out, type: csv, path: sums.csv, write_meta: true, changelog: { path: changes.jsonl } } }
  - { type: output, name: parts, input: halves, config: { name: parts, type: json, path: parts.json, split: { max_records: 1 } } }
"""
SECRET = "geheim"


def made(path: Path, records: str) -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("orders.csv", f"id,region,amount\n{records}")
    return folder


def events_of(folder: Folder, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the events of a command."""
    name, *others = words
    code, out, _ = command(name, str(folder.path / "pipeline.yaml"), *others, "--events", "jsonl", "--engine", "sail")
    assert SECRET not in out
    return code, jsonl(out)


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in events if one["event"] == kind]


def test_a_history_tells_what_each_epoch_did(tmp_path: Path) -> None:
    folder = made(tmp_path, f"1,north,10\n2,south,20\n3,north,0\n4,east,{SECRET}\n")
    code, events = events_of(folder, "run")
    assert code == 2
    (read,), (committed,) = of(events, "source_read"), of(events, "committed")
    assert (read["rows"], read["rejected"], read["inputs"], read["skipped"]) == (4, 1, 1, 0)
    assert {(one["node"], one["category"], one["count"]) for one in of(events, "rejected")} == {("orders", "type_coercion_failure", 1), ("halves", "type_coercion_failure", 1)}
    log = folder.log("sums")
    assert committed["ops"]["sums"] == {"+A": len(log), "-R": 0, "-C": 0, "+C": 0}
    assert [one["event"] for one in events].index("committed") < [one["event"] for one in events].index("output_written")
    written = {(one["node"], one["kind"], one["target"]): one["rows"] for one in of(events, "output_written")}
    assert written == {
        ("out", "csv", "sums.csv"): 2, ("out", "meta", "sums.csv.meta.json"): None, ("out", "changelog", "changes.jsonl"): None,
        ("parts", "json", "parts_0001.json"): None, ("parts", "json", "parts_0002.json"): None,
    }  # fmt: skip
    assert all(one["bytes"] == (tmp_path / one["target"]).stat().st_size for one in of(events, "output_written"))

    folder.write("orders.csv", "id,region,amount\n1,north,20\n2,south,20\n3,north,5\n")
    code, events = events_of(folder, "run")
    (committed,) = of(events, "committed")
    assert (code, committed["epoch"], committed["rejected"], of(events, "rejected")) == (0, 2, 0, [])
    assert committed["ledger"] == folder.load().head().hash  # type: ignore[union-attr]  # there is one

    code, events = events_of(folder, "correct", "orders", "--key", "id=2", "--set", "amount=50", "--reason", SECRET)
    assert (code, of(events, "committed")[0]["ops"]["orders"], of(events, "source_read")) == (0, {"+A": 0, "-R": 0, "-C": 1, "+C": 1}, [])
    code, events = events_of(folder, "revert", "--to", "2")
    assert (code, of(events, "committed")[0]["epoch"]) == (0, 4)
    code, events = events_of(folder, "correct", "orders", "--key", "id=1", "--retract", "--reason", "x", "--dry-run")
    assert (code, of(events, "committed"), events[-1]["committed"], events[0]["dry_run"]) == (0, [], False, True)
    assert folder.violations() == []


def test_a_restored_file_is_told_of_without_an_epoch(tmp_path: Path) -> None:
    folder = made(tmp_path, "1,north,10\n")
    events_of(folder, "run")
    folder.remove("sums.csv")
    code, events = events_of(folder, "run")
    assert code == 0
    assert [(one["node"], one["target"], one["rows"], one["epoch"]) for one in of(events, "output_written") if one["kind"] == "csv"] == [("out", "sums.csv", 1, 1)]
    assert (of(events, "committed"), events[-1]["committed"]) == ([], False)


def test_a_record_that_stops_a_run_is_not_shown(tmp_path: Path) -> None:
    folder = made(tmp_path, f"1,north,10\n2,{SECRET},0\n")
    folder.write("pipeline.yaml", PIPELINE.replace("strategy: continue", "strategy: fail_fast"))
    code, events = events_of(folder, "run")
    assert (code, events[-1]["outcome"], events[-1]["message"]) == (3, "failed", "node 'halves': orders.csv: record 2: division by zero (type_coercion_failure)")
    folder.write("orders.csv", f"id,region,amount\n1,{SECRET},1\n1,b,2\n")
    code, events = events_of(folder, "run")
    assert (code, events[-1]["retry"]) == (4, "later")
    assert events[-1]["message"] == "source 'orders': the primary key id=..."


def test_a_pipeline_with_errors_has_the_epoch_that_was_committed(tmp_path: Path) -> None:
    folder = made(tmp_path, "1,north,10\n")
    folder.run()
    folder.write("pipeline.yaml", PIPELINE.replace("input: halves", "input: halfs"))
    code, events = events_of(folder, "run")
    assert (code, events[0]["pipeline"], events[0]["epoch"], events[-1]["epoch"], events[-1]["retry"]) == (1, "events", 1, 1, "after_change")
    assert [(one["severity"], Path(one["file"]).name) for one in of(events, "problem")] == [("error", "pipeline.yaml")] * 2
    assert events[-1]["code"] == of(events, "problem")[0]["code"]


def test_a_preview_commits_nothing(tmp_path: Path) -> None:
    folder = made(tmp_path, "1,north,10\n2,south,20\n")
    code, events = events_of(folder, "run", "-n", "1", "--dry-run-output", str(tmp_path / "preview.txt"))
    assert (code, events[0]["dry_run"], of(events, "committed"), of(events, "output_written"), events[-1]["epoch"]) == (0, True, [], [], 0)
    assert (tmp_path / "preview.txt").exists()


@pytest.mark.parametrize("words", [("run", "-n", "1"), ("run", "--explain"), ("correct", "orders", "--key", "id=9", "--retract", "--reason", "x"), ("dlq", "list"), ("dlq", "retry", "x")])
def test_wrong_words_have_no_events(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = made(tmp_path, "1,north,10\n")
    folder.run()
    name, *others = words
    code, out, _ = command(name, str(tmp_path / "pipeline.yaml"), *others, "--events", "jsonl", *(() if "--explain" in words else ("--engine", "sail")))
    assert (code, out) == (64, "")


def test_a_reader_that_goes_away_does_not_stop_the_run(tmp_path: Path) -> None:
    folder = made(tmp_path, "1,north,10\n")
    words = [sys.executable, "-m", "errata", "run", "pipeline.yaml", "--engine", "sail", "--events", "jsonl"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert json.loads(run.stdout.readline())["event"] == "run_started"
        run.stdout.close()
        said = run.stderr.read().decode()
    assert run.returncode == 0, said
    assert folder.load().head_epoch() == 1
