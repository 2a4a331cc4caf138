"""What a preview shows of outputs, and that it writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: {name: shown}
nodes:
  - {type: source, name: rows, config: {name: rows, type: csv, path: rows.csv, schema: [{name: id, type: int}, {name: grp, type: string}]}}
"""


def project(folder: Folder, **outputs: dict[str, Any]) -> None:
    nodes = [{"type": "output", "name": name, "input": "rows", "config": {"name": name, "type": "csv", "path": f"{name}.csv", **config}} for name, config in outputs.items()]
    folder.write("pipeline.yaml", PIPELINE + "".join(f"  - {json.dumps(node)}\n" for node in nodes))
    folder.write("rows.csv", "id,grp\n1,a\n2,b\n3,c\n")


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"split": {"max_records": 1}}, "id,grp\n1,a\n2,b\n"),
        ({"split": {"max_records": 1, "naming": "{seq}-{stem}.{ext}"}}, "id,grp\n1,a\n2,b\n"),
        ({"split": {"max_records": 1, "group_key": "grp"}, "exclude": ["grp"]}, "id\n1\n2\n"),
        ({"split": {"max_records": 1}, "type": "json"}, '[\n{"id":1,"grp":"a"},\n{"id":2,"grp":"b"}\n]\n'),
    ],
)
def test_a_preview_of_a_split_output_is_one_text(tmp_path: Path, config: dict[str, Any], text: str) -> None:
    folder = Folder(tmp_path)
    project(folder, one=config)
    assert folder.run(dry_run=True, preview=2).preview == text


def test_a_preview_of_two_split_outputs_shows_each_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    project(folder, one={"split": {"max_records": 1}}, one_2={"split": {"max_records": 1}})
    assert folder.run(dry_run=True, preview=1).preview == "# one\nid,grp\n1,a\n# one_2\nid,grp\n1,a\n"


def test_a_preview_leaves_the_changelog_of_an_output(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    project(folder, one={"changelog": {"path": "changes-{epoch}.jsonl", "form": "two", "format": "jsonl"}})
    folder.run(dry_run=True, preview=1)
    assert sorted(path.name for path in tmp_path.glob("changes-*")) == []
    folder.run()
    before = folder.text("changes-1.jsonl")
    folder.run(dry_run=True, preview=1)
    assert folder.text("changes-1.jsonl") == before
