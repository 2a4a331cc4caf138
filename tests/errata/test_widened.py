"""Undeclared columns come and go with the files, also where none of their rows reaches an output: it has the header of a full run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines import Folder

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
