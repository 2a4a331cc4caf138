"""Each merge strategy against a plain Python model, over random sequences of deliveries."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given

from operators.source import reading
from tests.support import merge_strategies as sources
from tests.support.examples import examples
from tests.support.merge_strategies import STRATEGIES, Folders, Model
from tests.support.pipelines import Folder


def written(folder: Folder, folders: Folders) -> None:
    """Bring the files of a project to what `folders` says; files that are as they were are left alone."""
    for name, files in folders.items():
        present = {file.stem for file in (folder.path / name).glob("*.csv")}
        for file in present - files.keys():
            folder.remove(f"{name}/{file}.csv")
        for file, rows in files.items():
            folder.write_csv(f"{name}/{file}.csv", sources.header(name), rows)


def outputs(folder: Folder) -> dict[str, list[Any]]:
    return {name: folder.rows(f"out/{name}.csv") for name in STRATEGIES}


def rejects(folder: Folder) -> set[tuple[Any, ...]]:
    if not (folder.path / "out/rejected.csv").exists():
        return set()
    found = folder.rows("out/rejected.csv")
    places = [(Path(row["_cxl_dlq_source_file"]), int(row["_cxl_dlq_source_row"]), row["_cxl_dlq_error_category"]) for row in found]
    assert len(places) == len(set(places)), "a record is rejected twice"
    return {(path.parent.name, path.stem, row, category) for path, row, category in places}


def fold(folder: Folder, node: str) -> Counter[tuple[Any, ...]]:
    """The rows of a changelog summed up; each key's running count is 0 or 1, and a correction changes something.

    A record of the keyed snapshot may only have moved to another file.
    """
    total: Counter[tuple[Any, ...]] = Counter()
    live: dict[str, Any] = {}
    taken = None
    for row in folder.log(node):
        image = tuple(row["data"].items())
        if row["op"] in ("-R", "-C"):
            taken = live.pop(row["key"])
            assert taken == image, "a retraction carries other values than the row that it takes back"
            total[image] -= 1
        else:
            assert row["key"] not in live, "a key is live twice"
            assert row["op"] == "+A" or image != taken or node == "keyed", "a correction of nothing"
            live[row["key"]] = image
            total[image] += 1
    return +total


def check_history(history: list[Folders]) -> None:
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as other:
        folder, model = Folder(Path(place)), Model()
        folder.write("pipeline.yaml", sources.pipeline())
        first = None
        for folders in history:
            written(folder, folders)
            folder.run()
            rows, wrong = model.step(folders)
            first = first or outputs(folder)
            assert outputs(folder) == {name: sources.shown(rows[name]) for name in STRATEGIES}
            assert rejects(folder) == wrong
            check_nothing_to_do(folder)
        for name in STRATEGIES:
            assert fold(folder, name) == Counter(tuple(row.items()) for row in live(rows[name]))
        check_full_run(Folder(Path(other)), folder, history[-1])
        check_undone(folder, history, first or {})


def live(rows: list[Any]) -> list[Any]:
    return [{name: row[name] for name in sources.COLUMNS} for row in rows]


def check_nothing_to_do(folder: Folder) -> None:
    """I4: the same files again make no epoch and touch no state."""
    before = folder.state_files()
    assert not folder.run().committed
    assert folder.state_files() == before


def check_full_run(full: Folder, folder: Folder, folders: Folders) -> None:
    """I1, I3: one run over the last folders gives the same bytes. A ledger remembers what was overwritten."""
    full.write("pipeline.yaml", sources.pipeline())
    written(full, folders)
    full.run()
    for name in STRATEGIES.keys() - {"ledger"}:
        assert full.text(f"out/{name}.csv") == folder.text(f"out/{name}.csv")


def check_undone(folder: Folder, history: list[Folders], first: dict[str, Any]) -> None:
    """The first version of a snapshot's files restores its rows."""
    back = {**history[-1], "text": history[0]["text"], "keyed": history[0]["keyed"]}
    written(folder, back)
    folder.run()
    found = outputs(folder)
    assert (found["text"], found["keyed"]) == (first["text"], first["keyed"])


@examples(16, 3)
@given(sources.histories())
def test_every_strategy_follows_its_model(history: list[Folders]):
    check_history(history)


@examples(16, 2)
@given(sources.histories())
def test_large_files_lead_to_the_same(history: list[Folders]):
    before, reading.SMALL_BYTES = reading.SMALL_BYTES, 0
    try:
        check_history(history)
    finally:
        reading.SMALL_BYTES = before
