"""The files that a killed process leaves on disk: the folder at each side of each durable step.

Nothing of the process runs on after a kill, no handler either, so the folder is copied at the moment and the copy goes on without it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from storage import durable
from storage.durable import Moment, Probe
from tests.support.pipelines import Folder

COMMIT = "append:ledger"


class Died(BaseException):
    """The process ends here; what its handlers do later is done elsewhere."""


def dies_at(number: int, side: str) -> Probe:
    """Ends the process at one side of a durable step."""

    def probe(moment: Moment) -> None:
        if (moment.number, moment.side) == (number, side):
            raise Died

    return probe


class Killed(NamedTuple):
    """A folder as it was `before` or `after` a step, and whether the run had committed by then."""

    moment: str
    folder: Folder
    committed: bool


def kill_points(folder: Folder, action: Callable[[Folder], object], place: Path) -> list[Killed]:
    """Let the action run to its end, and copy the folder below `place` at each moment at which it is not what it was at the one before."""
    found: list[Killed] = []
    last: dict[Path, tuple[int, int]] = {}
    steps: list[str] = []

    def probe(moment: Moment) -> None:
        nonlocal last
        steps.extend([moment.name] if moment.side == "after" else [])
        now = tree(folder.path)
        if now != last:
            copy = place / f"{len(found):03}"
            shutil.copytree(folder.path, copy)
            found.append(Killed(f"{moment.side} {moment.name}", Folder(copy, folder.engine, folder.options), COMMIT in steps))
        last = now

    with durable.probing(probe):
        action(folder)
    assert {one.committed for one in found} == {False, True}
    return found


def tree(path: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of change of each file below a folder."""
    return {file.relative_to(path): (file.stat().st_size, file.stat().st_mtime_ns) for file in path.rglob("*") if file.is_file()}


def leftovers(folder: Folder) -> list[Path]:
    """Files that were begun and are not what they were to become."""
    return [file for file in folder.path.rglob(".*.tmp") if ".errata" not in file.parts]
