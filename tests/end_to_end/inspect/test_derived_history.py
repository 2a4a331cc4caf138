"""Under `persist: boundaries` a node between tables is derived by the pipeline's logic. Nothing is shown of epochs with other logic."""

from __future__ import annotations

from pathlib import Path

import pytest

from errata.core.options import LogFilter
from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """\
pipeline: {name: prices}
changelog: {persist: boundaries}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: in/*.csv, schema: [{name: id, type: int}, {name: v, type: int}]}}
  - {type: transform, name: doubled, input: s, config: {cxl: "emit w = v * 2"}}
  - {type: transform, name: named, input: doubled, config: {cxl: "emit text = w.to_string()"}}
  - {type: output, name: o, input: named, config: {name: o, type: csv, path: o.csv}}
"""


@pytest.fixture
def edited(tmp_path: Path) -> Folder:
    """Epoch 1 doubles, epoch 2 triples, epoch 3 has a record more."""
    folder = Folder(tmp_path)
    for logic, records in (("v * 2", "1,10\n"), ("v * 3", "1,10\n"), ("v * 3", "1,10\n2,5\n")):
        folder.write("pipeline.yaml", PIPELINE.replace("v * 2", logic))
        folder.write("in/a.csv", "id,v\n" + records)
        folder.run()
    return folder


def tell(folder: Folder, *words: str) -> tuple[int, str, str]:
    with standing_in(folder.path):
        return command(words[0], "pipeline.yaml", *words[1:])


@pytest.mark.parametrize("node", ["doubled", "named"])
@pytest.mark.parametrize("words", [("show", "--at", "1"), ("log",), ("log", "--epoch", "2"), ("diff", "--from", "1", "--to", "3")])
def test_what_another_logic_gave_is_not_made_up(edited: Folder, node: str, words: tuple[str, ...]) -> None:
    code, out, err = tell(edited, words[0], node, *words[1:])
    assert (code, out) == (64, "")
    assert f"node '{node}' keeps no changelog of its own (persist: boundaries), and its logic changed in epoch 2: what it gave before is not known" in err
    assert "its rows can be read from epoch 2 on, its changes from epoch 3 on" in err


def test_what_this_logic_gave_is_told(edited: Folder) -> None:
    assert [row["w"] for row in edited.load().show("doubled", at=2)] == [30]
    assert [row["text"] for row in edited.load().show("named")] == ["30", "15"]
    assert [(row["op"], row["epoch"], row["data"]["id"]) for row in edited.load().log("doubled", LogFilter(since=3))] == [("+A", 3, 2)]
    assert [(row["op"], row["after"]["text"]) for row in edited.load().diff("named", 2, 3)] == [("+A", "15")]
    assert edited.violations() == []


def test_an_edit_that_has_not_run_is_not_told_of_either(edited: Folder) -> None:
    edited.write("pipeline.yaml", PIPELINE.replace("v * 2", "v * 4"))
    code, _, err = tell(edited, "show", "named")
    assert code == 64
    assert "the pipeline is not the one of epoch 3" in err
    assert "run it first" in err


def test_tables_tell_all_of_it(edited: Folder) -> None:
    assert [(row["op"], row["epoch"], row["data"].get("text")) for row in edited.load().log("o")][:3] == [("+A", 1, "20"), ("-C", 2, "20"), ("+C", 2, "30")]


def test_the_file_of_a_record_is_told_when_it_is_gone(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE.replace("v * 2", "$source.file").replace("w.to_string()", "w"))
    folder.write("in/a.csv", "id,v\n1,1\n")
    folder.write("in/b.csv", "id,v\n2,1\n")
    folder.run()
    folder.remove("in/a.csv")
    folder.run()
    shown = [[Path(row["w"]).name for row in folder.load().show("doubled", at=at)] for at in (1, 2)]
    assert shown == [["a.csv", "b.csv"], ["b.csv"]]


def test_rows_of_a_node_without_a_table_are_not_counted(edited: Folder) -> None:
    """An unknown number is null: 0 would mean that there are none."""
    counts = {node["name"]: node["rows_live"] for node in edited.load().status()["nodes"]}
    assert counts == {"s": 2, "doubled": None, "named": None, "o": 2}
    assert "transform, 0 rows" not in edited.load().report()
