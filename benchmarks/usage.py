"""Processor time and memory of a process and its descendants, as Linux counts them."""

from __future__ import annotations

import os
import resource
import threading
import time
from pathlib import Path
from typing import Final

PAGE: Final = os.sysconf("SC_PAGE_SIZE")
TICKS: Final = os.sysconf("SC_CLK_TCK")
TIMES: Final = slice(11, 15)
"""The fields of `/proc/<pid>/stat` behind the command's name with the ticks in user and system mode: of the process, and of its children that ended."""
BETWEEN_SAMPLES: Final = 0.05


def processor_seconds() -> float:
    """Processor seconds so far of this process, of its children that ended, and of its descendants that are alive (a JVM is one)."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    alive = sum(_ticks(pid) for pid in family(os.getpid())[1:]) / TICKS
    return time.process_time() + ended.ru_utime + ended.ru_stime + alive


def seconds_of(pid: int) -> float:
    """Processor seconds so far of another process and its descendants, ended ones too."""
    return sum(map(_ticks, family(pid))) / TICKS


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


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[TIMES]))


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
