"""`errata erase`: nothing of a record is left anywhere, the rest is as if it had never been there, and it may die at any durable step."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from errata.core.options import EngineOptions, Erasure, RunOptions
from tests.support.erasing import KEYED, PLACED, holding, lay, project
from tests.support.pipelines import Folder, command

SAIL = RunOptions(engine=EngineOptions("sail"))
ANNA = Erasure("request 17", "the office", {"customer": "annabella"})
WORDS = ["annabella", "ANNABELLA", "anna@example.org", "Trumsdorf", "Hinterdorf", "77123.45", "kept-secret", "b-anna"]
FIRST = [
    (1, "annabella", "b-anna", "north", 77123.45, "1"), (2, "benjamin", "b2", "north", 71.5, "2"), (3, "annabella", "b3", "south", 12.25, "3"),
    (4, "caroline", "b4", "south", 140.0, "4"), (5, "dorothea", "b3", "south", 9.75, "5"), (8, "annabella", "b8", "east", 3.5, "8"),
]  # fmt: skip
THEN = [
    (1, "annabella", "b-anna", "north", 150.5, "1"), (2, "benjamin", "b2", "north", 171.5, "2"), (3, "annabella", "b3", "south", 12.25, "kept-secret"),
    (5, "dorothea", "b3", "south", 9.75, "5"), (6, "emil", "b6", "west", 55.0, "6"), (7, "annabella", "b7", "west", 18.125, "7"),
]  # fmt: skip
PEOPLE = [("annabella", "anna@example.org", "Trumsdorf"), ("benjamin", "ben@example.org", "Kleinstadt"), ("dorothea", "doro@example.org", "Kleinstadt")]
MOVED = [("annabella", "anna@example.org", "Hinterdorf"), ("benjamin", "ben@example.org", "Kleinstadt"), ("emil", "emil@example.org", "Kleinstadt")]


@pytest.fixture(scope="module", params=[KEYED, pytest.param(PLACED, marks=pytest.mark.deep)], ids=["keyed", "placed"])
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = project(tmp_path_factory.mktemp("history"), request.param)
    lay(folder, FIRST, PEOPLE)
    folder.run()
    lay(folder, THEN, MOVED)
    folder.run()
    assert len({word.split(": ")[1] for word in holding(folder.path, WORDS)}) == len(WORDS)
    return folder


def without(rows: list[tuple[object, ...]], at: int) -> list[tuple[object, ...]]:
    return [row for row in rows if row[at] != "annabella"]


@pytest.fixture
def folder(history: Folder, tmp_path: Path) -> Folder:
    shutil.copytree(history.path, tmp_path / "copy")
    copy = Folder(tmp_path / "copy")
    lay(copy, without(THEN, 1), without(MOVED, 0))
    return copy


def test_no_byte_of_a_record_is_left_and_the_rest_is_as_without_it(folder: Folder, tmp_path: Path) -> None:
    done = folder.load().erase(ANNA, SAIL)
    assert holding(folder.path, WORDS) == []
    assert done.proof is not None
    assert done.proof["found"] == 0
    assert command("verify", str(folder.path / "pipeline.yaml"), "--recompute")[0] == 0
    other = project(tmp_path / "other", KEYED if "primary_key: [id]" in folder.text("pipeline.yaml") else PLACED)
    lay(other, without(THEN, 1), without(MOVED, 0))
    other.run()
    for name in folder.load().node_names:
        if name != "history_out":
            assert list(folder.load().show(name)) == list(other.load().show(name)), name
    for name in ("large.json", "small.csv", "running.csv", "rejected.csv"):
        assert (folder.path / "out" / name).exists() == (other.path / "out" / name).exists()
