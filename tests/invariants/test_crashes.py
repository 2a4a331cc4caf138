"""I7 (DESIGN section 9): a run that dies at any durable step, before or after it, costs nothing: the next run ends as if nothing had happened."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from storage import durable
from storage.durable import Moment
from tests.invariants.sales import KEYED, KEYLESS, pipeline
from tests.invariants.test_incremental import FIXED, Files, check_outputs, lay_out
from tests.pipelines import Folder


class Died(BaseException):
    """The process ends here; nothing catches it."""


def steps_of(folder: Folder) -> list[tuple[int, str]]:
    """Run once and note the durable steps."""
    seen: list[tuple[int, str]] = []
    with durable.probing(lambda moment: seen.append((moment.number, moment.name)) if moment.side == "before" else None):
        folder.run()
    return seen


def dies_at(number: int, side: str) -> object:
    def probe(moment: Moment) -> None:
        if (moment.number, moment.side) == (number, side):
            raise Died

    return probe


def prepared(place: str, merge: str) -> Folder:
    folder = Folder(Path(place))
    folder.write("pipeline.yaml", pipeline(merge))
    return folder


def copy_of(folder: Folder, place: Path) -> Folder:
    """The same project elsewhere: its state and files, with their times of change."""
    shutil.copytree(folder.path, place)
    return replace(folder, path=place)


def history(folder: Folder, versions: list[Files]) -> None:
    for files in versions:
        lay_out(folder, files)
        folder.run()


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("merge", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_every_step_of_a_second_run_may_be_the_last(merge: str, side: str, tmp_path: Path) -> None:
    keyed = merge == KEYED
    before = prepared(str(tmp_path / "before"), merge)
    history(before, FIXED[:1])
    lay_out(before, FIXED[1])
    steps = steps_of(copy_of(before, tmp_path / "steps"))
    assert any(name == "append:ledger" for _, name in steps)
    for number, name in steps:
        folder = copy_of(before, tmp_path / str(number))
        with pytest.raises(Died), durable.probing(dies_at(number, side)):
            folder.run()
        folder.run()
        check_outputs(folder, FIXED[1], keyed=keyed)
        assert folder.violations() == [], (name, side)
        assert folder.load().head_epoch() == 2, (name, side)
        if number % 4 == 0:
            history(folder, FIXED[2:])
            check_outputs(folder, FIXED[2], keyed=keyed)


def test_every_step_of_a_first_run_may_be_the_last() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = prepared(place, KEYLESS)
        lay_out(folder, FIXED[0])
        steps = steps_of(folder)
    for number, name in steps:
        with tempfile.TemporaryDirectory() as place:
            folder = prepared(place, KEYLESS)
            lay_out(folder, FIXED[0])
            with pytest.raises(Died), durable.probing(dies_at(number, "after")):
                folder.run()
            folder.run()
            check_outputs(folder, FIXED[0], keyed=False)
            assert folder.load().head_epoch() == 1, name
