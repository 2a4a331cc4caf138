"""Text that a spreadsheet would run is warned of, once a run."""

from pathlib import Path
from typing import Any

import pytest

from errata.core.events import Event
from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: {{ name: p }}
nodes:
  - {{ type: source, name: s, config: {{ name: s, type: csv, path: in.csv, schema: [{{ name: id, type: int }}, {{ name: note, type: string }}] }} }}
  - {{ type: output, name: one, input: s, config: {{ name: one, type: csv, path: one.csv{more} }} }}
  - {{ type: output, name: two, input: s, config: {{ name: two, type: csv, path: two.csv{more} }} }}
"""


def warned(folder: Folder, more: str, note: str, rows: int = 1) -> list[str]:
    folder.write("pipeline.yaml", PIPELINE.format(more=more))
    folder.write("in.csv", "id,note\n" + "".join(f"{-at},x\n" for at in range(1, rows)) + f"0,{note}\n")
    events: list[Event] = []
    folder.run(listener=events.append)
    return [event.action for event in events if event.kind == "warning"]


@pytest.mark.parametrize("more", ["", ", split: { max_records: 1 }"])
@pytest.mark.parametrize(("note", "count"), [("=1+1", 1), ("@SUM(A1)", 1), ("-5", 0), ("x", 0)])
def test_formulas_are_warned_of_once(tmp_path: Path, more: str, note: str, count: int) -> None:
    warnings: Any = warned(Folder(tmp_path), more, note)
    assert len(warnings) == count
    assert all("output 'one': cells begin with = + - or @" in one and "formula_guard: true" in one for one in warnings)


def test_a_guard_says_nothing(tmp_path: Path) -> None:
    assert warned(Folder(tmp_path), ", options: { formula_guard: true }", "=1+1") == []
    assert (tmp_path / "one.csv").read_text() == "id,note\n0,'=1+1\n"


def test_a_large_output_is_looked_at_where_it_is_written(tmp_path: Path) -> None:
    assert len(warned(Folder(tmp_path), "", "=1+1", rows=120_000)) == 1
    lines = (tmp_path / "two.csv").read_text().splitlines()
    assert (len(lines), lines[0], lines[1], lines[-1]) == (120_001, "id,note", "-1,x", "0,=1+1")
