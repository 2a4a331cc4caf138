"""A run that was stopped past its claim and goes on: nothing of it becomes part of an epoch that another run commits.

Run A is stopped at a durable step, as a machine that sleeps would be. Run B gets in, reads other input and works. Then A goes on with the write
that it was about to begin. The claim is a lease, as on object stores, or the lock of a local folder whose file somebody removed.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from errata.core.failures import Busy
from storage import durable
from storage.durable import Moment
from storage.state.location import State
from tests.support.audited import BRIEF, LINES, lines, project
from tests.support.leases import BucketInMemory
from tests.support.pipelines import Folder

A_READS, B_READS = 1, 2
"""Which line is corrected, and to what."""


@pytest.fixture(params=["lease", "lock"])
def letting_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Folder], None]:
    """A function that lets another run in beside one that holds the claim."""
    if request.param == "lock":
        return lambda folder: (folder.path / ".errata/audited/claim").unlink()
    buckets: dict[str, BucketInMemory] = {}
    monkeypatch.setattr("storage.state.lock.is_local", lambda uri: False)
    monkeypatch.setattr(State, "claim_object", lambda state: (buckets.setdefault(state.root, BucketInMemory.new()), "claim"))
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 0.0)
    return lambda folder: None


def reads(folder: Folder, line: int) -> None:
    changed = lines(0)
    changed[line] = {**changed[line], "qty": 40 + line}
    folder.write_csv("lines.csv", LINES, changed)


def sums(line: int) -> dict[str, int]:
    """The totals of the input, added up here."""
    changed = lines(0)
    changed[line] = {**changed[line], "qty": 40 + line}
    found: dict[str, int] = {}
    for row in changed:
        found[str(row["sku"])] = found.get(str(row["sku"]), 0) + int(str(row["qty"]))
    return found


def check(folder: Folder, line: int) -> None:
    assert {row["sku"]: int(row["cost"]) for row in folder.rows("costs.csv")} == sums(line)


@pytest.fixture
def before(letting_in: Callable[[Folder], None], tmp_path: Path) -> Folder:
    """One epoch, and the input of A."""
    folder = project(tmp_path / "before", pipeline=BRIEF)
    folder.run()
    reads(folder, A_READS)
    return folder


def copy_of(folder: Folder, place: Path) -> Folder:
    shutil.copytree(folder.path, place)
    return replace(folder, path=place)


def steps_of(folder: Folder) -> list[str]:
    seen: list[str] = []
    with durable.probing(lambda moment: seen.append(moment.name) if moment.side == "before" else None):
        folder.run()
    return seen


def ended(folder: Folder) -> str:
    try:
        return f"exit {folder.run().exit_code}"
    except Busy:
        return "exit 6"


def test_a_stopped_run_goes_on_after_another_one(letting_in: Callable[[Folder], None], before: Folder, tmp_path: Path) -> None:
    names = steps_of(copy_of(before, tmp_path / "steps"))
    for at, name in enumerate(names[1:-1], 1):
        folder, taken, other = copy_of(before, tmp_path / str(at)), list[str](), list[str]()

        def probe(moment: Moment, at: int = at, folder: Folder = folder, taken: list[str] = taken, other: list[str] = other) -> None:
            if moment.side == "before":
                taken.append(moment.name)
            if moment.side == "before" and len(taken) == at + 1:
                letting_in(folder)
                reads(folder, B_READS)
                other.append(ended(folder))

        with durable.probing(probe):
            end = ended(folder)
        assert other == ["exit 0"], name
        assert end == "exit 6" or names.index("anchor") <= at, (name, end)
        assert folder.run().exit_code == 0
        check(folder, B_READS)
        assert at % 3 or folder.violations() == [], name
        assert folder.load().head_epoch() == 2 + ("append:ledger" in names[:at]), name


def test_a_stopped_run_goes_on_while_another_one_works(letting_in: Callable[[Folder], None], before: Folder, tmp_path: Path) -> None:
    names = steps_of(copy_of(before, tmp_path / "steps"))
    for at, name in list(enumerate(names[1:-1], 1))[::2]:
        folder = copy_of(before, tmp_path / str(at))
        a, b = _both(folder, at, 2 + at % 6, letting_in)
        assert "exit 6" in (a, b) or "append:ledger" in names[:at], (name, a, b)
        if b == "exit 0":
            check(folder, B_READS)
        assert folder.run().exit_code == 0
        check(folder, B_READS)
        assert folder.violations() == [], name


def _both(folder: Folder, at: int, then: int, letting_in: Callable[[Folder], None]) -> tuple[str, str]:
    """How A, which waits at a step, and B ended; A goes on as B is at a step of its own, and B when A is over."""
    taken: dict[str, int] = {}
    stopped, goes_on, over = threading.Event(), threading.Event(), threading.Event()
    outcome: dict[str, str] = {}

    def probe(moment: Moment) -> None:
        who = threading.current_thread().name
        if moment.side == "after" or who not in ("A", "B"):
            return
        taken[who] = taken.get(who, -1) + 1
        if (who, taken[who]) == ("A", at):
            stopped.set()
            goes_on.wait()
        if (who, taken[who]) == ("B", then):
            goes_on.set()
            over.wait()

    def run() -> None:
        who = threading.current_thread().name
        try:
            outcome[who] = ended(folder)
        finally:
            (over if who == "A" else goes_on).set()
            stopped.set()

    threads = [threading.Thread(target=run, name=name) for name in ("A", "B")]
    with durable.probing(probe):
        threads[0].start()
        stopped.wait()
        letting_in(folder)
        reads(folder, B_READS)
        threads[1].start()
        for thread in threads:
            thread.join()
    return outcome["A"], outcome["B"]
