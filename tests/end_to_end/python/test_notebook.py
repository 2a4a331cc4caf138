"""`errata notebook`: the text of a notebook, its cells run over a stand-in for marimo, odd names, files that exist."""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.pipelines import Folder, command

PIPELINE = """\
pipeline: { name: noted, vars: { pipeline: { least: { type: int, default: 0 } } } }
error_handling: { strategy: continue }
nodes:
  - type: source
    name: orders
    expect: [{ range: { column: amount, max: 10 } }]
    config: { name: orders, type: csv, path: orders.csv, schema: [{ name: id, type: int }, { name: amount, type: int }] }
  - { type: transform, name: kept, input: orders, config: { cxl: "filter amount > $pipeline.least" } }
  - { type: output, name: result, input: kept, config: { name: result, type: csv, path: result.csv } }
"""


def stand_in(*, pressed: bool) -> Any:
    """The parts of marimo that the cells use."""
    ui = SimpleNamespace(
        run_button=lambda label: SimpleNamespace(value=pressed), dropdown=lambda options, value, label: SimpleNamespace(value=value),
        number=lambda start, stop, value, label: SimpleNamespace(value=value), table=lambda rows, selection: rows,
    )  # fmt: skip
    return SimpleNamespace(ui=ui, md=str, hstack=lambda items, justify: items)


def cells(text: str) -> Iterator[tuple[list[str], str]]:
    """The names that each cell takes, and its statements without the return."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            body = [one for one in node.body if not isinstance(one, ast.Return)]
            yield [one.arg for one in node.args.args], "\n".join(map(ast.unparse, body))


def executed(path: Path, *, pressed: bool) -> dict[str, Any]:
    """The names of a notebook after its cells ran in turn; each finds what it takes."""
    names: dict[str, Any] = {}
    cell = path.with_name("cell.py")
    sys.modules["marimo"] = stand_in(pressed=pressed)
    try:
        for takes, body in cells(path.read_text(encoding="utf-8")):
            assert set(takes) <= names.keys()
            cell.write_text(body, encoding="utf-8")
            names = runpy.run_path(str(cell), names)
    finally:
        cell.unlink(missing_ok=True)
        del sys.modules["marimo"]
    return names


def test_cells_before_a_run_and_after_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("orders.csv", "id,amount\n1,4\n2,40\nx,1\n")
    code, out, err = command("notebook", str(tmp_path / "pipeline.yaml"))
    assert (code, out) == (0, "")
    assert "marimo edit" in err
    before = executed(tmp_path / "pipeline.notebook.py", pressed=False)
    assert (before["result"], before["rows"], before["changes"], before["dead"]) == (None, None, None, [])
    after = executed(tmp_path / "pipeline.notebook.py", pressed=True)
    assert after["result"].epoch == 1
    assert after["rows"].to_dicts() == [{"id": 1, "amount": 4}, {"id": 2, "amount": 40}]
    assert len(after["changes"]) == 2
    assert [row["failing"] for row in after["expectations"]] == [1]
    assert [row["category"] for row in after["dead"]] == ["type_coercion_failure"]


def test_words_of_the_command_and_odd_names(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    odd = """it's "{title}" \\ {arguments}"""
    folder.write(f"{odd}/pipeline.yaml", PIPELINE)
    folder.write(f"{odd}/orders.csv", "id,amount\n1,4\n2,40\n")
    place, target = tmp_path / odd / "pipeline.yaml", tmp_path / "notes" / "own.py"
    code, _, err = command("notebook", str(place), "--var", "pipeline.least=5", "--state", str(tmp_path / "state"), "-o", str(target))
    assert code == 0, err
    after = executed(target, pressed=True)
    assert after["rows"].to_dicts() == [{"id": 2, "amount": 40}]
    assert str(tmp_path) not in target.read_text(encoding="utf-8")


def test_a_file_that_exists_stays(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("pipeline.notebook.py", "mine")
    code, _, err = command("notebook", str(tmp_path / "pipeline.yaml"))
    assert (code, folder.text("pipeline.notebook.py")) == (4, "mine")
    assert "--force replaces it" in err
    assert command("notebook", str(tmp_path / "pipeline.yaml"), "--force")[0] == 0
    assert folder.text("pipeline.notebook.py").startswith("# A notebook")


@pytest.mark.parametrize("text", ["pipeline: { name: x }\nnodes: []\n", "nonsense"])
def test_a_pipeline_with_problems_gets_no_notebook(text: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", text)
    assert command("notebook", str(tmp_path / "pipeline.yaml"))[0] == 1
    assert not (tmp_path / "pipeline.notebook.py").exists()
