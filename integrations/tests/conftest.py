"""A project whose pipeline the tests run by the installed command line, and words that change its input."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
COMMAND = tuple(shlex.split(os.environ.get("ERRATA_COMMAND", "errata")))
WORDS = ("--engine", "sail")
PIPELINE = """\
pipeline: { name: sums }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
nodes:
  - type: source
    name: orders
    config: { name: orders, type: csv, path: orders.csv, schema: [{ name: region, type: string }, { name: amount, type: int }] }
  - { type: aggregate, name: totals, input: orders, config: { group_by: [region], cxl: "emit total = sum(amount)" } }
  - { type: output, name: out, input: totals, config: { name: out, type: csv, path: sums.csv } }
"""
INPUTS = {"clean": "region,amount\nnorth,10\nsouth,20\n", "rejected": "region,amount\nnorth,10\nsouth,many\n", "failing": "region,total\nnorth,10\n"}


class Project:
    """A folder with a pipeline; without an input until `give`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipeline = folder / "pipeline.yaml"
        self.pipeline.write_text(PIPELINE)

    def give(self, name: str) -> None:
        """Write an input: clean, rejected or failing."""
        (self.folder / "orders.csv").write_text(INPUTS[name])

    def break_pipeline(self) -> None:
        """Let the pipeline have an error."""
        self.pipeline.write_text(PIPELINE.replace("input: totals", "input: total"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project in the working folder."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)
