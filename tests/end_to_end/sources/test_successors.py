"""Snapshots by key whose files get other names: the file is the whole truth, and what it is called is none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.options import RunOptions
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: dated }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
nodes:
  - type: source
    name: s
    config:
      name: s
      type: csv
      glob: in/*.csv
      files: { on_no_match: skip }
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: v, type: int }]
  - { type: transform, name: t, input: s, config: { cxl: "emit id = id\\nemit x = 10 / v" } }
  - { type: output, name: out, input: t, config: { name: out, type: csv, path: out.csv } }
"""


def laid_out(folder: Folder, files: dict[str, list[str]]) -> None:
    """Bring the source's files to what is given."""
    for file in (folder.path / "in").glob("*.csv"):
        if file.stem not in files:
            folder.remove(f"in/{file.name}")
    for name, rows in files.items():
        folder.write(f"in/{name}.csv", "\n".join(["id,v", *rows, ""]))


def changes(folder: Folder, node: str, epoch: int) -> list[tuple[str, int]]:
    """Op and id of a node's rows of an epoch."""
    return [(row["op"], row["data"]["id"]) for row in folder.log(node) if row["epoch"] == epoch]


def places(folder: Folder) -> list[tuple[str, str]]:
    """File and row of the rejected records."""
    if not (folder.path / "rejected.csv").exists():
        return []
    return [(Path(row["_cxl_dlq_source_file"]).name, row["_cxl_dlq_source_row"]) for row in folder.rows("rejected.csv")]


def check_full_run(folder: Folder, other: Path) -> None:
    """One run over the files as they are gives the same output and lists the same records."""
    full = Folder(other)
    full.write("pipeline.yaml", folder.text("pipeline.yaml"))
    for file in sorted((folder.path / "in").glob("*.csv")):
        full.write(f"in/{file.name}", file.read_text())
    full.run()
    assert full.text("out.csv") == folder.text("out.csv")
    assert places(full) == places(folder)
    assert folder.violations() == []


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "it")
    made.write("pipeline.yaml", PIPELINE)
    laid_out(made, {"day1": ["1,1", "2,0", "3,5"]})
    made.run()
    return made


def test_only_what_a_file_of_another_name_says_otherwise_is_a_change(folder: Folder, tmp_path: Path) -> None:
    for day, rows in enumerate((["3,5", "1,2", "2,0"], ["3,5", "2,0", "4,1", "1,2"]), 2):
        laid_out(folder, {f"day{day}": rows})
        folder.run()
        check_full_run(folder, tmp_path / f"full{day}")
    assert changes(folder, "s", 2) == [("-C", 1), ("+C", 1)]
    assert changes(folder, "s", 3) == [("+A", 4)]
    assert changes(folder, "t", 3) == [("+A", 4)]


def test_a_file_that_is_only_renamed_changes_no_row_but_the_place_of_rejects(folder: Folder, tmp_path: Path) -> None:
    (folder.path / "in/day1.csv").rename(folder.path / "in/day2.csv")
    folder.run()
    assert changes(folder, "s", 2) == []
    assert places(folder) == [("day2.csv", "2")]
    check_full_run(folder, tmp_path / "full")
    assert not folder.run().committed


def test_why_names_the_file_and_the_row_as_they_are_now(folder: Folder) -> None:
    laid_out(folder, {"day2": ["7,1", "2,0", "1,1", "3,5"]})
    folder.run()
    (found,) = folder.load().why("out", {"id": "1"})
    assert (Path(found["file"]).name, found["row"], found["epoch"], found["op"]) == ("day2.csv", 3, 1, "+A")


def test_a_name_that_comes_back_is_a_file_of_its_own(folder: Folder, tmp_path: Path) -> None:
    laid_out(folder, {"day2": ["1,1", "2,0", "3,5"]})
    folder.run()
    laid_out(folder, {"day1": ["4,4", "5,0"], "day2": ["1,1", "2,0", "3,5"]})
    folder.run()
    assert changes(folder, "s", 3) == [("+A", 4), ("+A", 5)]
    check_full_run(folder, tmp_path / "both")
    laid_out(folder, {"day1": ["4,4", "5,0"]})
    folder.run()
    assert changes(folder, "s", 4) == [("-R", 1), ("-R", 2), ("-R", 3)]
    check_full_run(folder, tmp_path / "one")


def test_records_that_cannot_be_read_are_listed_in_the_file_as_it_is_called_now(folder: Folder, tmp_path: Path) -> None:
    laid_out(folder, {"day1": ["1,1", "2,many", "3,5"]})
    folder.run()
    laid_out(folder, {"day2": ["1,1", "2,many", "3,6"]})
    folder.run()
    assert places(folder) == [("day2.csv", "2")]
    assert changes(folder, "s", 3) == [("-C", 3), ("+C", 3)]
    check_full_run(folder, tmp_path / "full")


def test_a_key_in_two_files_is_told_by_their_names_now(folder: Folder) -> None:
    laid_out(folder, {"day2": ["1,1", "2,0", "3,5"]})
    folder.run()
    laid_out(folder, {"day2": ["1,1", "2,0", "3,6"], "day3": ["1,1"]})
    with pytest.raises(Exception, match=r"id=1 stands for 2 records .*day2\.csv row 1, .*day3\.csv row 1"):
        folder.run()


@pytest.mark.parametrize("reads", ["emit f = $source.file", "emit f = $source.path"])
def test_where_a_program_asks_for_the_file_another_name_is_a_change(reads: str, folder: Folder, tmp_path: Path) -> None:
    laid_out(folder, {"day2": ["1,1", "2,0", "3,5"]})
    folder.run()
    folder.write("pipeline.yaml", PIPELINE.replace("emit x", f"{reads}\\nemit x"))
    folder.run()
    check_full_run(folder, tmp_path / "edited")
    laid_out(folder, {"day3": ["1,1", "2,0", "3,5"]})
    folder.run()
    check_full_run(folder, tmp_path / "day3")
    folder.write("pipeline.yaml", PIPELINE)
    laid_out(folder, {"day4": ["1,1", "2,0", "3,5"]})
    folder.run()
    check_full_run(folder, tmp_path / "back")


def test_outputs_by_source_file_follow_the_names(folder: Folder, tmp_path: Path) -> None:
    laid_out(folder, {"day2": ["1,1", "2,0", "3,5"]})
    folder.run()
    folder.write("pipeline.yaml", PIPELINE.replace("path: out.csv", "path: 'out/{source_file}.csv'"))
    folder.run()
    assert [row["id"] for row in folder.rows("out/day2.csv")] == ["1", "3"]
    laid_out(folder, {"day3": ["1,1", "2,0", "3,5"]})
    folder.run()
    assert sorted(file.name for file in (folder.path / "out").iterdir()) == ["day3.csv"]


def test_parts_of_a_folder_are_followed_one_by_one(folder: Folder, tmp_path: Path) -> None:
    laid_out(folder, {f"part-{n}-a": [f"{n},1", f"{n + 5},2"] for n in range(4)})
    folder.run()
    laid_out(folder, {f"part-{n}-b": [f"{n},1", f"{n + 5},{2 + (n == 3)}"] for n in range(4)})
    folder.run()
    assert changes(folder, "s", 3) == [("-C", 8), ("+C", 8)]
    check_full_run(folder, tmp_path / "full")


def test_edited_types_compare_no_names_of_files(folder: Folder, tmp_path: Path) -> None:
    laid_out(folder, {"day2": ["1,1", "2,0", "3,5"]})
    folder.run()
    folder.write("pipeline.yaml", PIPELINE.replace("{ name: v, type: int }", "{ name: v, type: float }"))
    folder.run()
    check_full_run(folder, tmp_path / "full")
    laid_out(folder, {"day3": ["1,1", "2,0", "3,5"]})
    folder.run()
    assert changes(folder, "s", 4) == []
    check_full_run(folder, tmp_path / "day3")


def test_a_revert_brings_back_what_a_file_of_another_name_said(folder: Folder) -> None:
    before = folder.text("out.csv")
    laid_out(folder, {"day2": ["1,1", "2,0", "9,5"]})
    folder.run()
    folder.load().revert(1, RunOptions(engine=folder.engine_options))
    assert folder.text("out.csv") == before
    assert not folder.run().committed
    assert folder.violations() == []
