"""Undeclared columns come and go with the files, also where none of their rows reaches an output: it has the header of a full run."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from errata.core.options import EngineOptions, LogFilter, RunOptions
from tests.support.chunking import small_chunks
from tests.support.pipelines import Folder, jsonl

PIPELINE = """\
pipeline: { name: wide }
nodes:
  - type: source
    name: all
    config: { name: all, type: csv, glob: data/*.csv, schema: [{ name: id, type: int }] }
  - type: transform
    name: large
    input: all
    config: { cxl: "filter id > 100" }
  - type: output
    name: out
    input: large
    config: { name: out, type: csv, path: out.csv }
"""


@pytest.mark.parametrize(
    ("changes", "header"),
    [(["id,note\n2,x\n"], "id,note\n"), (["id,note\n2,x\n", "id,note,more\n"], "id,note,more\n"), (["id,note\n2,x\n", "id,more\n"], "id,more\n")],
)
def test_the_header_is_that_of_a_full_run(changes: list[str], header: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("data/a.csv", "id\n1\n")
    folder.run()
    assert folder.text("out.csv") == "id\n"
    for text in changes:
        folder.write("data/b.csv", text)
        folder.run()
    assert folder.text("out.csv") == header
    assert not folder.run().committed


RECORDS = '{"id":1,"colour":"red"}\n{"id":2,"size":{"w":5},"colour":null}\n{"id":3}\n'
PASSED = """\
pipeline: { name: drift }
nodes:
  - type: source
    name: all
    config: { name: all, type: json, path: all.json, options: { format: ndjson }, schema: [{ name: id, type: int }] }
  - { type: output, name: json, input: all, config: { name: json, type: json, path: out.json, options: { format: ndjson }, preserve_nulls: KEPT } }
  - { type: output, name: xml, input: all, config: { name: xml, type: xml, path: out.xml, exclude: [size], preserve_nulls: KEPT } }
"""


@pytest.mark.parametrize(("kept", "null", "element"), [("false", '""', "<colour/>"), ("true", "null", "")])
def test_a_record_has_its_own_undeclared_fields_alone(kept: str, null: str, element: str, tmp_path: Path) -> None:
    """Each record's undeclared fields are its payload, keyed by the input's field names; nulls follow `preserve_nulls`."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PASSED.replace("KEPT", kept))
    folder.write("all.json", RECORDS)
    folder.run()
    assert folder.text("out.json") == f'{{"id":1,"colour":"red"}}\n{{"id":2,"colour":{null},"size":{{"w":5}}}}\n{{"id":3}}\n'
    records = folder.text("out.xml").split("<Record>")[1:]
    assert [one.split("</Record>")[0] for one in records] == ["<id>1</id><colour>red</colour>", f"<id>2</id>{element}", "<id>3</id>"]


JOINED = """\
pipeline: { name: joined }
nodes:
  - { type: source, name: o, config: { name: o, type: csv, path: o.csv, schema: [{ name: id, type: int }, { name: p, type: string }] } }
  - { type: source, name: p, config: { name: p, type: csv, path: p.csv, schema: [{ name: p, type: string }] } }
  - type: combine
    name: both
    input: { o: o, p: p }
    config: { where: o.p == p.p, propagate_ck: driver, cxl: emit id = o.id, drive: DRIVER }
  - { type: output, name: out, input: both, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize(("driver", "text"), [("o", "id,note\n1,hello\n"), ("p", "id,colour\n1,red\n")])
def test_what_the_build_side_does_not_declare_is_dropped(driver: str, text: str, tmp_path: Path) -> None:
    """The driver's undeclared fields go on; those from build inputs do not."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", JOINED.replace("DRIVER", driver))
    folder.write("o.csv", "id,p,note\n1,A,hello\n")
    folder.write("p.csv", "p,colour\nA,red\n")
    folder.run()
    assert folder.text("out.csv") == text


SORTED = """\
pipeline: { name: sorted }
nodes:
  - { type: source, name: all, config: { name: all, type: json, path: all.json, options: { format: ndjson }, schema: [{ name: id, type: int }] } }
  - { type: output, name: out, input: all, config: { name: out, type: csv, path: out.csv, exclude: [a.b], sort_order: [n, { field: a.b, order: desc }] } }
  - { type: output, name: some, input: all, config: { name: some, type: csv, path: some.csv, exclude: [n], sort_order: [{ field: a.b, null_order: drop }, nowhere] } }
  - { type: output, name: cut, input: all, config: { name: cut, type: csv, path: cut.csv, mapping: { N: n }, sort_order: [n], split: { max_records: 1, group_key: n, oversize_group: allow } } }
"""


def test_records_are_sorted_and_held_together_by_undeclared_fields(tmp_path: Path) -> None:
    """Order of work: undeclared columns expanded, include_unmapped, sort, exclude, mapping. Numbers sort by value, texts by code point."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SORTED)
    folder.write("all.json", '{"id":1,"n":10,"a.b":"y"}\n{"id":2,"n":9,"a.b":"z"}\n{"id":3,"n":null}\n{"id":4,"a.b":"z b"}\n{"id":5,"n":9,"a.b":"é"}\n')
    folder.run()
    assert folder.text("out.csv") == "id,n\n5,9\n2,9\n1,10\n4,\n3,\n"
    assert folder.text("some.csv") == "id,a.b\n1,y\n2,z\n4,z b\n5,é\n"
    assert [folder.text(f"cut_{at:04}.csv") for at in (1, 2, 3)] == ["id,N,a.b\n2,9,z\n5,9,é\n", "id,N,a.b\n1,10,y\n", "id,N,a.b\n3,,\n4,,z b\n"]
    folder.write("all.json", '{"id":1,"n":1,"a.b":"y"}\n{"id":2,"n":9,"a.b":"z"}\n{"id":3,"n":null}\n{"id":4,"a.b":"z b"}\n{"id":5,"n":9,"a.b":"é"}\n')
    folder.run()
    assert folder.text("out.csv") == "id,n\n1,1\n5,9\n2,9\n4,\n3,\n"


COMPARED = """\
pipeline: { name: compared }
nodes:
  - type: source
    name: all
    config:
      name: all
      type: csv
      path: all.csv
      merge: { strategy: snapshot, primary_key: [id], compare: [v] }
      schema: [{ name: id, type: string }, { name: g, type: string }, { name: v, type: int }]
  - { type: output, name: out, input: all, config: { name: out, type: csv, path: out.csv } }
"""
HEAD = "id,g,v,z\n"


@pytest.mark.parametrize("files", [nullcontext, small_chunks])
@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (HEAD + "a,x,1,p\nb,y,2,q\n", HEAD + "a,X,1,p\nb,y,2,q\n", None),
        (HEAD + "a,x,1,p\nb,y,2,q\n", HEAD + "a,x,1,P\nb,y,2,q\n", None),
        ("id,g,v\na,x,1\nb,y,2\n", HEAD + "a,x,1,p\nb,y,2,q\n", None),
        (HEAD + "a,x,1,p\nb,y,2,q\n", "id,g,v\na,X,1\nb,y,2\n", None),
        (HEAD + "a,x,1,p\nb,y,2,q\n", HEAD + "a,X,1,P\nb,Y,3,Q\n", HEAD + "a,x,1,p\nb,Y,3,Q\n"),
        (HEAD + "a,x,1,p\nb,y,2,q\n", "id,g,v\na,X,1\nb,Y,3\n", HEAD + "a,x,1,p\nb,Y,3,\n"),
        ("id,g,v\na,x,1\nb,y,2\n", HEAD + "a,X,1,p\nb,Y,3,q\n", HEAD + "a,x,1,\nb,Y,3,q\n"),
    ],
)
def test_undeclared_columns_are_not_compared_where_others_are(
    before: str, after: str, shown: str | None, files: Callable[[], AbstractContextManager[None]], tmp_path: Path
) -> None:
    """A change outside of `compare` is no change, and the old row stays in every column."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", COMPARED)
    folder.write("all.csv", before)
    with files():
        folder.run()
        folder.write("all.csv", after)
        assert folder.run().committed == (shown is not None)
    assert folder.text("out.csv") == (shown or before)


TOLD = """\
pipeline: { name: told }
nodes:
  - type: source
    name: all
    config: { name: all, type: csv, path: all.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: string }, { name: v, type: int }] }
  - { type: output, name: out, input: all, config: { name: out, type: csv, path: out.csv, changelog: { path: "log/{epoch}.parquet", format: parquet, form: single } } }
  - { type: output, name: table, input: all, config: { name: table, type: delta, path: table, options: { mode: changelog } } }
"""


def test_whoever_reads_an_output_sees_the_columns_that_it_writes(tmp_path: Path) -> None:
    """An output's `data` holds the columns that it writes."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", TOLD)
    for value in ("q", "r"):
        folder.write("all.csv", f"id,v,z\na,1,{value}\nb,2,s\n")
        folder.run()
    project = folder.load()
    before, after = ({"id": "a", "v": 1, "z": value} for value in ("q", "r"))
    assert list(project.diff("out", 1, 2)) == [{"op": "+C", "before": before, "after": after}]
    assert [row["epoch"] for row in project.log("out", LogFilter(where='z == "q"'))] == [1, 2]
    assert [row["epoch"] for row in project.why("out", {"z": "r"})] == [1, 2]
    assert sorted(project.live("out", 1).collect()) == [("a", 1, "q"), ("b", 2, "s")]
    assert [row["z"] for row in project.changelog("out").orderBy("_epoch", "_key", "_op").collect()] == ["q", "s", "q", "r"]
    events = pq.read_table(tmp_path / "log/2.parquet", columns=["z", "old_z"]).to_pylist()
    assert events == [{"z": "r", "old_z": "q"}]


def test_rows_of_an_output_have_the_undeclared_fields_that_its_file_has(tmp_path: Path) -> None:
    """Excluded fields are not written, mapped ones under the name that they are given. Records that are written the same are no change."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", TOLD.replace("path: out.csv,", "path: out.csv, exclude: [v, secret], mapping: { y: x, z: x, b: a },").replace("path: table,", "path: table, exclude: [secret],"))
    for record in ("a,1,5,p,A,B", "a,1,6,q,A,B", "a,1,6,r,A,C", "a,2,6,r,A,C"):
        folder.write("all.csv", f"id,v,x,secret,a,b\n{record}\n")
        folder.run()
    assert folder.text("out.csv") == "id,y,z,b\na,6,6,A\n"
    project = folder.load()
    before, after = ({"id": "a", "y": value, "z": value, "b": "A"} for value in "56")
    assert [(row["epoch"], row["op"], row["data"]) for row in project.log("out")] == [(1, "+A", before), (2, "-C", before), (2, "+C", after)]
    assert list(project.show("out")) == [after]
    assert list(project.diff("out", 1, 4)) == [{"op": "+C", "before": before, "after": after}]
    assert [row.asDict() for row in project.live("out").collect()] == [after]
    assert [row["y"] for row in project.changelog("out").orderBy("_epoch", "_op").collect()] == ["5", "5", "6"]
    assert [row["epoch"] for row in project.why("out", {"y": "6"})] == [1, 2, 3, 4]
    assert [row["epoch"] for row in project.log("out", LogFilter(where='y == "6"'))] == [2]
    assert pq.read_table(tmp_path / "log/2.parquet").select(["y", "old_y"]).to_pylist() == [{"y": "6", "old_y": "5"}]
    assert not (tmp_path / "log/3.parquet").exists()
    published = pa.table(DeltaTable(str(tmp_path / "table")).scan())
    assert published.column_names == ["offset", "op", "system_time", "event_time", "id", "v", "x", "a", "b"]
    assert published.num_rows == 7
    assert folder.violations() == []


def test_a_mapping_that_changes_is_a_change_of_logic(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("data/a.csv", "id,x,e\n101,5,6\n")
    for settings, text in (("mapping: { y: x }", "id,y,e\n101,5,6\n"), ("exclude: [e]", "id,x\n101,5\n"), ("mapping: { e: x }", "id,e\n101,5\n")):
        folder.write("pipeline.yaml", PIPELINE.replace("path: out.csv", f"path: out.csv, {settings}"))
        folder.run()
        assert folder.text("out.csv") == text
    found = [(row["cause"], row["data"]) for row in folder.log("out")]
    first, second, third = {"id": 101, "y": "5", "e": "6"}, {"id": 101, "x": "5"}, {"id": 101, "e": "5"}
    assert found == [("ingest", first), ("logic", first), ("logic", second), ("logic", second), ("logic", third)]
    assert folder.violations() == []


def test_a_table_of_changes_has_the_undeclared_columns_of_all_epochs(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", TOLD)
    for text in ("id,v,z\na,1,q\n", "id,v,k\na,1,r\n", "id,v\na,2\n"):
        folder.write("all.csv", text)
        folder.run()
    rows = pa.table(DeltaTable(str(tmp_path / "table")).scan()).select(["offset", "op", "v", "z", "k"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(0, 0, 1, "q", None), (1, 2, 1, "q", None), (2, 3, 1, None, "r"), (3, 2, 1, None, "r"), (4, 3, 2, None, None)]


CHANGES = """\
  - { type: output, name: out, input: all, config: { name: out, type: csv, path: out.csv, changelog: { path: "log/{epoch}.csv", format: csv } } }
"""


def test_a_csv_file_of_changes_has_the_columns_of_all_its_rows(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PASSED.split("  - { type: output, name: json", maxsplit=1)[0] + CHANGES)
    folder.write("all.json", '{"id":1}\n{"id":2,"colour":"red","_key":3}\n')
    folder.run()
    assert [(row["id"], row["colour"], row["_key"]) for row in folder.rows("log/1.csv")] == [("1", "", ""), ("2", "red", "3")]
    assert [row.asDict() for row in folder.load().live("out").orderBy("id").collect()] == [{"id": 1, "colour": None}, {"id": 2, "colour": '"red"'}]


def test_changes_as_csv_have_the_columns_of_the_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("filter id > 100", "filter id > 0").replace(
        "path: out.csv }", 'path: out.csv, mapping: { y: x }, exclude: [e], changelog: { path: "ch-{epoch}.csv", format: csv } }'))  # fmt: skip
    folder.write("data/a.csv", "id,x,e,z\n1,5,6,7\n")
    folder.run()
    assert folder.text("out.csv") == "id,y,z\n1,5,7\n"
    [row] = folder.rows("ch-1.csv")
    assert {name: value for name, value in row.items() if name in "idxyez"} == {"id": "1", "y": "5", "z": "7"}


@pytest.mark.parametrize("form", ["two", "single"])
def test_files_of_changes_have_the_columns_of_rows_that_are_taken_back(form: str, tmp_path: Path) -> None:
    """-R and -C carry the values of the row that they take back. Files that are written again have them too."""
    kinds = ("parquet", "csv", "jsonl")
    outputs = (f'  - {{ type: output, name: {kind}, input: all, config: {{ name: {kind}, type: csv, path: {kind}.csv, changelog: {{ path: "{kind}-{{epoch}}", form: {form}, format: {kind} }} }} }}\n'
               for kind in kinds)  # fmt: skip
    folder, old = Folder(tmp_path), "old_" if form == "single" else ""
    folder.write("pipeline.yaml", PIPELINE.split("  - type: transform", maxsplit=1)[0] + "".join(outputs))
    folder.write("data/a.csv", "id,note\n1,x\n2,y\n")
    folder.write("data/b.csv", "id,more\n3,z\n")
    folder.run()
    folder.remove("data/a.csv")
    folder.run()
    expected = [(1, "x"), (2, "y")]
    for _ in range(2):
        assert [(row[f"{old}id"], row[f"{old}note"]) for row in pq.read_table(tmp_path / "parquet-2").to_pylist()] == expected
        assert [(int(row[f"{old}id"]), row[f"{old}note"]) for row in folder.rows("csv-2")] == expected
        held = [row["before"] if old else row["data"] for row in jsonl(folder.text("jsonl-2"))]
        assert [(row["id"], row["note"]) for row in held] == expected
        for kind in kinds:
            folder.remove(f"{kind}-2")
        assert not folder.run().committed


@pytest.mark.parametrize(("before", "after", "name"), [
    ('path: "out/{source_file}.csv"', 'path: "out/n-{source_file}.csv"', "n-a.csv"),
    ("path: out/all.csv, split: { max_records: 1 }", "path: out/new.csv, split: { max_records: 1 }", "new_0001.csv"),
])  # fmt: skip
def test_several_files_move_together(before: str, after: str, name: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("data/a.csv", "id\n101\n")
    for path in (before, after):
        folder.write("pipeline.yaml", PIPELINE.replace("path: out.csv", path))
        assert folder.run().committed
    assert folder.text(f"out/{name}") == "id\n101\n"
    assert not folder.run().committed


def test_a_revert_brings_undeclared_columns_back(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    for text in ("id,x\n101,5\n102,\n", "id\n101\n103\n"):
        folder.write("data/a.csv", text)
        folder.run()
    assert folder.text("out.csv") == "id\n101\n103\n"
    folder.load().revert(1, RunOptions(engine=EngineOptions("sail"), max_retract_share=1.0))
    assert folder.text("out.csv") == "id,x\n101,5\n102,\n"
    assert not folder.run().committed
    folder.write("data/a.csv", "id,y\n101,6\n")
    folder.run()
    assert folder.text("out.csv") == "id,y\n101,6\n"
    assert folder.violations() == []


def test_fields_may_have_any_name(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PASSED.replace("KEPT", "true").replace("  - { type: output, name: xml", "#"))
    for record in ('{"id":1,"_row":"a","_error":2,"_doc":null,"":[3],"_op":"+A","column_0":4,"0":5}', '{"id":1,"_row":"b","_error":2.5,"":"","v":{"v":1}}'):
        folder.write("all.json", record + "\n")
        folder.run()
        assert json.loads(folder.text("out.json")) == json.loads(record)
    assert folder.violations() == []
