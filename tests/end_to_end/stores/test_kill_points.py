"""Examples whose state is in a bucket, killed ahead of and behind durable steps of a later run: the next run ends as if nothing had happened."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import obstore
import pytest

from storage import durable
from storage.durable import Moment
from tests.support.killing import COMMIT, tree
from tests.support.object_stores import TestBucket
from tests.support.pipelines import Folder

pytestmark = [pytest.mark.servers, pytest.mark.deep]
EXAMPLES = Path(__file__).parents[3] / "examples"
STATE = "state"
EVERY = 3
"""One of this number of moments is tried, ahead of steps and behind them in turn; with 1 the test takes minutes."""


def laid(name: str, bucket: TestBucket, place: Path, toml: str = "") -> Folder:
    """An example with its state in a bucket."""
    shutil.copytree(EXAMPLES / name, place, ignore=shutil.ignore_patterns(".errata", "out"))
    folder = Folder(place)
    folder.write("errata.toml", settings(bucket, STATE) + toml)
    return folder


def settings(bucket: TestBucket, state: str) -> str:
    """The workspace file."""
    return f'[state]\npath = "{bucket.uri}/{state}"\n{bucket.toml}'


def database(folder: Folder, *statements: str) -> list[tuple[object, ...]]:
    """The rows of the last one of some statements in the example's SQLite file."""
    with closing(sqlite3.connect(folder.path / "shop.db")) as connection, connection:
        for statement in statements:
            found = connection.execute(statement).fetchall()
        return found


def with_database(bucket: TestBucket, place: Path) -> Folder:
    folder = laid("databases", bucket, place, '[connections.shop]\nurl = "sqlite:shop.db"\n')
    database(folder, "CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT, amount TEXT)", "INSERT INTO orders VALUES (1, 'north', '10.00'), (2, 'south', '20.50'), (3, 'north', '1.25')")
    return folder


def orders_change(folder: Folder) -> None:
    database(folder, "UPDATE orders SET amount = '30.00' WHERE id = 1", "DELETE FROM orders WHERE id = 2", "INSERT INTO orders VALUES (4, 'west', '7.75')")


def match_comes(folder: Folder) -> None:
    folder.write("match_scores.csv", folder.text("match_scores.csv") + folder.text("later/2.csv"))


def lines_change(folder: Folder) -> None:
    for name in ("later/day-2.csv", "repaired/day-1.csv"):
        folder.write(f"data/{Path(name).name}", folder.text(name))


def files(folder: Folder) -> dict[str, object]:
    """The content of the outputs; of dead letters all but their ids and times."""
    made: dict[str, object] = {}
    for file in (one for pattern in ("out/*.csv", "leaders.csv", "changes-*.jsonl") for one in folder.path.glob(pattern)):
        name = str(file.relative_to(folder.path))
        made[name] = [list(row.values())[2:] for row in folder.rows(name)] if file.name == "rejected.csv" else file.read_text()
    return made | ({"report": sorted(database(folder, "SELECT * FROM report"))} if (folder.path / "shop.db").exists() else {})


class Case(NamedTuple):
    """An example, and what comes between its runs."""

    lay: Callable[[TestBucket, Path], Folder]
    change: Callable[[Folder], None]


CASES = {
    "SQL output": Case(with_database, orders_change),
    "windows": Case(lambda bucket, place: laid("leaderboard", bucket, place), match_comes),
    "rollback": Case(lambda bucket, place: laid("rollback", bucket, place), lines_change),
}


class Killed(NamedTuple):
    """A folder and a state as they were at one side of a step."""

    moment: str
    folder: Folder
    committed: bool


def killed_at(folder: Folder, bucket: TestBucket, place: Path) -> list[Killed]:
    """Let a run go to its end, and copy the folder, and the objects of the state, at each moment at which they are not what they were at the one before."""
    found: list[Killed] = []
    steps: list[str] = []
    last: object = None

    def probe(moment: Moment) -> None:
        nonlocal last
        steps.extend([moment.name] if moment.side == "after" else [])
        objects = {one["path"]: one["e_tag"] for page in obstore.list(bucket.store, prefix=STATE) for one in page}
        now = (tree(folder.path), objects)
        if now != last:
            name = f"at-{len(found):03}"
            for key in objects:
                obstore.copy(bucket.store, key, f"{name}/{key.removeprefix(f'{STATE}/')}")
            copy = Folder(shutil.copytree(folder.path, place / name))
            copy.write("errata.toml", folder.text("errata.toml").replace(f"{bucket.uri}/{STATE}", f"{bucket.uri}/{name}"))
            found.append(Killed(f"{moment.side} {moment.name}", copy, COMMIT in steps))
        last = now

    with durable.probing(probe):
        folder.run()
    assert {one.committed for one in found} == {False, True}
    return found


@pytest.mark.parametrize("case", CASES)
def test_an_example_with_its_state_in_a_bucket_may_be_killed(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay, change = CASES[case]
    bucket = TestBucket.new()
    folder = lay(bucket, tmp_path / "whole")
    folder.run()
    before = files(folder)
    change(folder)
    points = killed_at(folder, bucket, tmp_path / "killed")
    wanted = files(folder)
    assert wanted != before
    monkeypatch.setattr("storage.state.lock.LEASE_SECONDS", 0.0)  # the copied claims name this process, which renews them no more
    for point in points[::EVERY]:
        point.folder.run()
        assert files(point.folder) == wanted, point
        assert point.folder.load().head_epoch() == 2, point
    for point in points[:: 4 * EVERY]:
        assert point.folder.violations() == [], point
