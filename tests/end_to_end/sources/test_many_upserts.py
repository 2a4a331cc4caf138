"""Deliveries of `merge: upsert` that the tasks of an engine read and write, from few changed rows to all: op rows, outputs and tables are what plain Python makes of the files."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import example, given
from hypothesis import strategies as st

from operators.source import reading
from tests.support.examples import examples
from tests.support.pipelines import Folder, limited

PIPELINE = """\
pipeline: { name: many }
changelog: { persist: boundaries }
nodes:
  - type: source
    name: sales
    config:
      name: sales
      type: csv
      glob: in/*.csv
      merge: { strategy: upsert, primary_key: [id]DELETED }
      schema: [{ name: id, type: int }, { name: x, type: float }, { name: note, type: string }]
  - { type: output, name: whole, input: sales, config: { name: whole, type: delta, path: out/whole, options: { mode: upsert } } }
  - { type: output, name: renamed, input: sales, config: { name: renamed, type: csv, path: out/renamed.csv, mapping: { x: y } } }
  - { type: output, name: narrow, input: sales, config: { name: narrow, type: delta, path: out/narrow, exclude: [note], options: { mode: upsert } } }
  - type: output
    name: some
    input: sales
    config: { name: some, type: csv, path: out/some.csv, sort_order: [{ field: x, null_order: drop }] }
error_handling: { strategy: continue }
"""
HEADER = ("id", "x", "note")
GONE = "gone"
Record = tuple[int, str, str]
Image = tuple[str, ...]

records = st.tuples(st.integers(0, 9), st.sampled_from(["", "0", "-0.0", "nan", "1.5"]), st.sampled_from(["", "a", "é", GONE]))
histories = st.lists(st.lists(records, min_size=1, max_size=12), min_size=2, max_size=4)
ALL: list[Record] = [(number, "1.5", "a") for number in range(10)]


def image(record: Record) -> Image:
    """A record as its columns print."""
    return (str(record[0]), str(float(record[1])) if record[1] else "", record[2])


def after(history: list[list[Record]], *, deletes: bool) -> dict[int, Image]:
    """The live rows: of each key the last record, where that does not remove it."""
    last = {record[0]: record for delivery in history for record in delivery}
    return {key: image(record) for key, record in last.items() if not (deletes and record[2] == GONE)}


def difference(old: dict[int, Any], new: dict[int, Any]) -> Counter[Any]:
    """The op rows from some rows to others."""
    found: Counter[Any] = Counter()
    for key in old.keys() | new.keys():
        was, now = old.get(key), new.get(key)
        if was != now:
            both = was is not None and now is not None
            found.update([("-C" if both else "-R", was)] if was is not None else [])
            found.update([("+C" if both else "+A", now)] if now is not None else [])
    return found


def shown(node: str, live: dict[int, Image]) -> dict[int, Image]:
    """The rows of a node."""
    columns = {"narrow": slice(0, 2)}.get(node, slice(None))
    return {key: row[columns] for key, row in live.items() if node != "some" or row[1]}


def cell(value: Any) -> str:
    return "" if value is None else str(value)


def content(folder: Folder, name: str) -> Counter[Image]:
    found = pa.table(DeltaTable(str(folder.path / "out" / name)).scan()).to_pylist()
    return Counter(tuple(map(cell, row.values())) for row in found)


def check_history(history: list[list[Record]], engine: str, *, deletes: bool = False) -> None:
    """Run the deliveries one after the other, and compare each epoch with plain Python, and in the end the files with one full run."""
    text = PIPELINE.replace("DELETED", f", deleted: 'note == \"{GONE}\"'" if deletes else "")
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as other:
        folder, full = Folder(Path(place), engine), Folder(Path(other), engine)
        for one in (folder, full):
            one.write("pipeline.yaml", text)
        before: dict[int, Image] = {}
        for number, delivery in enumerate(history):
            for one in (folder, full):
                one.write_csv(f"in/{number}.csv", HEADER, [dict(zip(HEADER, record, strict=True)) for record in delivery])
            epoch = folder.run().epoch
            now = after(history[: number + 1], deletes=deletes)
            for node in ("sales", "whole", "renamed", "narrow", "some"):
                made = Counter((row["op"], tuple(map(cell, row["data"].values()))) for row in folder.log(node) if row["epoch"] == epoch) if now != before else Counter()
                assert made == difference(shown(node, before), shown(node, now)), (node, number)
            assert content(folder, "whole") == Counter(now.values())
            assert content(folder, "narrow") == Counter(shown("narrow", now).values())
            assert folder.violations() == []
            before = now
        full.run()
        for name in ("renamed", "some"):
            assert folder.text(f"out/{name}.csv") == full.text(f"out/{name}.csv")


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every file is a large one, and no delta a small one."""
    monkeypatch.setattr(reading, "SMALL_BYTES", 0)
    with limited(small_rows=0, driver_rows=0):
        yield


@pytest.mark.parametrize("deletes", [False, True], ids=["all stay", "some go"])
@given(history=histories)
@example(history=[ALL, ALL])
@example(history=[ALL, [(1, "nan", "a")], [(1, "nan", "é"), (11, "", "")]])
@example(history=[ALL, [(number, "-0.0", "a") for number in range(12)], [(number, "0", "a") for number in range(6)]])
@example(history=[ALL, [(1, "0", "a"), (1, "1.5", "a")], [(2, "0", GONE), (3, "0", "a"), (3, "0", GONE)]])
@examples(24, 4)
def test_each_epoch_has_the_op_rows_of_the_keys_that_changed(history: list[list[Record]], deletes: bool) -> None:
    check_history(history, "sail", deletes=deletes)


@pytest.mark.spark
def test_the_same_on_spark() -> None:
    check_history([ALL, [(1, "nan", "a"), (2, "1.5", "a"), (3, "1.5", "é"), (12, "", "")], [(number, "-0.0", GONE) for number in range(3)]], "spark", deletes=True)
