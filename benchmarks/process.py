"""Run one program in a process of its own: the figures of its parts, and the most memory that it and its children held."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.usage import Memory


@dataclass(frozen=True, slots=True)
class Measured:
    """The median figure of each part of a program (seconds, or MB of memory), and the peak of its resident memory in MB, children included."""

    parts: Mapping[str, float]
    peak_mb: float


class ProgramFailedError(Exception):
    """A measured program ended with an error, or did not end in time; the message carries the end of what it wrote."""


def measure(program: str, engine: str, size: float, data: Path, *, scratch: Path, longest: float) -> Measured:
    """Run a program in an empty folder, which is removed afterwards.

    Args:
        program: Its name in `benchmarks.all.PROGRAMS`.
        engine: The engine it runs on.
        size: The number of rows, or the scale, of its input.
        data: Its input.
        scratch: Where the folder is made.
        longest: The program is ended after this number of seconds.

    Raises:
        ProgramFailedError: It ended with an error, or was ended.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder, tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", "benchmarks.worker", program, engine, repr(size), str(data), folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        memory = Memory(process.pid)
        memory.start()
        try:
            output, _ = process.communicate(timeout=longest)
        except subprocess.TimeoutExpired:
            raise ProgramFailedError(f"{program} on {engine} took longer than {longest:.0f} s") from None
        finally:
            memory.stop()
            end(process)
        if process.returncode:
            errors.seek(0)
            raise ProgramFailedError(f"{program} on {engine}:\n{errors.read().decode()[-3000:]}")
        return Measured(medians(output), memory.peak / 1e6)


def end(process: subprocess.Popen[str]) -> None:
    """End a process that still runs, and all it started in its session (a JVM is one)."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def medians(output: str) -> Mapping[str, float]:
    """The worker's lines as the median of each part."""
    found = defaultdict(list)
    for line in output.splitlines():
        if line.startswith('{"part"'):
            row = json.loads(line)
            found[row["part"]].append(row["figure"])
    return {part: median(figures) for part, figures in found.items()}
