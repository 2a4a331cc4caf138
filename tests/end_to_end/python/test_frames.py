"""DataFrames as sources and results, pipelines that are built in Python, tables for notebooks."""

from __future__ import annotations

import csv
import datetime as dt
import gc
import re
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import errata
from tests.support.examples import examples
from tests.support.pipelines import Folder

SCHEMA = [{"name": "id", "type": "int"}, {"name": "region", "type": "string"}, {"name": "amount", "type": "float"}]


def built(merge: Any = "snapshot", **more: Any) -> dict[str, Any]:
    """A pipeline with one source, its totals and an output."""
    return {
        "pipeline": {"name": "built"},
        "error_handling": {"strategy": "continue"},
        "nodes": [
            {"type": "source", "name": "orders", "config": {"name": "orders", "type": "csv", "path": "orders.csv", "schema": SCHEMA, "merge": merge, **more}},
            {"type": "aggregate", "name": "revenue", "input": "orders", "config": {"group_by": ["region"], "cxl": "emit total = sum(amount)"}},
            {"type": "output", "name": "report", "input": "revenue", "config": {"name": "report", "type": "csv", "path": "report.csv"}},
        ],
    }


ROWS = [{"id": 1, "region": "north", "amount": 40.5}, {"id": 2, "region": "south", "amount": None}, {"id": 3, "region": None, "amount": 1.0}]


def frames() -> dict[str, Any]:
    table = pa.Table.from_pylist(ROWS)
    return {
        "maps": ROWS, "columns": {name: [row[name] for row in ROWS] for name in ("id", "region", "amount")}, "pandas": table.to_pandas(),
        "categories": table.to_pandas().astype({"region": "category"}), "polars": pl.DataFrame(ROWS), "lazy": pl.DataFrame(ROWS).lazy(), "arrow": table,
        "batches": table.to_reader(), "texts": [{name: None if value is None else str(value) for name, value in row.items()} for row in ROWS],
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(frames()))
def test_frames_of_all_kinds_give_the_same_rows(kind: str, tmp_path: Path) -> None:
    result = errata.run(built(), {"orders": frames()[kind]}, base_dir=tmp_path, engine="sail")
    assert result["orders"].to_dicts() == ROWS
    assert result["revenue"].to_dicts() == [{"region": "north", "total": 40.5}, {"region": "south", "total": None}, {"region": None, "total": 1.0}]
    assert (tmp_path / "report.csv").read_text() == "region,total\nnorth,40.5\nsouth,\n,1\n"


def test_a_frame_of_spark_and_results_of_all_kinds(tmp_path: Path) -> None:
    pipeline = errata.Pipeline.from_dict(built(), base_dir=tmp_path)
    rows = pipeline.run(inputs={"orders": ROWS}, engine="sail")["orders"]
    assert rows.to_spark().count() == len(rows) == 3
    assert isinstance(rows.to_pandas(), pd.DataFrame)
    assert rows.to_polars().rows(named=True) == rows.to_arrow().to_pylist() == list(rows) == ROWS
    again = pipeline.run(inputs={"orders": rows.to_spark()})
    assert (again.committed, again.changes("orders").to_dicts()) == (False, [])


row = st.fixed_dictionaries({"id": st.integers(1, 6), "region": st.sampled_from([None, "a", "b"]), "amount": st.sampled_from([None, 1.0, 2.5])})


@examples(24, 3)
@given(steps=st.lists(st.lists(row, max_size=5), min_size=2, max_size=3))
def test_frames_in_turn_end_as_one_full_run(steps: list[list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory) -> None:
    options = errata.RunOptions(max_retract_share=1.0)
    pipeline = errata.load(built(), base_dir=tmp_path_factory.mktemp("turns"))
    for rows in steps:
        result = pipeline.run(options, inputs={"orders": pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("region", pa.string()), ("amount", pa.float64())]))}, engine="sail")
        assert result["orders"].to_dicts() == rows
    whole = errata.run(built(), {"orders": steps[-1] or pa.table({"id": pa.array([], pa.int64()), "region": pa.array([], pa.string()), "amount": pa.array([], pa.float64())})}, base_dir=tmp_path_factory.mktemp("whole"), engine="sail")
    assert result["revenue"].to_dicts() == whole["revenue"].to_dicts()
    assert [one for one in pipeline.verify(recompute=True) if one["verdict"] != "ok"] == []


def test_a_frame_takes_the_place_of_the_file_and_back(tmp_path: Path) -> None:
    """With a primary key only rows with other values change, whether they come from a file or a program."""
    folder = Folder(tmp_path)
    folder.write("orders.csv", "id,region,amount\n1,north,40.5\n2,south,25\n")
    pipeline = errata.load(built({"strategy": "snapshot", "primary_key": ["id"]}), base_dir=tmp_path)
    pipeline.run(engine="sail")
    result = pipeline.run(inputs={"orders": [{"id": 1, "region": "north", "amount": 40.5}, {"id": 2, "region": "south", "amount": 26.0}]})
    assert result.counts["orders"] == {"-C": 1, "+C": 1}
    assert pipeline.run().counts["orders"] == {"-C": 1, "+C": 1}
    assert [one for one in pipeline.verify() if one["verdict"] != "ok"] == []


def test_deliveries_add_up_and_an_equal_one_is_known(tmp_path: Path) -> None:
    pipeline = errata.load(built("append"), base_dir=tmp_path)
    first, second = [{"id": 1, "region": "a", "amount": 1.0}], [{"id": 2, "region": "a", "amount": 2.0}]
    totals = [pipeline.run(inputs={"orders": rows}, engine="sail")["revenue"].to_dicts()[0]["total"] for rows in (first, second, first, second)]
    assert totals == [1.0, 3.0, 3.0, 3.0]
    assert pipeline.head_epoch() == 2


@pytest.mark.parametrize("merge", ["append", "snapshot"])
def test_an_equal_frame_is_known_however_it_is_written(merge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = errata.load(built(merge), base_dir=tmp_path)
    pipeline.run(inputs={"orders": ROWS}, engine="sail")
    monkeypatch.setattr("errata.api.frames.GROUP_ROWS", 1)
    assert not pipeline.run(inputs={"orders": pa.concat_tables([pa.Table.from_pylist(ROWS).slice(0, 1), pa.Table.from_pylist(ROWS).slice(1)])}, engine="sail").committed
    assert pipeline.head_epoch() == 1


@pytest.mark.parametrize("merge", [{"strategy": "upsert", "primary_key": ["id"]}, {"strategy": "ledger", "primary_key": ["id"]}])
def test_keyed_deliveries(merge: dict[str, Any], tmp_path: Path) -> None:
    pipeline = errata.load(built(merge), base_dir=tmp_path)
    pipeline.run(inputs={"orders": ROWS}, engine="sail")
    result = pipeline.run(inputs={"orders": [{"id": 1, "region": "north", "amount": 50.0}, {"id": 4, "region": "west", "amount": 4.0}]})
    amounts = {one["id"]: one["amount"] for one in result["orders"]}
    assert amounts == {1: 50.0 if merge["strategy"] == "upsert" else 40.5, 2: None, 3: 1.0, 4: 4.0}


def test_types_of_frames_are_those_that_are_declared(tmp_path: Path) -> None:
    schema = [{"name": "d", "type": "date"}, {"name": "t", "type": "date_time"}, {"name": "p", "type": "decimal(10,2)"}, {"name": "n", "source_name": "Named So", "type": "bool"}]
    definition = built(schema=schema)
    definition["nodes"] = [definition["nodes"][0], {"type": "output", "name": "out", "input": "orders", "config": {"name": "out", "type": "csv", "path": "o.csv"}}]
    frame = pd.DataFrame({"d": [dt.date(2026, 1, 31), None], "t": [pd.Timestamp("2026-01-31 12:00:00", tz="Europe/Berlin"), pd.NaT], "p": ["1.50", None], "n": [True, None]})
    result = errata.run(definition, {"orders": frame}, base_dir=tmp_path, engine="sail")
    assert result.exit_code == 0
    assert (tmp_path / "o.csv").read_text() == "d,t,p,n\n2026-01-31,2026-01-31T11:00:00,1.50,true\n,,,\n"


def test_a_cell_that_does_not_fit_is_a_dead_letter(tmp_path: Path) -> None:
    result = errata.run(built(), {"orders": [{"id": "one", "region": "a", "amount": 1.0}, {"id": "2", "region": "a", "amount": 2.0}]}, base_dir=tmp_path, engine="sail")
    assert (result.exit_code, result.rejected, len(result["orders"])) == (2, 1, 1)


@pytest.mark.parametrize(("inputs", "words"), [
    ({"ordres": ROWS}, "no source 'ordres'"), ({"orders": 5}, "int is no DataFrame"), ({"orders": [1]}, "a row is a map"), ({"orders": "text"}, "str is no DataFrame"),
    ({"orders": pa.table([[1], [2]], names=["id", "id"])}, "two columns 'id'"), ({"orders": {"id": [1], "region": []}}, "no table"), ({"orders": [{"id": object()}]}, "no table"),
])  # fmt: skip
def test_what_is_no_table_is_refused(inputs: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(errata.Usage, match=re.escape(words)):
        errata.run(built(), inputs, base_dir=tmp_path)
    assert not (tmp_path / ".errata").exists()


def test_a_missing_column_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(errata.StorageFailed, match="amount"):
        errata.run(built(), {"orders": [{"id": 1, "region": "a"}]}, base_dir=tmp_path, engine="sail")


def test_problems_of_a_pipeline_that_is_built_have_places() -> None:
    definition = built()
    definition["nodes"][1]["inputt"] = definition["nodes"][1].pop("input")
    with pytest.raises(errata.PipelineErrors) as caught:
        errata.load(definition)
    [problem] = [one for one in caught.value.diagnostics if one.code == "CFG-001"]
    assert problem.message == "unknown key 'inputt'"
    assert problem.line is not None
    with pytest.raises(TypeError, match="no object"):
        errata.load({"pipeline": object()})


def test_an_ephemeral_result_keeps_its_rows_while_it_is_held(tmp_path: Path) -> None:
    pipeline = errata.load(built(), base_dir=tmp_path)
    result = pipeline.run(inputs={"orders": ROWS}, engine="sail", ephemeral=True)
    assert len(result["revenue"]) == 3
    assert result.reader is not None
    del result
    gc.collect()
    again = errata.load(built(), base_dir=tmp_path / "again")
    rows = again.run(inputs={"orders": ROWS}, engine="sail", ephemeral=True)["revenue"]
    gc.collect()
    assert len(rows.to_dicts()) == 3
    del rows
    gc.collect()
    assert pipeline.head_epoch() is None


def test_tables_for_notebooks_are_short_and_escaped(tmp_path: Path) -> None:
    rows = [{"id": at, "region": f"<b>&{'x' * 500}", "amount": None} for at in range(50)]
    result = errata.run(built(), {"orders": rows}, base_dir=tmp_path, engine="sail")
    shown = result["orders"]._repr_html_()
    assert shown.count("<tr>") == 21
    assert "<b>" not in shown
    assert "&lt;b&gt;&amp;" in shown
    assert max(map(len, re.findall(r"<td>(.*?)</td>", shown))) < 120
    assert "and further rows" in shown
    assert "<table>" in result.changes("revenue")._repr_html_()
    assert "revenue" in result._repr_html_()
    with pytest.raises(KeyError, match="'reveneu': no node whose rows can be read; did you mean 'revenue'"):
        result["reveneu"]


def test_rows_that_lack_a_column_or_a_key_say_so(tmp_path: Path) -> None:
    with pytest.raises(errata.Failure, match="E238: the DataFrame lacks the declared column 'amount'"):
        errata.run(built(), {"orders": [{"id": 1, "region": "north"}]}, base_dir=tmp_path, engine="sail")
    keyed = built({"strategy": "snapshot", "primary_key": ["id", "region"]})
    with pytest.raises(errata.Failure, match="the primary key column region is null") as failed:
        errata.run(keyed, {"orders": ROWS}, base_dir=tmp_path, engine="sail")
    assert failed.value.help == "fill the column, name another primary_key, mend the file, or leave primary_key out (strategy append, where records only come)"
    with pytest.raises(errata.Failure, match="the primary key id=1, region=north stands for 2 records") as failed:
        errata.run(keyed, {"orders": [ROWS[0], ROWS[0]]}, base_dir=tmp_path, engine="sail")
    assert failed.value.help == "name columns that are unique together as primary_key, take merge strategy upsert, where the last record of a key counts, mend the file, or leave primary_key out (strategy append, where records only come)"


def test_rows_and_changes_of_a_pipeline(tmp_path: Path) -> None:
    pipeline = errata.load(built({"strategy": "snapshot", "primary_key": ["id"]}), base_dir=tmp_path)
    pipeline.run(inputs={"orders": ROWS}, engine="sail")
    pipeline.run(inputs={"orders": [{**ROWS[0], "amount": 1.5}, *ROWS[1:]]})
    assert pipeline.rows("revenue", at=1).to_dicts()[0] == {"region": "north", "total": 40.5}
    assert [(one["_op"], one["total"]) for one in pipeline.changes("revenue", 2)] == [(2, 40.5), (3, 1.5)]
    assert list(csv.reader([pipeline.rows("report").to_pandas().to_csv(index=False).splitlines()[1]])) == [["north", "1.5"]]
