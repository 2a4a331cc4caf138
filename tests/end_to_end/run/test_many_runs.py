"""After many runs the state has the old versions of its tables no more, and is as good as ever."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from errata.core.failures import Exit
from storage.errors import StorageError
from tests.support.pipelines import Folder, command

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """\
pipeline: { name: p }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: n, type: int }] } }
  - { type: aggregate, name: a, input: s, config: { group_by: [], cxl: "emit total = sum(n)" } }
  - { type: output, name: o, input: a, config: { name: o, type: csv, path: o.csv } }
"""
RUNS = 26


def corrected(folder: Folder, run: int) -> int:
    """Let one of two records have another value. Returns their sum."""
    folder.write("s.csv", f"id,n\n1,{run}\n2,7\n")
    return run + 7


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A state after many runs, where four versions are kept and old ones are removed after each three."""
    monkeypatch.setattr("storage.delta.old_versions.KEPT_VERSIONS", 4)
    monkeypatch.setattr("storage.delta.old_versions._STEP", 3)
    monkeypatch.chdir(tmp_path)
    one = Folder(tmp_path)
    one.write("pipeline.yaml", PIPELINE)
    for run in range(1, RUNS + 1):
        total = corrected(one, run)
        one.run()
        assert one.text("o.csv") == f"total\n{total}\n"
    return one


def logs(folder: Folder) -> dict[str, int]:
    """The number of versions in the log of each table."""
    return {str(log.parent.relative_to(folder.path)): len(list(log.glob("*.json"))) for log in folder.path.rglob("_delta_log")}


def test_logs_are_bounded_and_nothing_is_lost(folder: Folder) -> None:
    counts = logs(folder)
    assert len(counts) == 5
    assert max(counts.values()) <= 4 + 3 + 10 + 2  # those kept, those since the last removal, and those behind the checkpoint
    assert command("verify", "pipeline.yaml")[0] == 0
    assert DeltaTable(str(folder.path / ".errata/p/ledger")).to_pyarrow_table().num_rows == RUNS
    code, text, _ = command("log", "pipeline.yaml", "o", "--format", "csv")
    assert (code, text.count("\n")) == (0, 2 * RUNS)  # a header, one `+A`, and a pair of corrections for each other run
    kept = sorted((folder.path / ".errata/p/changelog/o/_delta_log").glob("*.json"))[-2]
    content = kept.read_bytes()
    kept.unlink()
    assert command("verify", "pipeline.yaml")[0] == Exit.VIOLATION
    kept.write_bytes(content)
    folder.run(full_refresh=True)
    assert folder.text("o.csv") == f"total\n{RUNS + 7}\n"
    assert command("verify", "pipeline.yaml")[0] == 0


def test_a_run_that_fails_goes_back(folder: Folder) -> None:
    folder.write("s.csv", "id,n\n")
    assert command("run", "pipeline.yaml", "--max-retract-share", "0.5")[0] == Exit.STOPPED
    assert command("verify", "pipeline.yaml")[0] == 0
    total = corrected(folder, 1)
    folder.run()
    assert folder.text("o.csv") == f"total\n{total}\n"


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), StorageError("t", "no answer")])
def test_what_ends_the_removal_ends_no_epoch(folder: Folder, problem: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[str]()

    def fails(_folder: object, _uri: str, _base: int, label: str) -> int:
        tried.append(label)
        raise problem

    for run in range(1, 14):
        total = corrected(folder, run)
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr("storage.delta.old_versions.purge", fails)
            folder.run()
        assert folder.text("o.csv") == f"total\n{total}\n"
        assert command("verify", "pipeline.yaml")[0] == 0
    assert tried
