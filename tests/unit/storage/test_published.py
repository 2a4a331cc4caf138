"""Output tables: a merge leaves exactly the expected rows, and rewrites only files that held leaving rows."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction
from hypothesis import given
from hypothesis import strategies as st

from storage.delta.copy_on_write import Rewriting
from storage.delta.data_files import DataFile, TableFiles
from storage.delta.maintenance import MANY_FILES
from storage.delta.multisets import Leaving, net
from storage.delta.published_table import PublishedTable
from storage.engines import Engine
from storage.errors import StorageError
from tests.support.examples import examples

SCHEMA = pa.schema(
    [("id", pa.int64()), ("a name", pa.string()), ("x", pa.float64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("ok", pa.bool_())]
)
FEED = {"delta.enableChangeDataFeed": "true"}
Row = tuple[Any, ...]

NAN = float("nan")
DAY, MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 123456, dt.UTC)
row = st.tuples(
    st.integers(0, 9) | st.none(), st.sampled_from(["", "é", "x" * 40, None]), st.sampled_from([0.0, -0.0, 1.5, NAN, None]), st.sampled_from([DAY, None]),
    st.sampled_from([MOMENT, None]), st.sampled_from([True, None]),
)  # fmt: skip
bags = st.lists(row, max_size=8)


def as_texts(one: Row) -> tuple[str, ...]:
    """Return a row as text, where -0.0 differs from 0.0 and NaN equals NaN."""
    return tuple(value.isoformat() if isinstance(value, dt.datetime) else repr(value) for value in one)


def arrow(rows: list[Row]) -> pa.Table:
    return pa.table([pa.array(values, kind.type) for values, kind in zip(zip(*rows, strict=True) if rows else [[]] * len(SCHEMA), SCHEMA, strict=True)], schema=SCHEMA)


def content(place: Path) -> Counter[tuple[str, ...]]:
    found = pa.table(DeltaTable(str(place)).scan()).to_pylist()
    return Counter(as_texts(tuple(one.values())) for one in found)


def laid_out(place: Path, files: list[list[Row]], configuration: dict[str, str] | None = None) -> PublishedTable:
    write_deltalake(str(place), arrow([]), mode="overwrite", configuration=configuration)
    for rows in files:
        write_deltalake(str(place), arrow(rows), mode="append")
    return PublishedTable(str(place))


def split(rows: list[Row]) -> tuple[pa.Table, pl.Series]:
    """Return distinct rows with their numbers of copies."""
    counts = Counter(map(as_texts, rows))
    images = {as_texts(one): one for one in rows}
    return arrow([images[text] for text in counts]), pl.Series(list(counts.values()), dtype=pl.Int64)


@pytest.mark.parametrize("configuration", [None, FEED], ids=["plain", "with a change data feed"])
@given(files=st.lists(bags.filter(bool), max_size=4), came=bags, data=st.data())
@examples(24, 4)
def test_rows_leave_in_the_given_number_of_copies(configuration: dict[str, str] | None, files: list[list[Row]], came: list[Row], data: st.DataObject) -> None:
    standing = [one for rows in files for one in rows]
    goes = data.draw(st.lists(st.booleans(), min_size=len(standing), max_size=len(standing)))
    gone = [one for one, leaves in zip(standing, goes, strict=True) if leaves]
    with tempfile.TemporaryDirectory() as place:
        table = laid_out(Path(place), files, configuration)
        assert table.merge(*split(gone), arrow(came), "mark")
        assert content(Path(place)) == Counter(map(as_texts, standing)) - Counter(map(as_texts, gone)) + Counter(map(as_texts, came))
        assert table.mark() == "mark"


@pytest.mark.parametrize("configuration", [None, FEED], ids=["plain", "with a change data feed"])
def test_nothing_is_done_where_a_row_that_is_to_go_is_not_there_as_often(tmp_path: Path, configuration: dict[str, str] | None) -> None:
    one = (1, "a", -0.0, DAY, MOMENT, True)
    table = laid_out(tmp_path / "t", [[one], [one]], configuration)
    before = DeltaTable(tmp_path / "t").version()
    assert not table.merge(arrow([one]), pl.Series([3]), arrow([one]), "mark")
    assert not table.merge(arrow([(1, "a", 0.0, DAY, MOMENT, True)]), pl.Series([1]), arrow([]), "mark")
    assert DeltaTable(tmp_path / "t").version() == before
    assert content(tmp_path / "t") == {as_texts(one): 2}


def by_number(first: int, last: int, x: float = 1.5) -> list[Row]:
    return [(number, "a", x, DAY, MOMENT, True) for number in range(first, last)]


def paths(place: Path) -> set[str]:
    return set(DeltaTable(str(place)).file_uris())


def test_files_without_what_goes_stay_and_ranges_stay_ranges(tmp_path: Path) -> None:
    table = laid_out(tmp_path / "t", [by_number(start, start + 10) for start in range(0, 80, 10)])
    before = paths(tmp_path / "t")
    assert table.merge(arrow(by_number(73, 77)), pl.Series([1] * 4), arrow([*by_number(73, 77, 2.5), *by_number(200, 203)]), "one")
    assert len(before & paths(tmp_path / "t")) == 7
    scattered = by_number(5, 6) + by_number(55, 56)
    assert table.merge(*split(scattered), arrow([(number, "b", 0.5, DAY, MOMENT, True) for number in (5, 55)]), "two")
    ranges = sorted(file.bounds["id"] for file in TableFiles(DeltaTable(tmp_path / "t")).all())
    assert ranges == [*((start, start + 9) for start in range(0, 80, 10)), (200, 202)]


def test_a_large_rewritten_file_is_split_by_the_column_that_separates_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.delta.copy_on_write.FILE_BYTES", 1)
    table = laid_out(tmp_path / "t", [by_number(0, 2) + by_number(20, 22), by_number(40, 44)])
    assert table.merge(*split(by_number(0, 1)), arrow(by_number(2, 20)), "mark")
    ranges = sorted(file.bounds["id"] for file in TableFiles(DeltaTable(tmp_path / "t")).all())
    assert ranges[-1] == (40, 43)
    assert len(ranges) == 6
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))


def test_many_small_files_become_few_and_the_mark_stays(tmp_path: Path) -> None:
    table = laid_out(tmp_path / "t", [by_number(0, 1)])
    files = []
    for number in range(1, 30):
        table.append(iter(arrow(by_number(number, number + 1)).to_batches()), SCHEMA, str(number))
        assert table.mark() == PublishedTable(str(tmp_path / "t")).mark() == str(number)
        files.append(len(paths(tmp_path / "t")))
    assert max(files) <= MANY_FILES + 1
    assert content(tmp_path / "t") == Counter(map(as_texts, by_number(0, 30)))


def test_a_commit_fails_where_another_came_in_between(tmp_path: Path) -> None:
    table = laid_out(tmp_path / "t", [by_number(0, 9)])
    DeltaTable(tmp_path / "t").delete("id = 3")
    with pytest.raises(StorageError):
        table.merge(arrow(by_number(2, 3)), pl.Series([1]), arrow([]), "mark")
    assert sum(content(tmp_path / "t").values()) == 8


def test_engines_read_the_files_and_their_bounds(tmp_path: Path, engine: Engine) -> None:
    rows = [(1, "é", -0.0, DAY, MOMENT, True), (2, "x" * 40, NAN, None, None, None), (3, None, 0.0, DAY, MOMENT, False)]
    table = laid_out(tmp_path / "t", [rows])
    assert table.merge(arrow(rows[:1]), pl.Series([1]), arrow([(9, "", float("inf"), DAY, MOMENT, True)]), "mark")
    found = pa.table(DeltaTable(str(tmp_path / "t")).scan()).schema
    assert [str(kind) for kind in found.types] == [str(kind) for kind in pa.table(DeltaTable(str(tmp_path / "t"), version=1).scan()).schema.types]
    frame = engine.session.read.format("delta").load(str(tmp_path / "t"))
    read = engine.to_arrow(frame.select("id", "`a name`", "day", "at", "ok").orderBy("id")).to_pylist()
    assert [one["id"] for one in read] == [2, 3, 9]
    assert [one["a name"] for one in read] == ["x" * 40, None, ""]
    assert [one["at"] for one in read] == [None, MOMENT, MOMENT]
    assert engine.to_arrow(frame.where("x = 0").select("id")).to_pylist() == [{"id": 3}]
    assert engine.to_arrow(frame.where("id > 8").select("ok")).to_pylist() == [{"ok": True}]


@pytest.mark.parametrize("configuration", [None, FEED], ids=["plain", "with a change data feed"])
@pytest.mark.parametrize("name", ["*", "^.*$", "a.b", "__count", "__at", "__image", "__nth", "__comes"])
def test_columns_may_have_any_name(tmp_path: Path, name: str, configuration: dict[str, str] | None) -> None:
    before, goes, comes = (pa.table({"id": ids, name: [float(one) for one in ids]}) for ids in ([1, 2, 2, 3], [2, 3], [4, 5]))
    write_deltalake(str(tmp_path / "t"), before, configuration=configuration)
    images, weights = net(pa.concat_tables([goes, goes.slice(1), comes]), pl.Series([1, 1, -1, 1, 1]))
    assert images.to_pylist() == [{"id": number, name: float(number)} for number in (2, 4, 5)]
    assert weights.to_list() == [1, 1, 1]
    assert PublishedTable(str(tmp_path / "t")).merge(goes, pl.Series([1, 1]), comes, "mark")
    assert sorted(one[name] for one in pa.table(DeltaTable(str(tmp_path / "t")).scan()).to_pylist()) == [1.0, 2.0, 4.0, 5.0]


def test_a_file_is_found_that_may_hold_only_the_last_of_many_leaving_rows() -> None:
    count = 25_000
    rows = pl.DataFrame({"a": range(count), "b": [*[0] * (count - 1), 9], "text": ["x"] * count})
    low, high = ({"a": (0, count), "b": (bound, bound + 1)} for bound in (9, 10))
    files = [DataFile(name, 1, 1, bounds, {"a": 0, "b": 0}) for name, bounds in (("found", low), ("not", high))]
    assert [file.path for file in Rewriting(None, files, Leaving(rows, pl.Series([1] * count)), rows.to_arrow()).touched] == ["found"]  # type: ignore[arg-type]  # no file is read


def test_partitions_that_a_table_was_given_hold(tmp_path: Path) -> None:
    rows = [(1, "a b", 1.5, DAY, MOMENT, True), (2, "a/b%20", -0.0, DAY, MOMENT, True), (3, "a b", None, DAY, MOMENT, True)]
    write_deltalake(str(tmp_path / "t"), arrow(rows), partition_by=["a name"])
    assert PublishedTable(str(tmp_path / "t")).merge(arrow(rows[:2]), pl.Series([1, 1]), arrow([(4, "new", 2.5, DAY, MOMENT, True)]), "mark")
    found = DeltaTable(str(tmp_path / "t"))
    assert (sorted(pa.table(found.scan()).column("id").to_pylist()), found.metadata().partition_columns) == ([3, 4], ["a name"])
    assert {one["partition"]["a name"] for one in found.get_add_actions().to_struct_array().to_pylist()} == {"a b", "new"}


def test_times_stay_where_an_engine_put_files_together(tmp_path: Path) -> None:
    """Spark writes times as 96 bits. Many readers make nanoseconds of them, which end in the year 2262."""
    moments = [dt.datetime(year, 1, 2, 3, 4, 5, 678901, dt.UTC) for year in (1, 1500, 2024, 9999)]
    laid_out(tmp_path / "t", [])
    pq.write_table(arrow([(None, None, None, None, one, None) for one in moments]), tmp_path / "t/by-spark.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    add = AddAction("by-spark.parquet", (tmp_path / "t/by-spark.parquet").stat().st_size, {}, 0, data_change=False, stats='{"numRecords": 4}')
    DeltaTable(tmp_path / "t").create_write_transaction([add], "append", DeltaTable(tmp_path / "t").schema())
    table = PublishedTable(str(tmp_path / "t"))
    gone = (None, None, None, None, moments[2], None)
    assert table.merge(arrow([gone]), pl.Series([1]), arrow([]), "mark")
    assert pa.table(DeltaTable(str(tmp_path / "t")).scan()).column("at").to_pylist() == [*moments[:2], moments[3]]
