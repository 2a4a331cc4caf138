"""The table of merge strategies in `docs/reference/nodes/source.md`: what a delivery makes of the rows before it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipelines import Folder

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "nodes" / "source.md"
LINE = re.compile(r"^\| (`(?P<strategy>\w+)`[^|]*) \| `(?P<before>[^|]*)` \| `(?P<file>\d\.csv)` is (?:now )?`(?P<delivery>[^|]*)` \| `(?P<after>[^|]*)` \|", re.MULTILINE)
TABLE = [found.groupdict() | {"keys": re.findall(r"`([a-z_]+: [^`]*)`", found[1])} for found in LINE.finditer(PAGE.read_text(encoding="utf-8"))]
PIPELINE = """\
pipeline: { name: strategies }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: "data/*.csv", merge: { strategy: STRATEGY }, schema: [COLUMNS] } }
  - { type: output, name: out, input: s, config: { name: out, type: csv, path: out.csv } }
"""


def records(text: str, *, ops: bool) -> str:
    """The rows of the table as a file; rows before have no operation, they came by +A."""
    words = [row.split(" ") for row in text.split(", ")]
    lines = [["op", "id", "amount"], *(row if len(row) == 3 else ["+A", *row] for row in words)]
    return "".join(",".join(line if ops else line[1:]) + "\n" for line in lines)


@pytest.mark.parametrize("line", TABLE, ids=lambda line: line["strategy"])
def test_a_delivery_leaves_the_rows_that_the_page_shows(tmp_path, line):
    ops = line["strategy"] == "changelog"
    columns = ["{ name: op, type: string }"] * ops + ["{ name: id, type: int }", "{ name: amount, type: int }"]
    folder = Folder(tmp_path)
    (tmp_path / "data").mkdir()
    merge = ", ".join([line["strategy"], *line["keys"]])
    folder.write("pipeline.yaml", PIPELINE.replace("STRATEGY", merge).replace("COLUMNS", ", ".join(columns)))
    folder.write("data/1.csv", records(line["before"], ops=ops))
    folder.run()
    assert folder.text("out.csv") == records(line["before"], ops=False)
    folder.write(f"data/{line['file']}", records(line["delivery"], ops=ops))
    folder.run()
    assert folder.text("out.csv") == records(line["after"], ops=False)


def test_the_page_has_every_strategy():
    assert [line["strategy"] for line in TABLE] == ["snapshot", "append", "ledger", "upsert", "changelog"]
