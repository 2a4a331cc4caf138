"""One measured process: `python -m benchmarks.worker PROGRAM ENGINE SIZE DATA WORK` prints a line of JSON for each part that it measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.all import PROGRAMS
from benchmarks.job import Job


def report(part: str, figure: float) -> None:
    """Write a measured part to standard output at once, so that what was measured survives what comes after it."""
    print(json.dumps({"part": part, "figure": round(figure, 4)}), flush=True)


if __name__ == "__main__":
    program, engine, size, data, work = sys.argv[1:]
    PROGRAMS[program].run(Job(Path(data), float(size), Path(work), engine, report))
