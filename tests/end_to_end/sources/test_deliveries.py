"""Each merge strategy with bad input: history rewritten, keys that are none, words that are no operation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import errata
from operators.source import reading
from tests.support.pipelines import Folder

KEY = "primary_key: [id]"
SIZES = pytest.mark.parametrize("small_bytes", [2 << 20, 0], ids=["small", "large"], indirect=True)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def small_bytes(request: pytest.FixtureRequest) -> Iterator[int]:
    """Files above this size are read by the engine."""
    before, reading.SMALL_BYTES = reading.SMALL_BYTES, request.param
    yield request.param
    reading.SMALL_BYTES = before


def source(merge: str, kind: str = "csv", columns: str = "{name: id, type: int}, {name: v, type: int}", cxl: str = "emit v = v") -> str:
    """A pipeline of one source whose rows are written out."""
    return f"""\
pipeline: {{ name: one }}
nodes:
  - type: source
    name: feed
    config: {{ name: feed, type: {kind}, glob: in/*, files: {{ on_no_match: skip }}, merge: {merge}, schema: [{columns}] }}
  - type: transform
    name: seen
    input: feed
    config: {{ cxl: '{cxl}' }}
  - {{ type: output, name: rows, input: seen, config: {{ name: rows, type: csv, path: out/rows.csv }} }}
error_handling: {{ strategy: continue, dlq: {{ path: out/rejected.csv }} }}
"""


def given(folder: Folder, merge: str, first: str, name: str = "in/a.csv", **more: str) -> None:
    folder.write("pipeline.yaml", source(merge, **more))
    folder.write(name, first)
    folder.run()


def rows(folder: Folder) -> str:
    """The records of the output, as `1:2 3:4`."""
    return " ".join(":".join(row.values()) for row in folder.rows("out/rows.csv"))


def rejected(folder: Folder) -> list[tuple[str, str, str]]:
    found = folder.rows("out/rejected.csv")
    return [(row["_cxl_dlq_source_row"], row["_cxl_dlq_error_category"], row["id"]) for row in found]


def ops(folder: Folder, epoch: int) -> list[str]:
    return [row["op"] + " " + ":".join(str(value) for value in row["data"].values()) for row in folder.log("feed") if row["epoch"] == epoch]


def cursor(folder: Folder) -> int:
    return int(folder.load().status()["sources"][0]["cursor"])


def refused(folder: Folder, *words: str) -> None:
    """The next run ends with exit code 4, says these words and changes nothing."""
    before, output = folder.state_files().keys(), folder.text("out/rows.csv")
    with pytest.raises(errata.StorageFailed) as failed:
        folder.run()
    assert failed.value.exit_code == 4
    assert [word for word in words if word not in str(failed.value)] == []
    assert folder.load().head_epoch() == 1
    assert folder.text("out/rows.csv") == output
    assert before <= folder.state_files().keys()


# -- append

GROWN = {
    "a line": ("id,v\n1,10\n", "2,20\n"),
    "no end of line": ("id,v\n1,10", "\n2,20"),
    "carriage returns": ("id,v\r\n1,10\r\n", "2,20\r\n"),
    "only a header": ("id,v", "\n1,10\n2,20\n"),
    "quotes": ('id,v\n"1","10"\n', '"2","20"\n'),
}


@SIZES
@pytest.mark.parametrize(("old", "new"), GROWN.values(), ids=GROWN.keys())
def test_append_reads_the_new_end_alone(folder: Folder, small_bytes: int, old: str, new: str):
    given(folder, "append", old)
    folder.write("in/a.csv", old + new)
    folder.run()
    assert rows(folder) == "1:10 2:20"
    assert cursor(folder) == 2
    assert all(op.startswith("+A") for op in ops(folder, 2))
    folder.write("in/a.csv", old + new + "\n3,30\n")
    folder.run()
    assert ops(folder, 3) == ["+A 3:30"]
    assert cursor(folder) == 3


@SIZES
@pytest.mark.parametrize("changed", ["id,v\n1,11\n2,20\n", "id,v\n1,100\n", "id,v\n", "id,v\n2,20\n1,10\n"])
def test_append_refuses_history_that_was_rewritten(folder: Folder, small_bytes: int, changed: str):
    given(folder, "append", "id,v\n1,10")
    folder.write("in/a.csv", changed)
    refused(folder, "feed", "in/a.csv", "record 1")


def test_append_keeps_what_was_delivered_by_a_file_that_is_gone(folder: Folder):
    given(folder, "append", "id,v\n1,10\n")
    folder.remove("in/a.csv")
    folder.write("in/b.csv", "id,v\n2,20\n")
    folder.run()
    assert rows(folder) == "1:10 2:20"
    folder.write("in/a.csv", "id,v\n1,10\n")
    assert not folder.run().committed


@SIZES
def test_append_of_formats_that_are_read_as_a_whole_compares_records(folder: Folder, small_bytes: int):
    old = [{"id": 1, "v": 10}]
    given(folder, "append", json.dumps(old), "in/a.json", kind="json")
    folder.write("in/a.json", json.dumps([*old, {"id": 2, "v": 20}]))
    folder.run()
    assert ops(folder, 2) == ["+A 2:20"]
    assert cursor(folder) == 2


def test_append_refuses_a_json_array_whose_first_records_changed(folder: Folder):
    given(folder, "append", json.dumps([{"id": 1, "v": 10}]), "in/a.json", kind="json")
    folder.write("in/a.json", json.dumps([{"id": 1, "v": 11}, {"id": 2, "v": 20}]))
    refused(folder, "record 1")


@SIZES
def test_append_reads_new_lines_of_json(folder: Folder, small_bytes: int):
    line = '{"id": 1, "v": 10, "extra": "x"}\n'
    given(folder, "append", line, "in/a.json", kind="json")
    folder.write("in/a.json", line + '{"id": 2, "v": 20, "other": 1}\n')
    folder.run()
    assert ops(folder, 2) == ["+A 2:20"]
    assert [row["data"]["v"] for row in folder.log("feed")] == [10, 20]


# -- keys

@SIZES
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a": "id,v\n1,10\n2,20\n1,10\n"}, ["id=1", "stands for 2", "in/a.csv row 3"]),
        ({"a": "id,v\n1,10\n2,20\n2,21\n2,22\n"}, ["id=2", "stands for 3", "in/a.csv row 2, in/a.csv row 3"]),
        ({"a": "id,v\n1,10\n,20\n"}, ["column id is null", "is null (in/a.csv row 2)"]),
        ({"a": "id,v\n1,10\n,20\n,30\n"}, ["column id is null", "is null in 2 records", "in/a.csv row 2, in/a.csv row 3"]),
        ({"a": "id,v\n1,10\n", "b": "id,v\n1,10\n"}, ["id=1", "stands for 2", "(in/b.csv row 1, an unchanged record of in/a.csv)"]),
        ({"b": "id,v\n3,10\n1,10\n"}, ["id=1", "stands for 2", "(in/b.csv row 2, an unchanged record of in/a.csv)"]),
    ],
)
def test_a_snapshot_by_key_refuses_keys_that_are_none(folder: Folder, small_bytes: int, files: dict[str, str], words: list[str]):
    given(folder, f"{{strategy: snapshot, {KEY}}}", "id,v\n1,10\n")
    for name, text in files.items():
        folder.write(f"in/{name}.csv", text)
    refused(folder, "feed", *words)


@SIZES
def test_a_first_run_refuses_them_too(folder: Folder, small_bytes: int):
    folder.write("pipeline.yaml", source(f"{{strategy: snapshot, {KEY}}}"))
    folder.write("in/a.csv", "id,v\n1,10\n1,10\n")
    with pytest.raises(errata.StorageFailed, match="id=1"):
        folder.run()
    folder.write("in/a.csv", "id,v\n1,10\n")
    assert folder.run().epoch == 1


@SIZES
@pytest.mark.parametrize(
    ("type_", "cells", "shown"),
    [("date_time", ("2024-03-15T23:30:00-05:00", "2024-03-16T04:30:00Z"), "id=2024-03-16T04:30:00 stands"), ("decimal(12,10)", ("1e-10", "0.00000000010"), "id=0.0000000001 stands"), ("bool", ("yes", "1"), "id=true stands")],
)
def test_a_message_shows_a_key_as_outputs_write_it(folder: Folder, small_bytes: int, type_: str, cells: tuple[str, str], shown: str):
    folder.write("pipeline.yaml", source(f"{{strategy: snapshot, {KEY}}}").replace("{name: id, type: int}", f'{{name: id, type: "{type_}"}}'))
    folder.write("in/a.csv", f"id,v\n{cells[0]},10\n{cells[1]},10\n")
    with pytest.raises(errata.StorageFailed, match=shown):
        folder.run()


@SIZES
@pytest.mark.parametrize("strategy", ["strategy: ledger", "strategy: upsert"])
def test_deliveries_without_a_key_are_rejected(folder: Folder, small_bytes: int, strategy: str):
    given(folder, f"{{{strategy}, {KEY}}}", "id,v\n1,10\n,20\n")
    assert rows(folder) == "1:10"
    assert rejected(folder) == [("2", "null_primary_key", "")]


# -- upsert, ledger, changelog

UPSERT, CHANGES = f"{{strategy: upsert, {KEY}}}", f"{{strategy: changelog, {KEY}, op: op}}"
WITH_OP = "{name: op, type: string}, {name: id, type: int}, {name: v, type: int}"


@SIZES
def test_a_late_delivery_takes_its_place(folder: Folder, small_bytes: int):
    given(folder, CHANGES, "op,id,v\n-R,1,0\n+A,2,20\n", "in/b.csv", columns=WITH_OP)
    assert rejected(folder) == [("1", "retraction_of_unknown_key", "1")]
    folder.write("in/a.csv", "op,id,v\n+A,1,10\n+A,2,19\n")
    assert folder.run().exit_code == 0
    assert rows(folder) == "2:20"
    assert not (folder.path / "out/rejected.csv").exists()


def test_an_overwritten_delivery_is_a_new_one(folder: Folder):
    given(folder, UPSERT, "id,v\n1,10\n2,bad\n")
    assert rejected(folder) == [("2", "type_coercion_failure", "2")]
    folder.write("in/a.csv", "id,v\n2,20\n")
    assert folder.run().exit_code == 0
    assert rows(folder) == "1:10 2:20"
    folder.write("in/a.csv", "id,v\n1,12\n3,bad\n")
    assert folder.run().exit_code == 2
    assert rows(folder) == "1:12 2:20"
    assert rejected(folder) == [("2", "type_coercion_failure", "3")]


@SIZES
@pytest.mark.parametrize("strategy", ["ledger", "upsert", "changelog"])
def test_rows_of_an_overwritten_delivery_keep_their_undeclared_columns(folder: Folder, small_bytes: int, strategy: str):
    merge = CHANGES if strategy == "changelog" else UPSERT.replace("upsert", strategy)
    given(folder, merge, "op,id,v,note\nc,1,10,x\nc,2,20,y\n", columns=WITH_OP)
    folder.write("in/a.csv", "op,id,v\nc,3,30\n")
    folder.run()
    assert rows(folder).replace("c:", "") == "1:10:x 2:20:y 3:30:"
    assert next(iter(folder.load().show("rows")))["note"] == "x"
    folder.write("in/a.csv", "op,id,v,more\nc,4,40,z\n")
    folder.run()
    assert folder.text("out/rows.csv").replace("op,", "").replace("c,", "") == "id,v,note,more\n1,10,x,\n2,20,y,\n3,30,,\n4,40,,z\n"
    assert not folder.run().committed
    assert folder.violations() == []


def test_a_delivery_may_go(folder: Folder):
    given(folder, UPSERT, "id,v\n1,10\n")
    folder.remove("in/a.csv")
    assert not folder.run().committed
    folder.write("in/b.csv", "id,v\n2,20\n")
    folder.run()
    assert rows(folder) == "1:10 2:20"


def test_words_that_are_no_operation_are_rejected(folder: Folder):
    given(folder, CHANGES, "op,id,v\n+A,1,10\nx,2,20\n,3,30\n +I ,4,40\nt,5,50\n", columns=WITH_OP)
    assert rows(folder) == "1:10 4:40"
    assert rejected(folder) == [("2", "unknown_operation", "2"), ("3", "unknown_operation", "3"), ("5", "unknown_operation", "5")]


def test_several_changes_of_one_key_are_one_with_the_values_that_stood(folder: Folder):
    given(folder, CHANGES, "op,id,v\n+A,1,10\n+A,2,20\n+A,3,30\n", columns=WITH_OP)
    text = "op,id,v\nu,1,11\nd,1,0\nc,1,12\n-R,2,7\n-C,3,1\n+C,3,31\n-U,3,1\n+U,3,30\nc,4,40\nd,4,40\n"
    folder.write("in/b.csv", text)
    folder.run()
    assert ops(folder, 2) == ["-C 1:10", "+C 1:12", "-R 2:20"]


def test_a_delete_marker_that_cannot_be_evaluated_rejects_its_record(folder: Folder):
    given(folder, f'{{strategy: upsert, {KEY}, deleted: "1 / v == 1"}}', "id,v\n1,0\n2,2\n3,3\n")
    assert rows(folder) == "2:2 3:3"
    assert rejected(folder) == [("1", "type_coercion_failure", "1")]
    folder.write("in/b.csv", "id,v\n2,1\n")
    folder.run()
    assert ops(folder, 2) == ["-R 2:2"]


# -- a source's own logic

@pytest.mark.parametrize("merge", ["snapshot", "append", f"{{strategy: snapshot, {KEY}}}", f"{{strategy: ledger, {KEY}}}", UPSERT])
def test_another_schema_corrects_what_it_changes(folder: Folder, merge: str):
    given(folder, merge, "id,v,w\n1,10,x\n2,20,\n", cxl="emit v = v")
    columns = "{name: id, type: int}, {name: v, type: int}, {name: w, type: string}"
    folder.write("pipeline.yaml", source(merge, columns=columns))
    folder.run()
    assert {row["cause"] for row in folder.log("feed") if row["epoch"] == 2} == {"logic"}
    fresh = [row["data"] for row in folder.log("feed") if row["epoch"] == 2 and row["op"] in ("+A", "+C")]
    assert fresh == [{"id": 1, "v": 10, "w": "x"}, {"id": 2, "v": 20, "w": ""}]
    assert folder.violations() == []


# -- row numbers

@SIZES
@pytest.mark.parametrize("merge", ["snapshot", f"{{strategy: snapshot, {KEY}}}"])
def test_row_numbers_follow_where_a_program_reads_them(folder: Folder, small_bytes: int, merge: str):
    given(folder, merge, "id,v\n1,10\n3,30\n", cxl="emit row = $source.row")
    folder.write("in/a.csv", "id,v\n1,10\n2,20\n3,30\n")
    folder.run()
    assert rows(folder) == "1:10:1 2:20:2 3:30:3"
    assert sorted(ops(folder, 2)) == ["+A 2:20", "+C 3:30", "-C 3:30"]
    folder.write("in/a.csv", "id,v\n3,30\n")
    folder.run()
    assert rows(folder) == "3:30:1"


def test_row_numbers_come_with_the_program_that_reads_them(folder: Folder):
    given(folder, "snapshot", "id,v\n1,10\n2,20\n")
    folder.write("pipeline.yaml", source("snapshot", cxl="emit row = $source.row"))
    folder.run()
    assert rows(folder) == "1:10:1 2:20:2"


# -- counts

@SIZES
@pytest.mark.parametrize("merge", ["snapshot", "append", f"{{strategy: snapshot, {KEY}}}", f"{{strategy: ledger, {KEY}}}", UPSERT])
def test_the_cursor_counts_records_of_all_files(folder: Folder, small_bytes: int, merge: str):
    given(folder, merge, "id,v\n1,10\n2,bad\n3,30\n")
    assert cursor(folder) == 3
    folder.write("in/b.csv", "id,v\n4,40\n")
    folder.run()
    assert cursor(folder) == 4
    folder.write("in/b.csv", "id,v\n4,40\n5,50\n6,60\n")
    folder.run()
    assert cursor(folder) == 6
    assert rows(folder) == "1:10 3:30 4:40 5:50 6:60"


@SIZES
def test_files_with_other_columns_beside_each_other(folder: Folder, small_bytes: int):
    folder.write("pipeline.yaml", source("snapshot"))
    folder.write("in/a.csv", "id,v\n1,10\n")
    folder.write("in/b.csv", "id,v,extra\n2,20,x\n")
    folder.write("in/c.csv", "more,v,id\ny,30,3\n")
    folder.run()
    found: list[Any] = folder.rows("out/rows.csv")
    assert found == [
        {"id": "1", "v": "10", "extra": "", "more": ""}, {"id": "2", "v": "20", "extra": "x", "more": ""}, {"id": "3", "v": "30", "extra": "", "more": "y"},
    ]  # fmt: skip


KEPT_FIRST, KEPT_LAST, SAID = "{strategy: ledger, primary_key: [id]}", "{strategy: upsert, primary_key: [id], deleted: \"d == 'y'\"}", "{strategy: changelog, primary_key: [id], op: d}"


@pytest.mark.parametrize(
    ("merge", "deliveries", "stands"),
    [
        (KEPT_FIRST, [{"a": "1,10,\n2,20,\n"}, {"a": "1,99,\n3,30,\n"}], "1:10 2:20 3:30"),
        (KEPT_FIRST, [{"a": "1,10,\n"}, {"b": "1,99,\n"}, {"a": None}], "1:10"),
        (KEPT_LAST, [{"a": "1,10,n\n2,20,n\n"}, {"b": "1,,y\n2,99,n\n"}, {"b": None}], "2:99"),
        (KEPT_LAST, [{"a": "1,10,n\n2,20,n\n"}, {"b": "1,,y\n2,99,n\n"}, {"a": None}], "2:99"),
        (KEPT_LAST, [{"a": "1,10,n\n2,20,n\n", "b": "1,11,n\n"}, {"a": "1,12,n\n"}], "1:12 2:20"),
        (SAID, [{"a": "1,10,+A\n2,20,+A\n"}, {"b": "1,10,-R\n2,20,-C\n2,99,+C\n"}, {"b": None}], "2:99"),
        (SAID, [{"a": "1,10,+A\n2,20,+A\n"}, {"b": "1,10,-R\n2,20,-C\n2,99,+C\n9,9,-R\n"}, {"a": None}], "2:99"),
    ],
)
def test_what_deliveries_that_are_gone_decided_stands_when_the_source_is_edited(folder: Folder, merge: str, deliveries: list[dict[str, str | None]], stands: str) -> None:
    """A file that can be read again does not win over one that came after it and is gone; nor is what was taken back missed."""

    def run(columns: str) -> None:
        folder.write("pipeline.yaml", source(merge, columns=columns))
        folder.run()

    columns = "{name: id, type: int}, {name: v, type: int}, {name: d, type: string}"
    for files in deliveries:
        for name, text in files.items():
            if text is None:
                folder.remove(f"in/{name}.csv")
            else:
                folder.write(f"in/{name}.csv", "id,v,d\n" + text)
        run(columns)
    rejected = [row["_cxl_dlq_error_category"] for row in folder.rows("out/rejected.csv")] if (folder.path / "out/rejected.csv").exists() else []
    run(columns + ", {name: more, type: string, optional: true}")
    assert " ".join(f"{row['id']}:{row['v']}" for row in folder.rows("out/rows.csv")) == stands
    assert ([row["_cxl_dlq_error_category"] for row in folder.rows("out/rejected.csv")] if rejected else []) == rejected
    assert folder.violations() == []


def test_a_record_that_can_be_read_once_its_column_has_another_type_stands_unless_its_key_does(folder: Folder) -> None:
    def run(kind: str) -> None:
        folder.write("pipeline.yaml", source(KEPT_LAST.split(", deleted", maxsplit=1)[0] + "}", columns=f"{{name: id, type: int}}, {{name: v, type: {kind}}}"))
        folder.run()

    folder.write("in/a.csv", "id,v\n1,x\n2,y\n3,5\n")
    folder.write("in/b.csv", "id,v\n2,7\n")
    run("int")
    folder.remove("in/b.csv")
    run("int")
    assert rows(folder) == "2:7 3:5"
    run("string")
    assert rows(folder) == "1:x 2:7 3:5"
    assert folder.violations() == []


@pytest.mark.parametrize(
    ("merge", "new", "stands"),
    [
        (KEPT_LAST, {"a": "id,v,d\n1,11,n\n"}, "1:11 2:20 3:30"),
        (KEPT_LAST, {"a": "id,v,d\n1,10,n\n3,30,n\n1,12,n\n4,40,n\n"}, "1:12 2:20 3:30 4:40"),
        (KEPT_LAST, {"c": "id,v,d\n1,13,n\n2,,y\n5,50,n\n"}, "1:13 3:30 5:50"),
        (KEPT_FIRST, {"a": "id,v,d\n1,11,\n4,40,\n"}, "1:10 2:20 3:30 4:40"),
        (KEPT_FIRST, {"c": "id,v,d\n1,13,\n2,21,\n5,50,\n"}, "1:10 2:20 3:30 5:50"),
        (SAID, {"c": "id,v,d\n1,10,-R\n2,20,-C\n2,21,+C\n5,50,+A\n"}, "2:21 3:30 5:50"),
    ],
)
@pytest.mark.parametrize("gone", [False, True])
def test_deliveries_come_on_top_of_what_stands_also_with_an_edit_of_the_source(folder: Folder, merge: str, new: dict[str, str], stands: str, gone: bool) -> None:
    """Whether all earlier ones are still there or not."""
    columns = "{name: id, type: int}, {name: v, type: int}, {name: d, type: string}"
    came = "+A" if merge == SAID else "n"
    folder.write("pipeline.yaml", source(merge, columns=columns))
    folder.write("in/a.csv", f"id,v,d\n1,10,{came}\n3,30,{came}\n")
    folder.write("in/b.csv", f"id,v,d\n2,20,{came}\n")
    folder.run()
    if gone:
        folder.remove("in/b.csv")
        folder.run()
    for name, text in new.items():
        folder.write(f"in/{name}.csv", text)
    folder.write("pipeline.yaml", source(merge, columns=columns + ", {name: more, type: string, optional: true}"))
    folder.run()
    assert " ".join(f"{row['id']}:{row['v']}" for row in folder.rows("out/rows.csv")) == stands
    assert not (folder.path / "out/rejected.csv").exists()
    assert folder.violations() == []
    assert not folder.run().committed


def test_the_present_content_of_a_file_that_was_once_overwritten_is_read_again_with_an_edit(folder: Folder) -> None:
    """Its rejects stay rejects, and its rows get what a column that comes to be declared has in the file."""
    columns = "{name: id, type: int}, {name: v, type: int}"
    given(folder, "{strategy: upsert, primary_key: [id]}", "id,v,more\n1,10,x\n", columns=columns)
    folder.write("in/a.csv", "id,v,more\n1,11,y\n2,20,z\n3,no,z\n")
    folder.run()
    before = rejected(folder)
    assert before == [("3", "type_coercion_failure", "3")]
    folder.write("pipeline.yaml", source("{strategy: upsert, primary_key: [id]}", columns=columns + ", {name: more, type: string}"))
    folder.run()
    assert rows(folder) == "1:11:y 2:20:z"
    assert rejected(folder) == before
    assert folder.violations() == []


def test_what_took_back_nothing_stays_a_reject_with_an_edit(folder: Folder) -> None:
    """Also where its key has come since and another file is gone."""
    columns = "{name: id, type: int}, {name: v, type: int}, {name: d, type: string}"
    given(folder, SAID, "id,v,d\n7,7,-R\n7,70,+A\n", columns=columns)
    folder.write("in/b.csv", "id,v,d\n5,50,+A\n")
    folder.run()
    before = rejected(folder)
    assert [category for _, category, _ in before] == ["retraction_of_unknown_key"]
    folder.remove("in/b.csv")
    folder.run()
    folder.write("pipeline.yaml", source(SAID, columns=columns + ", {name: more, type: string, optional: true}"))
    folder.run()
    assert [(row["id"], row["v"]) for row in folder.rows("out/rows.csv")] == [("5", "50"), ("7", "70")]
    assert rejected(folder) == before
    assert folder.violations() == []
