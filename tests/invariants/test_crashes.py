"""I7: a run that dies at any durable step, before or after it, costs nothing: the next run ends as if nothing had happened."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from storage import durable
from tests.invariants.sales import KEYED, KEYLESS, pipeline
from tests.invariants.test_incremental import FIXED, Files, check_outputs, lay_out
from tests.support.killing import Died, Killed, dies_at, kill_points, leftovers
from tests.support.pipelines import Folder


def steps_of(folder: Folder) -> list[tuple[int, str]]:
    """Run once and note the durable steps."""
    seen: list[tuple[int, str]] = []
    with durable.probing(lambda moment: seen.append((moment.number, moment.name)) if moment.side == "before" else None):
        folder.run()
    return seen


def prepared(place: str, merge: str, *, extremes: bool = False) -> Folder:
    folder = Folder(Path(place))
    folder.write("pipeline.yaml", pipeline(merge, extremes=extremes))
    return folder


def check(folder: Folder, files: Files, *, keyed: bool) -> None:
    check_outputs(folder, files, keyed=keyed, names=("rows", "totals", *(["bounds"] if "name: bounds" in folder.text("pipeline.yaml") else [])))


def copy_of(folder: Folder, place: Path) -> Folder:
    """The same project elsewhere: its state and files, with their times of change."""
    shutil.copytree(folder.path, place)
    return replace(folder, path=place)


def history(folder: Folder, versions: list[Files]) -> None:
    for files in versions:
        lay_out(folder, files)
        folder.run()


@pytest.mark.parametrize("merge", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_a_second_run_may_be_killed_at_every_step(merge: str, tmp_path: Path) -> None:
    keyed = merge == KEYED
    folder = prepared(str(tmp_path / "whole"), merge, extremes=keyed)
    history(folder, FIXED[:1])
    lay_out(folder, FIXED[1])
    for number, point in enumerate(kill_points(folder, Folder.run, tmp_path / "killed")):
        goes_on(point, FIXED[1], keyed=keyed, epoch=2)
        if number % 4 == 0:
            history(point.folder, FIXED[2:])
            check(point.folder, FIXED[2], keyed=keyed)


def test_a_first_run_may_be_killed_at_every_step(tmp_path: Path) -> None:
    folder = prepared(str(tmp_path / "whole"), KEYLESS)
    lay_out(folder, FIXED[0])
    for point in kill_points(folder, Folder.run, tmp_path / "killed"):
        goes_on(point, FIXED[0], keyed=False, epoch=1)


def goes_on(point: Killed, files: Files, *, keyed: bool, epoch: int) -> None:
    """The next run ends as if nothing had happened, and nothing is left of the one that was killed."""
    point.folder.run()
    check(point.folder, files, keyed=keyed)
    assert point.folder.violations() == [], point
    assert point.folder.load().head_epoch() == epoch, point
    assert leftovers(point.folder) == [], point


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_run_may_fail_at_every_step(side: str, tmp_path: Path) -> None:
    """Handlers run on: what they take back is not there for the next run to repair."""
    before = prepared(str(tmp_path / "before"), KEYED)
    history(before, FIXED[:1])
    lay_out(before, FIXED[1])
    for number, name in steps_of(copy_of(before, tmp_path / "steps")):
        folder = copy_of(before, tmp_path / str(number))
        with pytest.raises(Died), durable.probing(dies_at(number, side)):
            folder.run()
        folder.run()
        check(folder, FIXED[1], keyed=True)
        assert folder.violations() == [], (name, side)
        assert folder.load().head_epoch() == 2, (name, side)
