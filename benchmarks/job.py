"""The job of one measured process, and its report of the time of each part."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.usage import Memory, processor_seconds

COLD: Final = "first run, cold"
WARM: Final = "first run"
REPEATS: Final = 3
"""A warm part is measured as often, and the median counts."""


def peak_of(part: str) -> str:
    """The name under which `Job.command` reports the memory of a part, in MB."""
    return f"{part}: peak memory"


@dataclass(frozen=True, slots=True)
class Job:
    """A program's input, an empty folder for all it writes, and the engine it runs on.

    Args:
        data: A file or a folder, as the benchmark's `write` made it.
        size: The number of rows, or the scale, of the input.
        work: The empty folder.
        engine: `sail` or `spark`, or what a hand-written program uses.
        report: Takes the name of a part and its figure. A part that is measured several times is reported as often.
    """

    data: Path
    size: float
    work: Path
    engine: str
    report: Callable[[str, float], None]

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Measure the processor seconds of the body of a `with`, and report them as `name`."""
        began = processor_seconds()
        yield
        self.report(name, processor_seconds() - began)

    def folder(self) -> Path:
        """A new folder below `work`: `1`, `2` and so on."""
        made = self.work / str(len(list(self.work.iterdir())) + 1)
        made.mkdir()
        return made

    def first_runs(self) -> Iterator[tuple[str, Path]]:
        """The first runs of a process, each as the name of its part and a new folder: one cold, then the warm ones."""
        for name in (COLD, *[WARM] * REPEATS):
            yield name, self.folder()

    def run(self, name: str, pipeline: Path, *options: str, code: int = 0) -> None:
        """`errata run` in this process, measured as `name`. Raises SystemExit where it does not end with `code`."""
        with self.lap(name):
            run(pipeline, self.engine, *options, code=code)

    def command(self, name: str, *arguments: str) -> None:
        """The `errata` command in a process of its own, as a person starts it: its processor seconds, and the most memory that it and its children held."""
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}  # a person has the modules compiled
        with self.lap(name):
            process = subprocess.Popen([sys.executable, "-m", "errata", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
            memory = Memory(process.pid)
            memory.start()
            _, said = process.communicate()
            memory.stop()
        self.report(peak_of(name), memory.peak / 1e6)
        if process.returncode:
            raise SystemExit(f"errata {' '.join(arguments)} ended with {process.returncode}:\n{said[-2000:]}")


def run(pipeline: Path, engine: str, *options: str, code: int = 0) -> None:
    """`errata run` in this process. Raises SystemExit where it does not end with `code`."""
    from errata.cli import main

    found = main(["run", str(pipeline), "--engine", engine, "--quiet", *options])
    if found != code:
        raise SystemExit(f"errata run {pipeline} ended with {found}, not with {code}")
