"""What one measured process is asked to do, and how it says how long each part took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COLD = "first run, cold"
WARM = "first run"
# A warm part is measured as often, and the median counts.
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Job:
    """A program's input (`data`, one CSV file), an empty folder for all it writes, and the engine it runs on.

    `report` is called with the name of each part and its seconds; a part that is measured several times is reported as often.
    """

    data: Path
    work: Path
    engine: str
    report: Callable[[str, float], None]

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Measure the body of a `with` and report it as `name`."""
        started = time.perf_counter()
        yield
        self.report(name, time.perf_counter() - started)

    def folder(self) -> Path:
        """A new folder below `work`: `1`, `2` and so on."""
        made = self.work / str(len(list(self.work.iterdir())) + 1)
        made.mkdir()
        return made

    def first_runs(self) -> Iterator[tuple[str, Path]]:
        """The first runs of a process, each as the name of its part and a new folder: one cold, then the warm ones."""
        for name in (COLD, *[WARM] * REPEATS):
            yield name, self.folder()
