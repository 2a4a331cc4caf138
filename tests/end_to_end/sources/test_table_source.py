"""A Delta table as a source: any history of it ends as one full run over its last version, and as a plain Python model says."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import errata.execution.prior_rows
import storage.delta.external_table
from errata.inspect.explain import explain
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, standing_in

Row = tuple[int, str | None, float | None]
SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string()), ("x", pa.float64())])
KEYED, KEYLESS = "{strategy: snapshot, primary_key: [id]}", "snapshot"
BAD = "many"
"""A value that is no number."""

PIPELINE = """\
pipeline: {name: table}
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: delta
      path: tables/rows
      merge: MERGE
      schema: [{name: id, type: int}, {name: v, type: int}]
  - {type: aggregate, name: sums, input: rows, config: {group_by: [v], cxl: "emit n = count(*)\\nemit low = min(id)\\n"}}
  - {type: output, name: all, input: rows, config: {name: all, type: csv, path: out/all.csv}}
  - {type: output, name: sums_out, input: sums, config: {name: sums_out, type: csv, path: out/sums.csv}}
error_handling: {strategy: continue, dlq: {path: out/rejected.csv}}
"""

values = st.sampled_from(["1", "2", "3", None, BAD])
floats = st.sampled_from([0.0, 1.5, None])


def rows(ids: st.SearchStrategy[int]) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(ids, values, floats), max_size=4)


STEPS = st.one_of(
    st.tuples(st.just("append"), rows(st.integers(1, 5))),
    st.tuples(st.just("overwrite"), rows(st.integers(1, 5))),
    st.tuples(st.just("delete"), st.integers(1, 5)),
    st.tuples(st.just("update"), st.tuples(st.integers(1, 5), values)),
    st.tuples(st.sampled_from(["optimize", "restore", "vacuum", "replace"]), st.integers(0, 3)),
)


class Table:
    """A Delta table beside the list of its rows, which is what each step makes of it in plain Python."""

    def __init__(self, place: Path, *, feed: bool, keyed: bool) -> None:
        self.place, self.keyed = str(place), keyed
        self.configuration = {"delta.enableChangeDataFeed": "true"} if feed else {}
        self.rows: list[Row] = []
        self.versions: dict[int, list[Row]] = {}
        self._write([], "overwrite")

    def step(self, kind: str, given_: Any) -> None:
        getattr(self, f"_{kind}")(given_)
        self._note()

    def _note(self) -> None:
        for version in range(max(self.versions, default=-1) + 1, DeltaTable(self.place).version() + 1):
            self.versions[version] = list(self.rows)

    def _unique(self, rows_: list[Row], before: list[Row]) -> list[Row]:
        """Of a keyed table only rows whose key is new."""
        taken = {row[0] for row in before}
        fresh = {row[0]: row for row in rows_ if row[0] not in taken}
        return list(fresh.values()) if self.keyed else rows_

    def _write(self, rows_: list[Row], mode: Any) -> None:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows_], SCHEMA)
        write_deltalake(self.place, table, mode=mode, configuration=self.configuration)
        self._note()

    def _append(self, rows_: list[Row]) -> None:
        fresh = self._unique(rows_, self.rows)
        self.rows = self.rows + fresh
        self._write(fresh, "append")

    def _overwrite(self, rows_: list[Row]) -> None:
        self.rows = self._unique(rows_, [])
        self._write(self.rows, "overwrite")

    def _delete(self, number: int) -> None:
        self.rows = [row for row in self.rows if row[0] != number]
        DeltaTable(self.place).delete(f"id = {number}")

    def _update(self, change: tuple[int, str | None]) -> None:
        number, value = change
        self.rows = [(row[0], value, row[2]) if row[0] == number else row for row in self.rows]
        DeltaTable(self.place).update({"v": "null" if value is None else f"'{value}'"}, predicate=f"id = {number}")

    def _optimize(self, _: int) -> None:
        DeltaTable(self.place).optimize.compact()

    def _vacuum(self, _: int) -> None:
        DeltaTable(self.place).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)

    def _restore(self, back: int) -> None:
        table = DeltaTable(self.place)
        version = max(0, table.version() - back)
        try:
            table.restore(version)
        except Exception:  # noqa: BLE001 - what was vacuumed away cannot be restored; then nothing happens
            return
        self.rows = list(self.versions[version])

    def _replace(self, _: int) -> None:
        shutil.rmtree(self.place)
        self.versions = {}
        self.rows = [row for row in self.rows if row[0] != 1]
        self._write(self.rows, "overwrite")


def expected(rows_: list[Row]) -> tuple[Counter[Any], Counter[Any]]:
    """The rows of the output, and the ids of the rejects."""
    text = lambda value: "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)  # noqa: E731
    good = Counter((text(number), text(value), text(x)) for number, value, x in rows_ if value != BAD)
    return good, Counter(str(number) for number, value, _ in rows_ if value == BAD)


def check(folder: Folder, rows_: list[Row]) -> None:
    good, bad = expected(rows_)
    assert Counter((row["id"], row["v"], row.get("x", "")) for row in folder.rows("out/all.csv")) == good
    rejects = folder.rows("out/rejected.csv") if bad else []
    assert Counter(row["id"] for row in rejects) == bad


def project(place: str, merge: str) -> Folder:
    folder = Folder(Path(place))
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge))
    return folder


def check_full_run(folder: Folder, merge: str) -> None:
    """I1: one run over the last version gives the same bytes."""
    with tempfile.TemporaryDirectory() as place:
        full = project(place, merge)
        shutil.copytree(folder.path / "tables", full.path / "tables")
        full.run()
        for name in ("all", "sums"):
            assert full.text(f"out/{name}.csv") == folder.text(f"out/{name}.csv")


def check_history(history: list[list[Any]], merge: str, *, feed: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = project(place, merge)
        table = Table(folder.path / "tables/rows", feed=feed, keyed=merge == KEYED)
        for steps in history:
            for kind, change in steps:
                table.step(kind, change)
            folder.run()
            check(folder, table.rows)
            before = folder.state_files()
            assert not folder.run().committed
            assert folder.state_files() == before
        assert folder.violations() == []
        check_full_run(folder, merge)


HISTORIES = st.lists(st.lists(STEPS, min_size=1, max_size=3), min_size=2, max_size=3)


@pytest.mark.parametrize("merge", [KEYED, KEYLESS], ids=["keyed", "keyless"])
@given(history=HISTORIES, feed=st.sampled_from([True, True, False]))
@examples(24, 4)
def test_any_history_of_a_table_ends_as_a_full_run(merge: str, feed: bool, history: list[list[Any]]) -> None:
    check_history(history, merge, feed=feed)


FIXED = [
    [("append", [(1, "1", 0.0), (2, BAD, None), (3, "3", 1.5)])],
    [("update", (2, "2")), ("delete", 3), ("append", [(4, "2", 1.5)])],
    [("optimize", 0), ("update", (4, BAD))],
]


@pytest.mark.parametrize("engine", ["sail", "spark"])
@pytest.mark.parametrize("merge", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_a_large_table_is_read_by_the_engine(engine: str, merge: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(storage.delta.external_table, "SMALL_ROWS", 0)
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", merge))
    table = Table(tmp_path / "tables/rows", feed=engine == "sail", keyed=merge == KEYED)
    for steps in FIXED:
        for kind, change in steps:
            table.step(kind, change)
        folder.run()
        check(folder, table.rows)


def warned(folder: Folder) -> tuple[int, str]:
    with standing_in(folder.path):
        code, _, stderr = command("run", "pipeline.yaml")
    return code, stderr


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("restore", "it was restored to an earlier version (version 3)"),
        ("replace", "another table is in its place"),
        ("vacuum", "its changes since version 1 cannot be read"),
    ],
)
def test_a_table_that_cannot_be_followed_is_compared_as_a_whole_and_that_is_told(tmp_path: Path, kind: str, why: str) -> None:
    folder = project(str(tmp_path), KEYED)
    table = Table(tmp_path / "tables/rows", feed=True, keyed=True)
    table.step("append", [(1, "1", 0.0), (2, "2", None)])
    assert warned(folder)[0] == 0
    table.step("update", (2, "3"))
    table.step(kind, 1)
    code, stderr = warned(folder)
    assert code == 0
    assert f"{why}" in stderr
    assert "the whole table was compared with what stood" in stderr
    check(folder, table.rows)


@pytest.mark.parametrize(("step", "looks"), [(("update", (2, "4")), 0), (("delete", 3), 0), (("append", [(4, "4", None)]), 1)], ids=str)
def test_what_goes_under_a_primary_key_is_told_by_the_feed_and_only_new_keys_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Any, looks: int) -> None:
    folder = project(str(tmp_path), KEYED)
    table = Table(tmp_path / "tables/rows", feed=True, keyed=True)
    table.step("append", [(1, "1", 0.0), (2, "2", None), (3, "3", 1.5)])
    folder.run()
    asked: list[object] = []
    look = errata.execution.prior_rows.CommittedPriorRows.filtered
    monkeypatch.setattr(errata.execution.prior_rows.CommittedPriorRows, "filtered", lambda self, narrow: asked.append(narrow) or look(self, narrow))
    table.step(*step)
    folder.run()
    assert len(asked) == looks
    check(folder, table.rows)
    assert folder.violations() == []


RETYPED = """\
pipeline: {name: retyped}
nodes:
  - {type: source, name: s, config: {name: s, type: delta, path: t, merge: {strategy: snapshot, primary_key: [id]}, schema: [{name: id, type: int}, {name: v, type: string}]}}
  - {type: aggregate, name: a, input: s, config: {group_by: [v], cxl: "emit n = count(*)"}}
  - {type: output, name: out, input: a, config: {name: out, type: csv, path: out.csv}}
"""


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (pa.array(["1.50", "2.25"]).cast(pa.decimal128(10, 2)), pa.array(["1.50"]).cast(pa.decimal128(12, 4)), "v,n\n1.5000,1\n"),
        (pa.array(["2020-01-01", "2020-01-02"]).cast(pa.date32()), pa.array(["2020-01-01"]).cast(pa.timestamp("us")), "v,n\n2020-01-01T00:00:00,1\n"),
        (pa.array([1, 2], pa.int32()), pa.array(["x"]), "v,n\nx,1\n"),
    ],
    ids=["scale", "date", "text"],
)
def test_what_stood_of_a_column_that_has_another_type_now_goes_as_it_stood(tmp_path: Path, before: pa.Array, after: pa.Array, shown: str) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", RETYPED)
    write_deltalake(tmp_path / "t", pa.table({"id": pa.array([1, 2]), "v": before}), configuration={"delta.enableChangeDataFeed": "true"})
    folder.run()
    write_deltalake(tmp_path / "t", pa.table({"id": pa.array([1]), "v": after}), mode="overwrite", schema_mode="overwrite")
    folder.run()
    assert folder.text("out.csv") == shown
    assert folder.violations() == []


def test_a_key_that_two_rows_have_stops_the_run_however_it_came(tmp_path: Path) -> None:
    folder = project(str(tmp_path), KEYED)
    table = Table(tmp_path / "tables/rows", feed=True, keyed=False)
    table.step("append", [(1, "1", 0.0)])
    assert warned(folder)[0] == 0
    table.step("append", [(1, "2", 0.0)])
    code, stderr = warned(folder)
    assert (code, "the primary key id=1 stands for" in stderr) == (4, True)
    table.step("delete", 1)
    table.step("append", [(None, "2", 0.0)])
    code, stderr = warned(folder)
    assert (code, "the primary key column id is null" in stderr) == (4, True)


def test_what_was_corrected_by_hand_comes_back_with_the_next_version(tmp_path: Path) -> None:
    folder = project(str(tmp_path), KEYED)
    table = Table(tmp_path / "tables/rows", feed=True, keyed=True)
    table.step("append", [(1, "1", 0.0), (2, "2", None)])
    assert warned(folder)[0] == 0
    with standing_in(tmp_path):
        assert command("correct", "pipeline.yaml", "rows", "--key", "id=2", "--set", "v=3", "--reason", "wrong")[0] == 0
    check(folder, [(1, "1", 0.0), (2, "3", None)])
    assert not folder.run().committed
    table.step("append", [(3, "3", None)])
    folder.run()
    check(folder, table.rows)


def test_a_table_that_is_not_there_is_an_input_error_and_a_link_that_leads_out_one_of_the_pipeline(tmp_path: Path) -> None:
    folder = project(str(tmp_path / "inner"), KEYED)
    code, stderr = warned(folder)
    assert (code, "there is no Delta table" in stderr) == (4, True)
    Table(tmp_path / "rows", feed=False, keyed=True)
    (tmp_path / "inner/tables").symlink_to(tmp_path)
    code, stderr = warned(folder)
    assert (code, "leads out of the pipeline's folder by a link" in stderr) == (1, True)


ROLLED_BACK = PIPELINE.replace("      merge: MERGE\n", "      merge: MERGE\n      correlation_key: v\n").replace("input: rows, config: {name: all", "input: shares, config: {name: all")
SHARES = '  - {type: transform, name: shares, input: rows, config: {cxl: "emit share = 1 / (id - 1)"}}\n'


def rolled_back(place: Path, merge: str) -> tuple[Folder, Table]:
    """A table whose rows 1 and 2 are rolled back: the first fails, the second is of its group."""
    folder = Folder(place)
    folder.write("pipeline.yaml", ROLLED_BACK.replace("MERGE", merge).replace("  - {type: aggregate", SHARES + "  - {type: aggregate", 1))
    table = Table(place / "tables/rows", feed=True, keyed=False)
    table.step("append", [(1, "1", 0.0), (2, "1", None), (3, "3", 1.5)])
    assert warned(folder)[0] == 2
    return folder, table


def outcome(folder: Folder) -> tuple[list[str], list[str]]:
    """The ids of the live rows, and of the others."""
    rejected = folder.rows("out/rejected.csv") if (folder.path / "out/rejected.csv").exists() else []
    return sorted(row["id"] for row in folder.rows("out/all.csv")), sorted(row["id"] for row in rejected)


def test_a_row_that_equals_one_that_was_rolled_back_is_another_copy_of_it(tmp_path: Path) -> None:
    folder, table = rolled_back(tmp_path, KEYLESS)
    table.step("append", [(2, "1", None)])
    assert warned(folder)[0] == 2
    assert outcome(folder) == (["3"], ["1", "2", "2"])
    table.step("delete", 1)
    assert "compared with what stood" not in warned(folder)[1]
    assert outcome(folder) == (["2", "2", "3"], [])
    assert folder.violations() == []


def test_the_key_of_a_row_that_was_rolled_back_is_taken_and_its_change_is_followed(tmp_path: Path) -> None:
    folder, table = rolled_back(tmp_path, KEYED)
    table.step("update", (2, "3"))
    code, stderr = warned(folder)
    assert (code, "compared with what stood" in stderr) == (2, False)
    assert outcome(folder) == (["2", "3"], ["1"])
    table.step("append", [(1, "3", None)])
    code, stderr = warned(folder)
    assert (code, "the primary key id=1 stands for" in stderr) == (4, True)


def test_explain_says_what_a_change_of_a_table_costs(tmp_path: Path) -> None:
    folder = project(str(tmp_path), KEYED)
    plan = explain(folder.load().plan, "text")
    assert plan.count("a change costs: the rows that the table's change data feed names, or the whole table") == 1
    assert "the files that changed" not in plan


def test_nan_beside_a_single_other_value_is_nan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statistics of such a file say that it has one value, which Sail takes for all of them."""
    monkeypatch.setattr(storage.delta.external_table, "SMALL_ROWS", 0)
    folder = project(str(tmp_path), KEYLESS)
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{name: v, type: int}]", "{name: v, type: int}, {name: x, type: float}]"))
    write_deltalake(str(tmp_path / "tables/rows"), pa.table({"id": [1, 2, 3], "v": ["1", "1", "1"], "x": [float("nan"), 1.5, 1.5]}, schema=SCHEMA))
    folder.run()
    assert [row["x"] for row in folder.rows("out/all.csv")] == ["NaN", "1.5", "1.5"]
