"""Run one program in a process of its own: the seconds of its parts, and the most memory that it and its children held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import polars as pl

PAGE = os.sysconf("SC_PAGE_SIZE")
BETWEEN_SAMPLES = 0.1
LONGEST = 1800


@dataclass(frozen=True, slots=True)
class Measured:
    """The median seconds of each part of a program, its peak of resident memory in MB (children included), and its totals."""

    seconds: dict[str, float]
    peak_mb: float
    totals: pl.DataFrame | None


class ProgramFailedError(Exception):
    """A measured program ended with an error; the message carries the end of what it wrote."""


def measure(program: str, engine: str, data: Path, scratch: Path) -> Measured:
    """Run `program` on `engine` in an empty folder below `scratch`, which is removed afterwards. Raises ProgramFailedError."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder, tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", "benchmarks.worker", program, engine, str(data), folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        memory = Memory(process.pid)
        memory.start()
        try:
            output, _ = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        memory.stop()
        if process.returncode:
            errors.seek(0)
            raise ProgramFailedError(f"{program} on {engine}:\n{errors.read().decode()[-3000:]}")
        return Measured(parts(output), memory.peak / 1e6, totals(Path(folder) / "1"))


def parts(output: str) -> dict[str, float]:
    """The worker's lines as the median of each part."""
    found = defaultdict(list)
    for line in output.splitlines():
        if line.startswith('{"part"'):
            row = json.loads(line)
            found[row["part"]].append(row["seconds"])
    return {part: median(seconds) for part, seconds in found.items()}


def totals(folder: Path) -> pl.DataFrame | None:
    """What a program's first run wrote, by account; None where it writes no totals."""
    files = [*folder.glob("totals.csv"), *folder.glob("totals/*.csv")]
    return pl.concat([pl.read_csv(file) for file in files]).sort("account") if files else None


class Memory(threading.Thread):
    """Samples the resident memory of a process and its descendants, and keeps the highest sum in `peak`, in bytes."""

    def __init__(self, pid: int) -> None:
        """Watch the process `pid` from `start()` to `stop()`."""
        super().__init__(daemon=True)
        self.pid, self.peak, self.ended = pid, 0, threading.Event()

    def run(self) -> None:
        """Sample until stopped."""
        while not self.ended.wait(BETWEEN_SAMPLES):
            self.peak = max(self.peak, sum(resident(pid) for pid in family(self.pid)))

    def stop(self) -> None:
        """End the thread."""
        self.ended.set()
        self.join()


def family(pid: int) -> list[int]:
    """A process and all its descendants that are alive."""
    try:
        children = Path(f"/proc/{pid}/task").glob("*/children")
        found = [int(child) for file in children for child in file.read_text().split()]
    except OSError:
        return []
    return [pid, *(member for child in found for member in family(child))]


def resident(pid: int) -> int:
    """Resident bytes of a process; 0 when it has just ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0
