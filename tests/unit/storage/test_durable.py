"""Durable steps: a run stopped at any step leaves committed epochs complete, and nothing of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from storage import durable
from storage.delta.changelog_table import ChangelogTable
from storage.state.entry import Entry
from storage.state.ledger import Ledger
from storage.state.location import State

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
NODES = ("orders", "totals")


class Stop(Exception):
    """Stops a run."""


def rows(epoch: int) -> pa.Table:
    return pa.table(
        {"_op": pa.array([0, 0], pa.int8()), "_key": [f"{epoch}{side}".encode() for side in "ab"], "amount": [epoch, 2 * epoch]}
    )


def run(state: State) -> None:
    """Run in miniature: repair, append to every table, commit, export."""
    with durable.numbered_run():
        state.prepare()
        ledger = Ledger(state.ledger)
        head = ledger.head()
        known = head.tables if head else {}
        epoch = head.epoch + 1 if head else 1
        tables = {f"changelog/{node}": ChangelogTable(state.changelog(node)) for node in NODES}
        for path, table in tables.items():
            table.restore(known.get(path))
        versions = {path: table.append(rows(epoch), epoch).version for path, table in tables.items()}
        ledger.append(Entry(epoch, f"run {epoch}", "", MOMENT, MOMENT, 0, tables=versions), head)
        target = Path(state.root, "out.csv")
        staged = durable.staging_path(target)
        staged.write_text(f"{epoch}\n")
        durable.publish(staged, target)


def stands(state: State) -> tuple[int, dict[str, list[dict[str, object]]]]:
    """Return the epoch of the head, and all rows of each table."""
    head = Ledger(state.ledger).head()
    read = {node: ChangelogTable(state.changelog(node)).read_arrow().sort_by("_key").to_pylist() for node in NODES}
    return (head.epoch if head else 0), read


def expected(epochs: int) -> dict[str, list[dict[str, object]]]:
    one = [
        {"_epoch": epoch, "_op": 0, "_key": f"{epoch}{side}".encode(), "amount": factor * epoch}
        for epoch in range(1, epochs + 1)
        for side, factor in (("a", 1), ("b", 2))
    ]
    return dict.fromkeys(NODES, one)


def moments(state: State) -> list[durable.Moment]:
    seen: list[durable.Moment] = []
    with durable.probing(seen.append):
        run(state)
    return seen


def test_steps_are_numbered_and_reported_on_both_sides(tmp_path: Path) -> None:
    seen = moments(State(str(tmp_path / "p")))
    assert [moment.number for moment in seen] == [number for number in range(1, len(seen) // 2 + 1) for _ in range(2)]
    assert [moment.name for moment in seen if moment.side == "before"] == [
        "prepare:state",
        "create:changelog/orders",
        "append:changelog/orders",
        "create:changelog/totals",
        "append:changelog/totals",
        "create:ledger",
        "append:ledger",
        "rename:out.csv",
    ]


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_run_that_is_stopped_at_any_step_is_as_if_it_had_not_begun_or_had_ended(tmp_path: Path, before: int) -> None:
    count = len(moments_after(State(str(tmp_path / "count")), before))
    for stop_at in range(count):
        state = State(str(tmp_path / f"{stop_at}"))
        for _ in range(before):
            run(state)
        left = iter(range(count))

        def probe(moment: durable.Moment, left: object = left, stop_at: int = stop_at) -> None:
            if next(left) == stop_at:  # type: ignore[call-overload]
                raise Stop

        with durable.probing(probe), pytest.raises(Stop):
            run(state)
        done = Ledger(state.ledger).head()
        run(state)
        assert stands(state) == ((done.epoch if done else 0) + 1, expected((done.epoch if done else 0) + 1))
        assert Ledger(state.ledger).verify_chain() == []


def moments_after(state: State, before: int) -> list[durable.Moment]:
    for _ in range(before):
        run(state)
    return moments(state)


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
from test_durable import run
from storage import durable
from storage.state.location import State
number, side = sys.argv[2].split(":")
def probe(moment):
    if (str(moment.number), moment.side) == (number, side):
        os.kill(os.getpid(), signal.SIGKILL)
with durable.probing(probe):
    run(State(sys.argv[1]))
"""


@pytest.mark.parametrize("moment", ["3:before", "3:after", "5:after", "7:before", "7:after", "8:before"])
def test_a_killed_run(tmp_path: Path, moment: str) -> None:
    state = State(str(tmp_path / "p"))
    here = Path(__file__)
    command = [sys.executable, "-c", KILLED, state.root, moment, str(here.parent), str(here.parents[3])]
    assert subprocess.run(command, check=False, env=dict(os.environ)).returncode == -signal.SIGKILL
    epochs = 1 if moment in ("7:after", "8:before") else 0
    run(state)
    assert stands(state) == (epochs + 1, expected(epochs + 1))
    assert Path(state.root, "out.csv").read_text() == f"{epochs + 1}\n"
