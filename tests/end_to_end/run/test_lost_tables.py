"""A table of the state that somebody removed: the run ends with exit code 4, and the outputs stay at the last epoch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from errata.core.events import Event
from errata.core.failures import Failure, StorageFailed
from tests.support.pipelines import Folder, command

PIPELINE = """\
pipeline: { name: lost }
nodes:
  - { type: source, name: rows, config: { name: rows, type: csv, path: rows.csv, merge: { primary_key: [id] }, schema: [{ name: id, type: int }, { name: g, type: string }, { name: v, type: int }] } }
  - { type: transform, name: doubled, input: rows, config: { cxl: "emit w = v * 2" } }
  - { type: aggregate, name: sums, input: doubled, config: { group_by: [g], cxl: "emit total = sum(w)\nemit most = max(w)" } }
  - { type: output, name: out, input: sums, config: { name: out, type: csv, path: out.csv } }
"""
TABLES = ("changelog/rows", "changelog/doubled", "changelog/sums", "changelog/out", "state/sums")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.write("pipeline.yaml", PIPELINE)
    for text in ("1,a,1\n2,b,2\n", "1,a,1\n2,b,2\n3,c,3\n"):
        made.write("rows.csv", "id,g,v\n" + text)
        made.run()
    return made


@pytest.mark.parametrize("table", TABLES)
def test_a_run_ends_and_says_which_table_it_is(folder: Folder, table: str) -> None:
    kept = folder.text("out.csv")
    shutil.rmtree(folder.path / ".errata/lost" / table)
    folder.write("rows.csv", "id,g,v\n2,b,2\n3,c,4\n")
    with pytest.raises(StorageFailed, match=f"{table}: the table is gone, the ledger says version") as caught:
        folder.run()
    assert caught.value.exit_code == 4
    assert folder.text("out.csv") == kept
    assert folder.run(full_refresh=True).exit_code == 0
    assert folder.text("out.csv") == "g,total,most\nb,4,4\nc,8,8\n"
    assert folder.violations() == []


def emptied(table: Path) -> None:
    """As a crash of the machine leaves the newest entry of a log that was not on disk yet."""
    max((table / "_delta_log").glob("*.json")).write_bytes(b"")


def dropped(table: Path) -> None:
    max((table / "_delta_log").glob("*.json")).unlink()


def shortened(table: Path) -> None:
    for file in table.glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-1])


def flipped(table: Path) -> None:
    """The size stays."""
    for file in table.glob("*.parquet"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)


@pytest.mark.parametrize(("table", "damage"), [("changelog/out", emptied), ("state/sums", emptied), *(("changelog/doubled", damage) for damage in (dropped, shortened, flipped))])
def test_a_run_ends_over_a_damaged_table_and_a_refresh_repairs_it(folder: Folder, table: str, damage: Callable[[Path], None]) -> None:
    kept = folder.text("out.csv")
    damage(folder.path / ".errata/lost" / table)
    folder.write("rows.csv", "id,g,v\n2,b,2\n3,c,4\n")
    with pytest.raises(StorageFailed, match=f"{table}: .*the ledger says version \\d") as caught:
        folder.run()
    assert caught.value.exit_code == 4
    assert folder.text("out.csv") == kept
    assert "violation" in {row["verdict"] for row in folder.load().verify()}
    assert folder.run(full_refresh=True).exit_code == 0
    assert folder.text("out.csv") == "g,total,most\nb,4,4\nc,8,8\n"
    assert folder.violations() == []


def test_a_ledger_that_lost_its_last_entry_ends_a_run(folder: Folder) -> None:
    emptied(folder.path / ".errata/lost/ledger")
    folder.write("rows.csv", "id,g,v\n2,b,2\n3,c,4\n")
    with pytest.raises(StorageFailed, match=r"epoch 2 was committed, the ledger ends with epoch 1; put it back from a copy, or move .*errata/lost away"):
        folder.run()
    shutil.rmtree(folder.path / ".errata/lost")
    assert folder.run(force=True).exit_code == 0
    assert folder.text("out.csv") == "g,total,most\nb,4,4\nc,8,8\n"


def test_a_refresh_of_a_damaged_state_that_fails_says_why(folder: Folder) -> None:
    damaged = folder.path / ".errata/lost/changelog/rows"
    emptied(damaged)
    folder.write("pipeline.yaml", PIPELINE.replace("v * 2", "v / (v - v)"))
    events: list[Event] = []
    with pytest.raises(Failure) as caught:
        folder.run(full_refresh=True, listener=events.append)
    assert (caught.value.exit_code, [event.action for event in events if event.kind == "warning"]) == (3, [])
    assert not damaged.exists()
    folder.write("pipeline.yaml", PIPELINE)
    assert folder.run(full_refresh=True).exit_code == 0
    assert folder.violations() == []


def test_anchors_that_were_not_written_do_not_end_a_run(folder: Folder) -> None:
    """As a full disk leaves them, two commits in a row."""
    state = folder.path / ".errata/lost"
    kept = (state / "anchor.json").read_bytes()
    for text in ("1,a,2\n", "1,a,3\n", "1,a,4\n"):
        folder.write("rows.csv", f"id,g,v\n{text}")
        folder.run()
    (state / "anchor.json").write_bytes(kept)
    assert folder.violations() == []
    folder.write("rows.csv", "id,g,v\n1,a,5\n")
    assert folder.run().epoch == 6
    assert folder.text("out.csv") == "g,total,most\na,10,10\n"
    assert (state / "anchor.json").read_bytes() != kept
    assert folder.violations() == []
    (state / "anchor.json").write_bytes(kept)
    DeltaTable(str(state / "ledger")).delete("epoch = 4")
    with pytest.raises(StorageFailed, match="its last entry is not the one that was committed as epoch 2"):
        folder.run()


@pytest.mark.parametrize("words", [("show", "sums"), ("log", "sums"), ("diff", "sums", "--from", "1", "--to", "2"), ("why", "sums", "g=a")])
def test_a_command_that_looks_says_so_too(folder: Folder, words: tuple[str, ...]) -> None:
    shutil.rmtree(folder.path / ".errata/lost/changelog/sums")
    name, *rest = words
    code, out, stderr = command(name, str(folder.path / "pipeline.yaml"), *rest)
    assert (code, out, "changelog/sums: the table is gone" in stderr) == (4, "", True)
