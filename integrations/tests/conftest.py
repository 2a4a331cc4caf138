"""A project whose pipeline the tests run by the installed command line, and words that change its input."""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

KILLED = """
import os, pathlib, signal, subprocess, sys
mark, *words = sys.argv[1:]
if pathlib.Path(mark).exists():
    os.execvp(words[0], words)
pathlib.Path(mark).touch()
with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
    for line in run.stdout:
        print(line, end="", flush=True)
        if '"source_read"' in line:
            run.kill()
            os.kill(os.getpid(), signal.SIGKILL)
"""
"""A command line that is killed, with the run that it starts, as soon as a source was read; the next time it is Errata's."""


class Project:
    """A folder with a pipeline; without an input until `give`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipeline = folder / "pipeline.yaml"
        self.pipeline.write_text(PIPELINE)

    def give(self, name: str) -> None:
        """Write an input: clean, rejected or failing."""
        (self.folder / "orders.csv").write_text(INPUTS[name])

    @property
    def killed_once(self) -> tuple[str, ...]:
        """The command line whose first run is killed in the middle."""
        return (sys.executable, "-c", KILLED, str(self.folder / "killed"), *COMMAND)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let runs with `--wait` wait, as for another run of the pipeline."""
        (claim,) = self.folder.glob(".errata/*/claim")
        with claim.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def break_pipeline(self) -> None:
        """Let the pipeline have an error."""
        self.pipeline.write_text(PIPELINE.replace("input: totals", "input: total"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project in the working folder."""
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)
