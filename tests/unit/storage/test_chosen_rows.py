"""Rows that are chosen on the driver are the ones that a plain filter chooses, whatever files they lie in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changelog.arrow_algebra import fold, remaining
from storage.delta import changelog_table
from storage.delta.changelog_table import ChangelogTable
from storage.delta.chosen_rows import FileSpans, InRanges, InSpans, InValues
from storage.delta.data_files import TableFiles
from storage.engines import Engine
from storage.errors import StorageError
from tests.support.examples import examples

COLUMNS = {"_op": "tinyint", "_key": "binary", "_cause": "string", "_error": "string", "_file": "string", "_row": "bigint", "^v.*$": "bigint", "w": "text"}
Record = dict[str, Any]

op_rows = st.builds(
    lambda op, key, file, row, v: {"_op": op, "_key": key, "_cause": "x", "_error": None, "_file": file, "_row": row, "^v.*$": v, "w": str(v)},
    st.integers(0, 3), st.binary(min_size=1, max_size=2), st.sampled_from(["a", "b"]), st.integers(1, 40), st.integers(0, 9),
)  # fmt: skip
epochs = st.lists(st.lists(op_rows, min_size=1, max_size=30), min_size=1, max_size=3)


def table_of(place: str, history: list[list[Record]], *, ordered: bool = False) -> ChangelogTable:
    """Return a table with one data file an epoch."""
    table = ChangelogTable(place, COLUMNS)
    for epoch, rows in enumerate(history, 1):
        table.append(arrow(sorted(rows, key=lambda row: row["_key"]) if ordered else rows), epoch)
    return table


def arrow(rows: list[Record]) -> pa.Table:
    kinds = {"_op": pa.int8(), "_key": pa.binary(), "_row": pa.int64(), "^v.*$": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS]))


def all_rows(history: list[list[Record]]) -> list[Record]:
    return [{"_epoch": epoch, **row} for epoch, rows in enumerate(history, 1) for row in rows]


def texts(rows: Any) -> list[str]:
    return sorted(str(sorted((name, value) for name, value in row.items() if name != "_cause")) for row in rows)


@examples(60, 12)
@given(st.lists(st.lists(op_rows, min_size=1, max_size=12), min_size=1, max_size=5), st.sets(st.binary(max_size=2), max_size=8), st.integers(1, 5), st.integers(0, 5))
def test_rows_of_the_last_epoch_of_some_keys(history: list[list[Record]], values: set[bytes], at: int, together: int) -> None:
    """Also where some epochs lie in one file."""
    wanted = values | {row["_key"] for rows in history for row in rows[::3]}
    with TemporaryDirectory() as place:
        table = table_of(place, history[:together])
        if together:
            table.optimize(1 << 20)
        for epoch, rows in enumerate(history[together:], together + 1):
            table.append(arrow(rows), epoch)
        found = table.newest_arrow(sorted(wanted), at)
    known = [row for row in all_rows(history) if row["_epoch"] <= at and row["_key"] in wanted]
    last = {row["_key"]: max(one["_epoch"] for one in known if one["_key"] == row["_key"]) for row in known}
    assert found is not None
    assert texts(found.to_pylist()) == texts(row for row in known if row["_epoch"] == last[row["_key"]])


def test_older_files_are_not_read_where_newer_ones_have_all_keys(tmp_path: Path) -> None:
    rows = [{"_op": 0, "_key": key, "_cause": "x", "_error": None, "_file": "a", "_row": 1, "^v.*$": 1, "w": "1"} for key in (b"a", b"b", b"c")]
    table = table_of(str(tmp_path), [rows, rows[:2], rows[:1]])
    for file in TableFiles(table._required()).all():
        if file.bounds["_epoch"] == (1, 1):
            (tmp_path / file.path).unlink()
    found = table.newest_arrow([b"a", b"b"])
    assert found is not None
    assert sorted(zip(found["_key"].to_pylist(), found["_epoch"].to_pylist(), strict=True)) == [(b"a", 3), (b"b", 2)]
    with pytest.raises(StorageError):
        table.newest_arrow([b"a", b"c"])
    assert table.newest_arrow([b"a", b"b"], most=1) is None
    table.append(arrow(rows[:1]), 4)
    table.append(arrow(rows[1:]), 4)
    found = table.newest_arrow([b"a", b"b", b"c"])
    assert found is not None
    assert found["_epoch"].to_pylist() == [4, 4, 4]
    table.clear()
    none = table.newest_arrow([b"a"])
    assert none is not None
    assert none.num_rows == 0


@examples(60, 12)
@given(epochs, st.sets(st.binary(max_size=2), max_size=8), st.booleans(), st.integers(1, 3))
def test_rows_with_one_of_some_values(history: list[list[Record]], values: set[bytes], ordered: bool, at: int) -> None:
    wanted = values | {row["_key"] for rows in history for row in rows[::3]}
    with TemporaryDirectory() as place:
        found = table_of(place, history, ordered=ordered).chosen_arrow(InValues("_key", sorted(wanted)), at)
    assert texts(found.to_pylist()) == texts(row for row in all_rows(history) if row["_epoch"] <= at and row["_key"] in wanted)


def test_files_beyond_the_values_are_not_read() -> None:
    choice = InValues("_key", [b"b", b"d"])
    assert [choice.may_choose({"_key": bounds}) for bounds in ((b"a", b"b"), (b"c", b"c"), (b"d", b"z"), (b"e", b"z"))] == [True, False, True, False]
    assert choice.may_choose({})
    assert not InValues("_key", []).may_choose({})


@examples(60, 12)
@given(epochs, st.sets(st.binary(max_size=2), max_size=8), st.booleans(), st.integers(1, 3), st.integers(0, 9))
def test_rows_in_ranges(history: list[list[Record]], ends: set[bytes], ordered: bool, at: int, most: int) -> None:
    """`most`: ranges that are conditions of a scan. Where it is even, the files come from a store of objects."""
    bounds = sorted(ends)
    ranges = list(zip(bounds[::2], bounds[1::2], strict=False))
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(changelog_table, "MOST_CONDITIONS", most)
        if most % 2 == 0:
            patch.setattr(TableFiles, "place", lambda _files, _file: None)
        table = table_of(place, history, ordered=ordered)
        found = texts(table.ranges_arrow(ranges, at).to_pylist())
        assert found == texts(table.chosen_arrow(InRanges("_key", ranges), at).to_pylist())
    wanted = [row for row in all_rows(history) if row["_epoch"] <= at and any(low <= row["_key"] < high for low, high in ranges)]
    assert found == texts(wanted)


@examples(60, 12)
@given(epochs, st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 3), st.integers(1, 45), st.integers(0, 9)), max_size=6))
def test_rows_in_spans(history: list[list[Record]], spans: list[tuple[str, int, int, int]]) -> None:
    by_file = [(file, [span[1:] for span in spans if span[0] == file]) for file in ("a", "b")]
    files = [FileSpans(file, *(np.array(column, np.int64) for column in zip(*((e, f, f + n) for e, f, n in own), strict=True))) for file, own in by_file if own]
    with TemporaryDirectory() as place:
        found = table_of(place, history).chosen_arrow(InSpans(files))
    inside = [row for row in all_rows(history) if any((row["_file"], row["_epoch"]) == (file, epoch) and first <= row["_row"] <= first + more for file, epoch, first, more in spans)]
    assert texts(found.to_pylist()) == texts(inside)


@examples(60, 12)
@given(epochs, st.sets(st.integers(0, 89)))
def test_some_rows_fold_as_all_do(history: list[list[Record]], places: set[int]) -> None:
    """The live rows among some rows follow from all retractions."""
    rows = all_rows(history)
    kinds = {"_epoch": pa.int64(), "_op": pa.int8(), "_key": pa.binary(), "_row": pa.int64(), "^v.*$": pa.int64()}
    everything = pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]]))
    some = everything.take(pa.array([at for at in sorted(places) if at < len(rows)], pa.int64()))
    taken = everything.filter(pa.array([row["_op"] in (1, 2) for row in rows])).select(["_key", "_epoch"])
    live = texts(fold(everything).to_pylist())
    assert texts(remaining(everything, taken).to_pylist()) == live
    assert set(texts(remaining(some, taken).to_pylist())) <= set(live)


def test_columns_that_came_later_and_times(engine: Engine, tmp_path: Path) -> None:
    """An engine writes one file, the driver another; a time far ahead is read from both. The folder has a name that URLs cannot hold."""
    place = str(tmp_path / "a b#\u00e9+c" / "table")
    far = datetime(2500, 1, 2, 3, 4, 5, 6, UTC)
    first = pa.table({"_op": pa.array([0, 0], pa.int8()), "_key": [b"a", b"b"], "t": pa.array([far, None], pa.timestamp("us", "UTC"))})
    table = ChangelogTable(place, {"_op": "tinyint", "_key": "binary", "t": "timestamp"})
    table.append(first, 1)
    later = first.append_column("s", pa.array(["x", None]))
    wider = ChangelogTable(place, {"_op": "tinyint", "_key": "binary", "t": "timestamp", "s": "text"})
    wider.append(engine.from_arrow(later), 2)
    found = wider.chosen_arrow(InRanges("_key", [(b"a", b"b")])).sort_by("_epoch")
    assert found.select(["_epoch", "_key", "t", "s"]).to_pylist() == [{"_epoch": 1, "_key": b"a", "t": far, "s": None}, {"_epoch": 2, "_key": b"a", "t": far, "s": "x"}]


def test_a_damaged_file_is_a_failure_of_storage(tmp_path: Path) -> None:
    table = table_of(str(tmp_path), [[{"_op": 0, "_key": b"a", "_cause": "x", "_error": None, "_file": "a", "_row": 1, "^v.*$": 1, "w": "1"}]])
    for file in tmp_path.glob("*.parquet"):
        file.write_bytes(b"PAR1" + bytes(file.stat().st_size - 8) + b"PAR1")
    with pytest.raises(StorageError):
        table.chosen_arrow(InRanges("_key", [(b"a", b"b")]))


@examples(30, 8)
@given(st.lists(st.lists(st.tuples(st.none() | st.just("e"), st.none() | st.just("f")), min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_column_is_blank_where_no_row_has_a_value(history: list[list[tuple[str | None, str | None]]]) -> None:
    op_rows = [[{"_op": 0, "_key": b"k", "_cause": "x", "_error": error, "_file": file, "_row": 1} for error, file in rows] for rows in history]
    with TemporaryDirectory() as place:
        found = table_of(place, op_rows).blank(["_error", "_file", "_row"])
    assert found == {name for name in ("_error", "_file", "_row") if all(row[name] is None for rows in op_rows for row in rows)}


def test_columns_that_tasks_wrote_are_blank_where_no_row_has_a_value(engine: Engine, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), COLUMNS)
    for epoch, file in enumerate((None, "f"), 1):
        rows = pa.table({"_op": pa.array([0], pa.int8()), "_key": [b"k"], "_cause": ["x"], "_error": pa.nulls(1, pa.string()), "_file": pa.array([file], pa.string())})
        whole = rows.append_column("_row", pa.array([1])).append_column("^v.*$", pa.array([1])).append_column("w", pa.array(["w"]))
        table.append(engine.from_arrow(whole), epoch)
        assert table.blank(["_error", "_file"]) == {"_error"} | ({"_file"} if file is None else set())
