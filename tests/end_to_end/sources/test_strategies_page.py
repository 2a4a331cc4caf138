"""The tables of `docs/reference/merge-strategies.md`: what a delivery makes of the rows before it, and the ops of the source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.pipelines import Folder

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "merge-strategies.md"
TABLE = re.compile(
    r"^```yaml\nmerge: (?P<merge>\{.*\})\n```\n\n"
    r"\| before: `(?P<before>[^`]*)` \| `(?P<file>\d\.csv)`(?: is now)?: `(?P<delivered>[^`]*)` \| after: `(?P<after>[^`]*)` \| ops \|\n\|[-|]*\|\n(?P<lines>(?:\|.*\n)+)",
    re.MULTILINE,
)
TYPES = {"id": "int", "amount": "int", "version": "int"}
PIPELINE = """\
pipeline: { name: strategies }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: "data/*.csv", merge: MERGE, schema: [COLUMNS] } }
  - { type: output, name: out, input: s, config: { name: out, type: csv, path: out.csv } }
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """A table of the page: the strategy, the file that comes, the columns and rows on each side, all ops."""

    merge: str
    file: str
    columns: tuple[str, str, str]
    rows: tuple[list[str], list[str], list[str]]
    ops: list[str]

    @property
    def strategy(self) -> str:
        return re.findall(r"strategy: (\w+)", self.merge)[0]


def shown(found: re.Match[str]) -> Shown:
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in found["lines"].splitlines()]
    rows = tuple([line[side].strip("`") for line in cells if line[side]] for side in range(3))
    ops = [op for line in cells for op in re.findall(r"`([+-][ARC])`", line[3])]
    return Shown(found["merge"], found["file"], (found["before"], found["delivered"], found["after"]), rows, ops)


TABLES = [shown(found) for found in TABLE.finditer(PAGE.read_text(encoding="utf-8"))]


def text(columns: str, rows: list[str]) -> str:
    return "".join(",".join(line.split()) + "\n" for line in [columns, *rows])


def with_operations(table: Shown) -> list[str]:
    """The rows before as they are delivered: where only deliveries have a column of operations, they came by `+A`."""
    return [f"+A {row}" if len(table.columns[1].split()) > len(table.columns[0].split()) else row for row in table.rows[0]]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.merge)
def test_a_delivery_leaves_the_rows_that_the_page_shows(tmp_path, table):
    columns = table.columns[1].split()
    declared = ", ".join(f"{{ name: {name}, type: {TYPES.get(name, 'string')} }}" for name in columns)
    folder = Folder(tmp_path)
    (tmp_path / "data").mkdir()
    folder.write("pipeline.yaml", PIPELINE.replace("MERGE", table.merge).replace("COLUMNS", declared))
    folder.write("data/1.csv", text(table.columns[1], with_operations(table)))
    folder.run(max_retract_share=1.0)
    assert folder.text("out.csv") == text(table.columns[0], table.rows[0])
    folder.write(f"data/{table.file}", text(table.columns[1], table.rows[1]))
    folder.run(max_retract_share=1.0)
    assert sorted(folder.text("out.csv").splitlines()) == sorted(text(table.columns[2], table.rows[2]).splitlines())
    assert sorted(row["op"] for row in folder.load().log("s") if row["epoch"] == 2) == sorted(table.ops)


def test_every_table_of_the_page_is_found():
    assert len(TABLES) == PAGE.read_text(encoding="utf-8").count("| before: ")


def test_the_page_has_every_strategy():
    assert list(dict.fromkeys(table.strategy for table in TABLES)) == ["snapshot", "append", "ledger", "upsert", "changelog"]
