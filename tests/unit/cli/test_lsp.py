"""`errata lsp` names the extra where its library is missing, and the server needs no engine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

HEAVY = {"pyspark.sql", "pysail", "polars", "deltalake", "pandas"}


def test_the_error_names_the_extra(call, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == "pygls" else real(name, *more))
    code, _, errors = call("lsp")
    assert code == 1
    assert "errata lsp needs the library pygls, which is not installed" in errors
    assert "pip install 'errata[lsp]'" in errors


def test_help(call) -> None:
    code, output, _ = call("lsp --help")
    assert code == 0
    assert "Serve an editor" in output


def test_a_check_loads_no_engine() -> None:
    program = (
        "import sys\nfrom errata.editor import server\nfrom errata.editor.analysis import analyse\nfrom errata.project.texts import Texts\n"
        "from tests.support.editing import SHOP\nassert not analyse('/x/a.yaml', Texts({'/x/a.yaml': SHOP}), SHOP).diagnostics\nprint(*sorted(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert answer.returncode == 0, answer.stderr
    assert HEAVY & set(answer.stdout.split()) == set()
