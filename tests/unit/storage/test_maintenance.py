"""Maintenance: tables of many small appends are compacted, and opened from a checkpoint."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from storage.delta import maintenance
from storage.delta.changelog_table import ChangelogTable
from storage.delta.maintenance import MANY_FILES, SMALL_FILE
from storage.state.entry import Entry
from storage.state.integrity import anchor_ledger, check_ledger_files, check_tables, seal_tables
from storage.state.ledger import Ledger
from storage.state.location import State
from tests.support.examples import examples

if TYPE_CHECKING:
    import pytest

PATH = "changelog/words"
RUNS = 45
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHECKPOINT_EVERY = 10


def runs(root: Path) -> tuple[State, list[Entry]]:
    """Return a state after many runs that each commit one row, with their entries."""
    state = State(str(root))
    state.prepare()
    ledger, entries = Ledger(state.ledger), list[Entry]()
    for epoch in range(1, RUNS + 1):
        table = ChangelogTable(state.table(PATH), {"_op": "tinyint", "_key": "binary", "_cause": "string", "word": "string"})
        table.append(pa.table({"_op": pa.array([0], pa.int8()), "_key": [bytes([epoch])], "_cause": ["ingest"], "word": ["x"]}), epoch)
        ChangelogTable(state.table(PATH)).compact_if_fragmented()
        before, tables = entries[-1].tables if entries else {}, {PATH: ChangelogTable(state.table(PATH)).version()}
        entry = Entry(epoch, str(epoch), "b", NOON, NOON, 0, tables=tables, files=seal_tables(state, before, tables))
        entries.append(ledger.append(entry, entries[-1] if entries else None))
        ledger.compact_if_fragmented()
        anchor_ledger(state, ledger, entries[-1], {PATH: ChangelogTable(state.table(PATH)).data_files()})
    return state, entries


def test_tables_stay_small_and_quick_to_open_and_sealed(tmp_path: Path) -> None:
    state, entries = runs(tmp_path / "state")
    assert ChangelogTable(state.table(PATH)).statistics.rows() == RUNS
    assert [entry.epoch for entry in Ledger(state.ledger).entries()] == list(range(1, RUNS + 1))
    for place, files in ((PATH, ChangelogTable(state.table(PATH)).statistics.files()), ("ledger", Ledger(state.ledger).files())):
        log = Path(state.table(place)) / "_delta_log"
        versions = sorted(int(file.name[:20]) for file in log.glob("*.json"))
        checkpoint = max(int(file.name[:20]) for file in log.glob("*.checkpoint.parquet"))
        assert files <= MANY_FILES
        assert versions[-1] - checkpoint <= CHECKPOINT_EVERY
    assert [*check_ledger_files(state), *check_tables(state, entries)] == []
    anchored = orjson.loads((tmp_path / "state/anchor.json").read_bytes())["files"]
    assert {name for name in anchored if not name.startswith("_delta_log/")} == Ledger(state.ledger).data_files()
    assert len(anchored) <= MANY_FILES + CHECKPOINT_EVERY + 2


def test_large_files_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small runs do not rewrite the files of a large first run."""
    table = ChangelogTable(str(tmp_path / "t"), {"_op": "tinyint", "_key": "binary"})
    rows = pa.table({"_op": pa.array([0] * 5_000, pa.int8()), "_key": [at.to_bytes(8, "big") * 4 for at in range(5_000)]})
    table.append(rows, 1)
    [first] = table._required().file_uris()
    monkeypatch.setattr(maintenance, "SMALL_FILE", Path(first).stat().st_size)
    for epoch in range(2, MANY_FILES + 3):
        table.append(rows.slice(epoch, 1), epoch)
    assert table.statistics.files() == MANY_FILES + 2
    table.compact_if_fragmented()
    assert table.statistics.files() == 2
    assert first in table._required().file_uris()
    assert table.statistics.rows() == 5_000 + MANY_FILES + 1


@given(sizes=st.lists(st.integers(400, 6 << 20), max_size=30))
@example(sizes=[1_000] * 40)
@example(sizes=[1_000] * 10 + [40_000])
@example(sizes=[1_000] * 10 + [40_001])
@example(sizes=[4_000 * 4**tier for tier in range(6)] + [4_000] * 6)
@example(sizes=[(4 << 20) - 1] * 11)
@examples(200, 50)
def test_files_of_about_one_size_are_compacted_into_few(sizes: list[int]) -> None:
    """A file is written anew only with smaller ones that are a quarter of it, or with larger ones. Few files are left out."""
    below = maintenance.fragmented_below(iter(sizes))
    small = [size for size in sizes if size < SMALL_FILE]
    assert (below is None) == (len(small) <= MANY_FILES)
    if below is not None:
        together, left = [size for size in small if size < below], [size for size in small if size >= below]
        assert len(together) > 1
        assert max(together) <= 4 * (sum(together) - max(together))
        assert len(left) < MANY_FILES
        assert all(size > 4 * sum(together) for size in left)


def test_what_small_runs_write_anew_does_not_grow_with_the_table() -> None:
    files, written = list[int](), 0
    for _ in range(400):
        files.append(10_000)
        below = maintenance.fragmented_below(files)
        if below is not None:
            together = sum(size for size in files if size < below)
            files, written = [*(size for size in files if size >= below), together], written + together
        assert len(files) <= MANY_FILES
    assert sum(files) == 400 * 10_000
    assert written < 6 * sum(files)  # the whole table each time: 21 times


def test_a_changed_checkpoint_is_found(tmp_path: Path) -> None:
    state, entries = runs(tmp_path / "state")
    checkpoint = max((Path(state.table(PATH)) / "_delta_log").glob("*.checkpoint.parquet"))
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    checkpoint.write_bytes(content)
    assert checkpoint.name in "".join(fault.detail for fault in check_tables(state, entries))
