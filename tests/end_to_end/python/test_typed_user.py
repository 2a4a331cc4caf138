"""A user's typed script over Errata: it runs, and type checkers know what Errata gives."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "examples" / "python" / "revenue.py"
WRONG = """\
import errata

pipeline = errata.load("p.yaml")
pipeline.run(engine="duck")
errata.run(5)
pipeline.run()["totals"].to_panda()
count: str = pipeline.run().epoch
reveal_type(pipeline.run(inputs={"a": []})["totals"].to_polars())
"""


def checked(tool: list[str], script: Path, folder: Path) -> tuple[int, str]:
    """Exit code and output of a type checker on a copy of a script in a folder of its own."""
    copy = folder / script.name
    if script != copy:
        shutil.copyfile(script, copy)
    environment = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*tool, str(copy)], cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False)
    return done.returncode, done.stdout + done.stderr


MYPY = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", str(ROOT / ".mypy_cache" / "user"), "--follow-imports=silent"]


def test_the_script_gives_totals_and_changes(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("revenue", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    orders = pl.DataFrame({"id": [1, 2], "region": ["north", "south"], "amount": [40.0, 25.0]})
    totals, changes = module.revenue(tmp_path, orders)
    assert (totals.rows(), changes) == ([("north", 40.0), ("south", 25.0)], 2)
    totals, changes = module.revenue(tmp_path, orders.with_columns(amount=pl.Series([40.0, -2.0])))
    assert (totals.rows(), changes) == ([("north", 40.0), ("south", -2.0)], 2)
    assert module.problems({"pipeline": {"name": "x"}, "nodes": [{"type": "sauce", "name": "a"}]}) == ["7: unknown node type 'sauce'"]


@pytest.mark.deep
def test_mypy_knows_the_interface(tmp_path: Path) -> None:
    assert checked(MYPY, SCRIPT, tmp_path) == (0, "Success: no issues found in 1 source file\n")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    code, output = checked(MYPY, tmp_path / "wrong.py", tmp_path)
    assert code == 1
    assert [line.split(":")[1] for line in output.splitlines() if "error:" in line] == ["4", "5", "6", "7"]
    assert 'Revealed type is "polars.dataframe.frame.DataFrame"' in output


@pytest.mark.parametrize("package", ["errata", "cxl", "changelog", "storage", "operators"])
def test_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()
