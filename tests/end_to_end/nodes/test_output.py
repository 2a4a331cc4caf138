"""Outputs: what is said of a `split:` or a `mapping:` that cannot work before anything is read, and of what a mapping leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.diagnostics import PipelineErrors
from tests.support.csv_histories import heading, source
from tests.support.pipelines import Folder, command, standing_in


@pytest.mark.parametrize(
    ("split", "code", "message"),
    [
        ("{ max_records: 2, group_key: depth }, include_unmapped: false", "E251", "group field 'depth' does not reach this output"),
        ("{ max_records: 2, naming: '{when}.csv' }", "E218", "split.naming: unknown token {when}; there are {stem}, {seq:0N} and {ext}"),
        ("{ max_records: 2, naming: all.csv }", "E218", "split.naming: without {seq} all parts would have one name"),
    ],
)
def test_a_split_is_checked_with_the_pipeline(tmp_path: Path, split: str, code: str, message: str) -> None:
    folder = Folder(tmp_path)
    node = f"  - {{ type: output, name: out, input: rows, config: {{ name: out, type: csv, path: out.csv, split: {split} }} }}\n"
    folder.write("pipeline.yaml", heading("cut") + source("rows", {"id": "int", "dept": "string"}) + node)
    with pytest.raises(PipelineErrors) as caught:
        folder.load()
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [(code, message)]


NUMBERED = """  - type: output
    name: out
    input: rows
    config: { name: out, type: csv, path: out.csv, OPTIONS, split: { max_records: 2, group_key: dept, naming: "{seq}.csv", oversize_group: allow } }
"""


def numbered(folder: Folder, rows: str, options: str = "exclude: [dept]") -> list[list[str]]:
    """The ids in each part of an output of rows `id,dept`, written by a run."""
    folder.write("pipeline.yaml", heading("cut") + source("rows", {"id": "int", "dept": "string"}) + NUMBERED.replace("OPTIONS", options))
    folder.write("rows.csv", f"id,dept\n{rows}")
    folder.run()
    parts = sorted(folder.path.glob("[0-9].csv"))
    return [[line.split(",")[0] for line in part.read_text().splitlines()[1:]] for part in parts]


def test_groups_of_a_field_that_is_not_written_stay_together(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert numbered(folder, "1,a\n2,b\n3,b\n4,c\n5,c\n6,\n") == [["1", "2", "3"], ["4", "5"], ["6"]]
    assert folder.text("1.csv") == "id\n1\n2\n3\n"
    assert numbered(folder, "1,a\n2,b\n3,c\n4,c\n5,c\n6,c\n") == [["1", "2"], ["3", "4", "5", "6"]]  # the values alone change
    assert numbered(folder, "1,a\n2,b\n3,c\n4,c\n5,c\n6,c\n", "exclude: []") == [["1", "2"], ["3", "4", "5", "6"]]
    assert numbered(folder, "1,a\n2,a\n3,a\n4,c\n5,c\n6,c\n", "exclude: [dept], sort_order: [{ field: id, order: desc }]") == [["6", "5", "4"], ["3", "2", "1"]]
    assert numbered(folder, "1,a\n2,b\n3,c\n4,c\n5,c\n6,c\n", "exclude: []") == [["1", "2"], ["3", "4", "5", "6"]]
    assert folder.violations() == []


def test_a_group_field_is_named_as_it_comes_from_upstream(tmp_path: Path) -> None:
    assert numbered(Folder(tmp_path), "1,a\n1,b\n1,b\n2,b\n", "exclude: [dept], mapping: { dept: id }") == [["1", "1", "1", "2"]]


MAPPED = "  - {{ type: output, name: out, input: rows, config: {{ name: out, type: csv, path: out.csv, if_exists: overwrite, {} }} }}\n"


def mapped(folder: Folder, options: str) -> tuple[str, list[str]]:
    """The output of rows `id,dept,extra`, the last undeclared, and what is warned of."""
    folder.write("pipeline.yaml", heading("mapped") + source("rows", {"id": "int", "dept": "string"}) + MAPPED.format(options))
    folder.write("rows.csv", "id,dept,extra\n1,a,x\n")
    with standing_in(folder.path):
        code, _, stderr = command("run", "pipeline.yaml", "--quiet", "--full-refresh")
    assert code == 0
    return folder.text("out.csv"), stderr.splitlines()


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        ("mapping: { dept: id, id: dept }", "dept,id,extra\n1,a,x\n", []),
        ("mapping: { one: id, two: id, three: extra, four: extra }", "one,two,dept,three,four\n1,1,a,x,x\n", []),
        ("mapping: { dept: id }, exclude: [dept]", "dept,extra\n1,x\n", []),
        ("mapping: { id: extra }, exclude: [id]", "dept,id\na,x\n", []),
        ("mapping: { id: extra }", "id,dept\n1,a\n", ["warning: output 'out': the undeclared field 'extra' is left out: another column is written as 'id'"]),
        ("mapping: { extra: more }", "id,dept,extra\n1,a,x\n", ["warning: output 'out': mapping calls the field 'more' 'extra', but it does not reach the output"]),
        ("mapping: { n: idd }", "id,dept,extra\n1,a,x\n", ["warning: output 'out': mapping calls the field 'idd' 'n', but it does not reach the output"]),
        (
            "sort_order: [extra, dpt]",
            "id,dept,extra\n1,a,x\n",
            ["warning: output 'out': the records are sorted or held together by 'dpt', but it does not reach the output (did you mean 'dept'?)"],
        ),
    ],
)
def test_a_mapping_gives_each_column_its_names(tmp_path: Path, options: str, text: str, message: list[str]) -> None:
    assert mapped(Folder(tmp_path), options) == (text, message)
