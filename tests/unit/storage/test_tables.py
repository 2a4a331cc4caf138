"""Changelog tables give the same rows through delta-rs and through each engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from changelog.columns import EPOCH
from changelog.lazy_imports import F
from changelog.ops import NEGATIVE, Op
from storage.delta.changelog_table import Appended, ChangelogTable
from storage.delta.maintenance import WHOLE_FILE
from storage.delta.scan import Within
from storage.errors import Overtaken, StorageError
from tests.support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

    from storage.engines import Engine

pytestmark = pytest.mark.rarely_on_spark

Way: TypeAlias = Callable[[pa.Table], object]

ROWS = pa.table(
    {
        "_op": pa.array([0, 0, 1, 2, 3], pa.int8()),
        "_key": [b"a", b"b", b"\x00\xff", b"d", b"e"],
        "_cause": ["ingest", "ingest", None, "correction", "correction"],
        "_ck": pa.array([{"customer id": "x"}, None, {"customer id": None}, None, None], pa.struct([("customer id", pa.string())])),
        "Amount": [1.5, None, float("inf"), -0.0, 1e300],
        "amount": ["a", "", None, "ä", "\u0000"],
        "Order ID (x);": [1, -(2**63), 2**63 - 1, None, 0],
        "a.b`c": [True, False, None, True, None],
        "day": [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1), date(2024, 2, 29)],
        "at": pa.array(
            [datetime(1970, 1, 1, tzinfo=UTC), None, datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")
        )[:5],
    }
)


@pytest.fixture(params=["delta-rs", "engine"])
def way(request: pytest.FixtureRequest, engine: Engine) -> Way:
    """How rows come to a table: as Arrow, or as the engine's DataFrame."""
    return engine.from_arrow if request.param == "engine" else (lambda rows: rows)


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("_epoch", "ascending"), ("_key", "ascending"), ("_op", "ascending")])


def stamped(rows: pa.Table, epoch: int) -> pa.Table:
    """Return rows as a reader sees them after an append under an epoch."""
    table = rows.add_column(0, "_epoch", pa.array([epoch] * rows.num_rows, pa.int64()))
    return in_order(table.select(["_epoch", "_op", *(name for name in table.column_names if name not in ("_epoch", "_op"))]))


def test_what_is_appended_is_read_back(engine: Engine, way: Way, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    assert table.append(way(ROWS), 1) == Appended(5, 1)
    assert in_order(table.read_arrow()).equals(stamped(ROWS, 1))
    assert in_order(engine.to_arrow(table.read(engine))).equals(stamped(ROWS, 1))


def test_both_ways_meet_in_one_table(engine: Engine, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    for epoch, rows in enumerate([ROWS, engine.from_arrow(ROWS), ROWS, engine.from_arrow(ROWS)], start=1):
        assert table.append(rows, epoch) == Appended(5, epoch)
    expected = pa.concat_tables([stamped(ROWS, epoch) for epoch in range(1, 5)])
    assert in_order(table.read_arrow()).equals(in_order(expected))
    assert in_order(engine.to_arrow(table.read(engine))).equals(in_order(expected))


def test_epochs_and_at(engine: Engine, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    for epoch in (1, 2, 4):
        table.append(ROWS, epoch)
    for choice, epochs in (
        ({"epochs": (2, 3)}, {2}),
        ({"at": 2}, {1, 2}),
        ({"epochs": (2, 4), "at": 3}, {2}),
        ({}, {1, 2, 4}),
        ({"at": 0}, set()),
    ):
        for rows in (table.read_arrow(**choice), engine.to_arrow(table.read(engine, **choice))):
            assert set(rows.column("_epoch").to_pylist()) == epochs


def test_rows_of_an_epoch_come_within_a_size(engine: Engine, way: Way, tmp_path: Path) -> None:
    """A number and a text of 1,000 rows: texts of 10 bytes take less than 30 kB, texts of 1,000 bytes more than 1 MB."""
    table = ChangelogTable(str(tmp_path / "node"), {"id": "bigint", "text": "string"})
    for epoch, length in ((1, 10), (2, 1_000), (3, 0)):
        made = pa.table({"id": range(1_000), "text": ["x" * length] * 1_000})
        table.append(way(made), epoch)
    few = table.within(30_000, ["text", "id"], Within(EPOCH, 1, 1))
    assert few is not None
    assert (sorted(few.column("id").to_pylist()), set(few.column("text").to_pylist())) == ([*range(1_000)], {"x" * 10})
    assert table.within(1_000_000, ["text"], Within(EPOCH, 1, 2)) is None
    assert [found.num_rows for found in [table.within(1_000_000, ["id"], Within(EPOCH, 2, 3))] if found is not None] == [2_000]
    assert [found.num_rows for found in [table.within(0, ["id", "text"], Within(EPOCH, 4, 5))] if found is not None] == [0]


def test_how_many_rows_lie_near_some_epochs(tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    for epoch in (1, 2, 4):
        table.append(ROWS, epoch)
    assert [table.statistics.rows_near(epochs) for epochs in ((2, 3), (2, 4), (3, 3), (1, 9))] == [5, 10, 0, 15]


def test_how_many_rows_earlier_epochs_have(tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    for epoch in (1, 2, 4):
        table.append(ROWS, epoch)
    expected = {1: 0, 2: 5, 3: 10, 4: 10, 5: 15}
    assert {epoch: table.statistics.rows_before(epoch) for epoch in expected} == expected
    table.optimize(WHOLE_FILE)
    assert table.statistics.files() == 1
    assert {epoch: table.statistics.rows_before(epoch) for epoch in expected} == expected


@given(ops=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(list(Op))), max_size=12))
@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_counts_equal_those_in_the_rows(tmp_path_factory: pytest.TempPathFactory, ops: list[tuple[int, Op]]) -> None:
    table = ChangelogTable(str(tmp_path_factory.mktemp("t") / "t"), {"_op": "tinyint", "_key": "binary"})
    for epoch in (1, 2, 3):
        mine = [op for at, op in ops if at == epoch]
        table.append(pa.table({"_op": pa.array(mine, pa.int8()), "_key": pa.array([b"k"] * len(mine), pa.binary())}), epoch)
    for epoch in (1, 2, 3):
        assert table.statistics.counts(epoch) == {op: ops.count((epoch, op)) for op in Op}
    assert table.statistics.rows() == len(ops)
    assert table.statistics.retractions() >= sum(op in NEGATIVE for _, op in ops)
    assert table.statistics.retractions() == 0 or any(op is not Op.APPEND for _, op in ops)
    for at in (None, 1, 2):
        taken = [(b"k", epoch) for epoch, op in ops if op in NEGATIVE and epoch <= (at or 3)]
        assert sorted(map(tuple, (row.values() for row in table.taken_back(at).to_pylist()))) == sorted(taken)


def test_counts_of_what_an_engine_wrote(engine: Engine, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    table.append(engine.from_arrow(ROWS.slice(0, 2)), 1)
    table.append(engine.from_arrow(ROWS), 2)
    assert table.statistics.counts(1) == {Op.APPEND: 2, Op.RETRACT: 0, Op.CORRECT_FROM: 0, Op.CORRECT_TO: 0}
    assert table.statistics.counts(2) == {Op.APPEND: 2, Op.RETRACT: 1, Op.CORRECT_FROM: 1, Op.CORRECT_TO: 1}


def test_statistics_give_the_counts_of_accepted_rows(engine: Engine, way: Way, tmp_path: Path) -> None:
    def rows(ops: list[Op], errors: list[str | None]) -> pa.Table:
        keys = pa.array([b"k"] * len(ops), pa.binary())
        return pa.table({"_op": pa.array(ops, pa.int8()), "_key": keys, "_error": pa.array(errors, pa.string())})

    nothing = dict.fromkeys(Op, 0)
    table = ChangelogTable(str(tmp_path / "t"), rows([], []).schema)
    table.append(way(rows([Op.APPEND, Op.APPEND], [None, None])), 7)
    table.append(way(rows([Op.APPEND, Op.APPEND], [None, "{}"])), 8)
    table.append(way(rows([Op.APPEND, Op.RETRACT], [None, None])), 9)
    assert table.statistics.accepted_counts(7) == nothing | {Op.APPEND: 2}
    assert table.statistics.accepted_counts(8) is None
    assert table.statistics.accepted_counts(9) in (None, nothing | {Op.APPEND: 1, Op.RETRACT: 1})


def test_statistics_of_a_column_that_no_file_has_are_unknown(tmp_path: Path) -> None:
    narrow = {"_op": "tinyint", "_key": "binary"}
    ChangelogTable(str(tmp_path / "t"), narrow).append(pa.table({"_op": pa.array([0], pa.int8()), "_key": pa.array([b"k"])}), 1)
    table = ChangelogTable(str(tmp_path / "t"), {**narrow, "_error": "string"})
    table.create()
    assert (table.statistics.rejected_rows(), table.statistics.accepted_counts(1), table.statistics.rows()) == (None, None, 1)


def test_a_wider_schema_and_a_changed_type(engine: Engine, way: Way, tmp_path: Path) -> None:
    old = pa.table({"_op": pa.array([0], pa.int8()), "_key": [b"a"], "amount": [1.5], "gone": ["x"]})
    new = pa.table({"_op": pa.array([0], pa.int8()), "_key": [b"b"], "amount": ["1.5"], "added": [7]})
    ChangelogTable(str(tmp_path / "t"), old.schema).append(way(old), 1)
    table = ChangelogTable(str(tmp_path / "t"), new.schema)
    table.append(way(new), 2)
    expected = [
        {"_epoch": 1, "_op": 0, "_key": b"a", "amount": "1.5", "added": None},
        {"_epoch": 2, "_op": 0, "_key": b"b", "amount": "1.5", "added": 7},
    ]
    assert in_order(table.read_arrow()).to_pylist() == expected
    assert in_order(engine.to_arrow(table.read(engine))).to_pylist() == expected
    before = ChangelogTable(table.uri, old.schema).read_arrow(at=1)
    assert before.to_pylist() == [{"_epoch": 1, "_op": 0, "_key": b"a", "amount": 1.5, "gone": "x"}]


MOMENT = datetime(2024, 2, 29, 23, 59, 59, 500000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kinds", "values", "expected"),
    [
        (("text", "json"), ["a", "1", "", None], ['"a"', '"1"', '""', None]),
        (("json", "text"), ['"a"', "1", "1.5", "true", '[1,"a"]', '{"b":null}', "null", None], ["a", "1", "1.5", "true", '[1,"a"]', '{"b":null}', None, None]),
        (("json", "bigint"), ["1", "1.0", '"7"', "1.5", "[1]", '"x"'], [1, 1, 7, None, None, None]),
        (("json", "double"), ["1", "0.5", '"x"', "[]"], [1.0, 0.5, None, None]),
        (("json", "boolean"), ["true", "0", '"x"'], [True, False, None]),
        (("json", "date"), ['"2024-02-29"', "7"], [MOMENT.date(), None]),
        (("json", "timestamp"), ['"2024-02-29T23:59:59.5"', "7"], [MOMENT, None]),
        (("bigint", "json"), [1, None], ["1", None]),
        (("double", "json"), [1.0, 0.5], ["1.0", "0.5"]),
        (("boolean", "json"), [True], ["true"]),
        (("date", "text"), [MOMENT.date()], ["2024-02-29"]),
        (("date", "json"), [MOMENT.date()], ['"2024-02-29"']),
        (("timestamp", "text"), [MOMENT, MOMENT.replace(microsecond=0)], ["2024-02-29T23:59:59.5", "2024-02-29T23:59:59"]),
        (("timestamp", "json"), [MOMENT], ['"2024-02-29T23:59:59.5"']),
    ],
)
def test_earlier_values_are_read_in_the_type_of_the_column(engine: Engine, tmp_path: Path, kinds: tuple[str, str], values: list[object], expected: list[object]) -> None:
    system = {"_op": "tinyint", "_key": "binary"}
    rows = pa.table({"_op": pa.array([0] * len(values), pa.int8()), "_key": [bytes([at]) for at in range(len(values))], "v": values})
    ChangelogTable(str(tmp_path / "t"), system | {"v": kinds[0]}).append(rows, 1)
    table = ChangelogTable(str(tmp_path / "t"), system | {"v": kinds[1]})
    for found in (table.read_arrow(), engine.to_arrow(table.read(engine))):
        assert in_order(found).column("v").to_pylist() == expected


def test_no_schema_means_that_of_the_first_rows(engine: Engine, way: Way, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"))
    assert not table.exists()
    assert table.version() is None
    table.append(way(ROWS), 1)
    assert in_order(ChangelogTable(table.uri).read_arrow()).equals(stamped(ROWS, 1))


@given(data=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), st.integers(-9, 9), max_size=5))
@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_column_names_of_any_spelling(sail: Engine, tmp_path_factory: pytest.TempPathFactory, data: dict[str, int]) -> None:
    named = {name: value for name, value in data.items() if name not in ("_epoch", "_op", "_key")}
    rows = pa.table({"_op": pa.array([0], pa.int8()), "_key": [b"k"], **{name: pa.array([value]) for name, value in named.items()}})
    table = ChangelogTable(str(tmp_path_factory.mktemp("t") / "t"), rows.schema)
    table.append(rows, 1)
    table.append(sail.from_arrow(rows), 2)
    expected = [{"_epoch": epoch, "_op": 0, "_key": b"k", **named} for epoch in (1, 2)]
    assert in_order(table.read_arrow()).to_pylist() == expected
    assert in_order(sail.to_arrow(table.read(sail))).to_pylist() == expected


@pytest.mark.parametrize("folder", ["with blank", "ä日", "#?%*", "{a},'b'"])
def test_folders_of_any_spelling(engine: Engine, tmp_path: Path, folder: str) -> None:
    table = ChangelogTable(str(tmp_path / folder / "t"), ROWS.schema)
    table.append(engine.from_arrow(ROWS), 1)
    table.append(ROWS, 2)
    assert engine.to_arrow(table.read(engine)).num_rows == table.read_arrow().num_rows == 10
    assert [path.name for path in tmp_path.iterdir()] == [folder]


def test_restore_takes_an_uncommitted_epoch_back_once(engine: Engine, way: Way, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    committed = table.append(way(ROWS), 1).version
    table.append(way(ROWS), 2)
    assert table.restore(committed)
    restored = table.version()
    assert in_order(engine.to_arrow(table.read(engine))).equals(stamped(ROWS, 1))
    assert not table.restore(committed)
    assert table.version() == restored
    assert table.append(way(ROWS), 2).rows == 5


steps = st.sampled_from(["append", "commit", "ask", "ask then", "restore", "clear"])


@given(steps=st.lists(st.tuples(steps, st.integers(0, 4), st.lists(st.sampled_from([None, "{}"]), max_size=2)), max_size=8))
@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cached_rejects_equal_the_rejects_in_the_files(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, list[str | None]]]) -> None:
    schema = {"_op": "tinyint", "_key": "binary", "_error": "string"}
    table = ChangelogTable(str(tmp_path_factory.mktemp("t") / "t"), schema, writer="run")
    table.create()
    epoch, committed = 1, table.version()
    for at, (step, asked, errors) in enumerate(steps):
        if step == "append":
            keys = pa.array([b"%d" % at] * len(errors), pa.binary())
            table.append(pa.table({"_op": pa.array([0] * len(errors), pa.int8()), "_key": keys, "_error": pa.array(errors, pa.string())}), epoch)
        elif step == "commit":
            epoch, committed = epoch + 1, table.version()
        elif step == "restore":
            table.restore(committed)
        elif step == "clear":
            table.clear()
        else:
            upto = asked if step == "ask then" else None
            assert in_order(table.rejects_arrow(upto)).equals(in_order(ChangelogTable(table.uri, schema).rejects_arrow(upto)))


def test_restore_of_a_table_that_no_epoch_knows_empties_it(tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    assert not table.restore(None)
    table.append(ROWS, 1)
    assert table.restore(None)
    assert table.read_arrow().num_rows == 0
    assert not table.restore(None)


def test_restore_after_widening_brings_the_narrow_table_back(tmp_path: Path) -> None:
    narrow = ChangelogTable(str(tmp_path / "t"), {"_op": "tinyint", "_key": "binary"})
    row = {"_op": pa.array([0], pa.int8()), "_key": [b"k"]}
    committed = narrow.append(pa.table(row), 1).version
    ChangelogTable(narrow.uri, {"_op": "tinyint", "_key": "binary", "new": "string"}).create()
    assert narrow.restore(committed)
    assert ChangelogTable(narrow.uri).columns() == ["_epoch", "_op", "_key"]


def test_a_cleared_table_is_empty_until_it_is_restored(engine: Engine, way: Way, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    table.clear()
    committed = table.append(way(ROWS), 1).version
    table.clear()
    assert table.read_arrow().num_rows == engine.to_arrow(table.read(engine)).num_rows == table.statistics.rows() == 0
    table.append(way(ROWS), 1)
    assert in_order(engine.to_arrow(table.read(engine))).equals(stamped(ROWS, 1))
    assert table.restore(committed)
    assert in_order(table.read_arrow()).equals(stamped(ROWS, 1))


def test_tables_stay_within_the_oldest_protocol(engine: Engine, way: Way, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    table = ChangelogTable(str(tmp_path / "t"), ROWS.schema)
    table.append(way(ROWS), 1)
    protocol = DeltaTable(table.uri).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_a_table_that_takes_the_place_of_a_deleted_one_has_its_own_columns(engine: Engine, tmp_path: Path) -> None:
    """The engine of this process has read the first table."""
    for name in ("one", "two", "three"):
        rows = pa.table({"_op": pa.array([0], pa.int8()), "_key": [b"a"], "_cause": ["ingest"], name: [1]})
        table = ChangelogTable(f"{tmp_path}/changelog/t")
        for epoch in (1, 2):
            table.append(engine.from_arrow(rows), epoch)
        table.replace(table.read(engine, epochs=(2, 2)).where(F.col(name) == 1).drop("_epoch"), 2)
        assert in_order(engine.to_arrow(table.read(engine))).equals(pa.concat_tables([stamped(rows, epoch) for epoch in (1, 2)]))
        shutil.rmtree(tmp_path / "changelog")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match="file/t"):
        ChangelogTable(str(tmp_path / "file" / "t"), ROWS.schema).append(ROWS, 1)


@pytest.mark.parametrize("restored", [True, False])
def test_a_version_before_a_checkpoint_can_be_read(tmp_path: Path, engine: Engine, restored: bool) -> None:
    """A table with many writes and undos after the version in the ledger has checkpoints after it."""
    place = str(tmp_path / "t")
    written = ChangelogTable(place)
    for epoch in (1, 2, 3):
        version = written.append(ROWS, epoch).version
    stood = in_order(written.read_arrow())
    for _ in range(6):
        written.append(ROWS, 4)
        written.restore(version)
    if not restored:
        written.append(ROWS, 4)
    pinned = ChangelogTable(place, pinned=version)
    assert in_order(engine.to_arrow(pinned.read(engine))).equals(stood)
    assert in_order(engine.to_arrow(pinned.read(engine, at=2))).equals(stood.filter(pa.compute.less_equal(stood["_epoch"], 2)))


def test_rows_of_another_run_are_not_taken_for_its_own(tmp_path: Path, engine: Engine) -> None:
    """A frame without rows makes no commit, and what an earlier run committed is no other run's work."""
    place, schema = str(tmp_path / "t"), {"_op": "tinyint", "_key": "binary"}
    rows = pa.table({"_op": pa.array([0], pa.int8()), "_key": [b"k"]})
    ChangelogTable(place, schema, writer="first").append(rows, 1)
    table = ChangelogTable(place, schema, writer="second")
    assert table.append(engine.from_arrow(rows.slice(0, 0)), 2).rows == 0
    assert table.append(engine.from_arrow(rows), 2).rows == 1
    for look in (lambda: table.append(rows, 2), lambda: table.append(engine.from_arrow(rows), 2), table.require_untouched):
        ChangelogTable(place, schema, writer="other").append(rows, 2)
        with pytest.raises(Overtaken):
            look()


@pytest.mark.parametrize("other", [False, True])
def test_an_engine_that_fails_behind_its_commit_was_not_overtaken(tmp_path: Path, sail: Engine, monkeypatch: pytest.MonkeyPatch, *, other: bool) -> None:
    """Executors may be lost while the engine looks at the table that it has committed to."""
    from pyspark.errors import PySparkException

    place, schema = str(tmp_path / "t"), {"_op": "tinyint", "_key": "binary"}
    rows = pa.table({"_op": pa.array([0], pa.int8()), "_key": [b"k"]})
    table = ChangelogTable(place, schema, writer="run")
    table.append(rows, 1)
    write = ChangelogTable._write

    def fails(own: ChangelogTable, *words: Any) -> None:
        write(ChangelogTable(place, schema, writer="other") if other else own, *words)
        raise PySparkException("no executor")

    monkeypatch.setattr(ChangelogTable, "_write", fails)
    with pytest.raises(Overtaken if other else PySparkException):
        table.append(sail.from_arrow(rows), 2)
