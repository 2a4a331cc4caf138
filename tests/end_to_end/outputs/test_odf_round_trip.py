"""ODF's own columns: the changes of every epoch as Parquet files, read by another pipeline as operations, give the same rows there."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.core.options import LogFilter
from tests.support.examples import examples
from tests.support.pipelines import Folder

COLUMNS = "[{name: id, type: int}, {name: name, type: string}, {name: price, type: float}, {name: paid, type: bool}, {name: day, type: date}, {name: at, type: date_time}]"
WRITER = f"""\
pipeline: {{name: writer}}
nodes:
  - type: source
    name: orders
    config: {{name: orders, type: csv, path: orders.csv, merge: {{strategy: snapshot, primary_key: [id]}}, schema: {COLUMNS}}}
  - type: output
    name: out
    input: orders
    config: {{name: out, type: csv, path: out.csv, changelog: {{path: "log/{{epoch:6}}.parquet", form: FORM, format: parquet}}}}
"""
READER = f"""\
pipeline: {{name: reader}}
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: parquet
      glob: log/*.parquet
      files: {{on_no_match: skip}}
      on_unmapped: drop
      merge: {{strategy: changelog, primary_key: [id], op: op}}
      schema: {COLUMNS.replace("[", "[{name: op, type: int}, ", 1)}
  - {{type: output, name: out, input: orders, config: {{name: out, type: csv, path: copy.csv}}}}
"""
HEADER = ("id", "name", "price", "paid", "day", "at")

orders = st.tuples(
    st.sampled_from(["x", "", "é"]), st.sampled_from(["1.5", "", "-0.25"]), st.sampled_from(["true", "false", ""]),
    st.sampled_from(["2024-02-29", ""]), st.sampled_from(["2024-02-29T12:30:00", ""]),
)  # fmt: skip
versions = st.lists(st.dictionaries(st.integers(1, 4), orders, max_size=4), min_size=2, max_size=4)


@pytest.mark.parametrize("form", ["two", "retract", "upsert"])
@given(history=versions)
@examples(24, 3)
def test_a_changelog_in_files_leads_to_the_same_rows(form: str, history: list[dict[int, tuple[str, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        writer, reader = Folder(Path(place)), Folder(Path(place))
        for records in history:
            writer.write("pipeline.yaml", WRITER.replace("FORM", form))
            writer.write_csv("orders.csv", HEADER, [dict(zip(HEADER, (number, *rest), strict=True)) for number, rest in records.items()])
            writer.run()
            reader.write("pipeline.yaml", READER)
            reader.run()
            assert reader.text("copy.csv") == writer.text("out.csv")
        offsets = [row for file in sorted(Path(place, "log").glob("*.parquet")) for row in pq.ParquetFile(file).read()["offset"].to_pylist()]
        assert form != "two" or offsets == list(range(len(offsets)))


def test_epochs_are_read_in_their_order(tmp_path: Path) -> None:
    """Files are sorted by name."""
    writer, reader = Folder(tmp_path), Folder(tmp_path)
    for epoch in range(1, 13):
        writer.write("pipeline.yaml", WRITER.replace("FORM", "two"))
        writer.write("orders.csv", f"id,name,price,paid,day,at\n1,x,{epoch}.5,,,\n")
        writer.run()
        if epoch in (2, 9, 12):
            reader.write("pipeline.yaml", READER)
            reader.run()
            assert reader.text("copy.csv") == writer.text("out.csv")
    assert [file.name for file in sorted((tmp_path / "log").iterdir())][::11] == ["000001.parquet", "000012.parquet"]


def test_the_columns_are_odf_s_and_then_the_data(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", WRITER.replace("FORM", "two"))
    for name in ("a", "b"):
        folder.write("orders.csv", f"id,name,price,paid,day,at\n1,{name},1.5,true,,\n")
        folder.run()
    first, second = (pq.ParquetFile(tmp_path / f"log/00000{epoch}.parquet").read() for epoch in (1, 2))
    assert second.column_names == ["offset", "op", "system_time", "event_time", *HEADER]
    shown = [(row["offset"], row["op"], row["name"]) for table in (first, second) for row in table.to_pylist()]
    assert shown == [(0, 0, "a"), (1, 2, "a"), (2, 3, "b")]


def test_data_keeps_the_names_of_these_columns(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", WRITER.replace("FORM", "two").replace("name: price", "name: op").replace("name: name", "name: offset"))
    folder.write("orders.csv", "id,offset,op,paid,day,at\n1,a,1.5,true,,\n")
    folder.run()
    (row,) = pq.ParquetFile(tmp_path / "log/000001.parquet").read().to_pylist()
    assert [(name, row[name]) for name in ("_offset", "_op", "id", "offset", "op")] == [("_offset", 0), ("_op", 0), ("id", 1), ("offset", "a"), ("op", 1.5)]
    (shown,) = folder.load().log("out", LogFilter(form="odf"))
    assert list(shown) == list(row)
