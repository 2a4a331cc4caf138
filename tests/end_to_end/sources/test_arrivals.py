"""Deliveries that come late or change: what each strategy says of them, and `ledger`, which keeps the record that arrived first."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from operators.source.arrivals import NO_END, Arrival, Split, arrivals_in, in_turn, kept
from operators.source.file_changes import FileRecord, Part
from tests.support.pipelines import Folder

KEY = "primary_key: [id]"
STRATEGIES = {"ledger": f"{{ strategy: ledger, {KEY} }}", "upsert": f"{{ strategy: upsert, {KEY} }}", "changelog": f"{{ strategy: changelog, {KEY}, op: op }}"}
PIPELINE = """\
pipeline: { name: arrivals }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, glob: "data/*.csv", merge: MERGE, schema: [{ name: id, type: int }, { name: v, type: int }OP] } }
  - { type: output, name: out, input: s, config: { name: out, type: csv, path: out.csv } }
"""


class Deliveries(Folder):
    """A project whose source reads deliveries; `warnings` has the warnings of the last run."""

    warnings: list[str]

    def prepare(self, strategy: str) -> None:
        """Write the pipeline."""
        self.write("pipeline.yaml", PIPELINE.replace("MERGE", STRATEGIES[strategy]).replace("OP", ", { name: op, type: string }" if strategy == "changelog" else ""))
        (self.path / "data").mkdir()

    def step(self, files: Mapping[str, str], **options: object) -> str:
        """Write files, run, give the output's rows."""
        for name, text in files.items():
            header = "id,v,op" if "+A" in text or "-R" in text else "id,v"
            self.write(f"data/{name}.csv", f"{header}\n{text}")
        self.warnings = []
        self.options["listener"] = lambda event: self.warnings.append(event.action) if event.kind == "warning" else None
        self.run(**options)
        return self.text("out.csv").removeprefix("id,v\n")


@pytest.fixture
def folder(tmp_path: Path) -> Deliveries:
    return Deliveries(tmp_path)


def test_a_full_refresh_of_a_ledger_takes_the_records_that_arrived_first(folder: Deliveries) -> None:
    """The later name was read first; each refresh, a growth of an old file and an edit of the source leave the order of arrival."""
    folder.prepare("ledger")
    assert folder.step({"b": "1,20\n"}) == "1,20\n"
    assert folder.step({"a": "1,10\n2,5\n"}) == "1,20\n2,5\n"
    [warning] = folder.warnings
    assert warning == (
        "source 's': data/a.csv stands before files that were read already: a record of known keys passed over, "
        "where a run without this state would take them (--full-refresh would not)"
    )
    assert folder.step({}, full_refresh=True) == "1,20\n2,5\n"
    assert not folder.warnings
    assert folder.step({"c": "3,30\n"}) == "1,20\n2,5\n3,30\n"
    assert folder.step({"a": "1,10\n2,5\n3,15\n4,1\n", "d": "4,40\n"}) == "1,20\n2,5\n3,30\n4,1\n"
    for _ in range(2):
        assert folder.step({}, full_refresh=True) == "1,20\n2,5\n3,30\n4,1\n"
    folder.write("pipeline.yaml", folder.text("pipeline.yaml").replace("{ name: v, type: int }", "{ name: v, type: string }"))
    assert folder.step({}) == "1,20\n2,5\n3,30\n4,1\n"
    assert folder.violations() == []


def test_a_late_file_that_shares_no_key_is_not_warned_of(folder: Deliveries) -> None:
    folder.prepare("ledger")
    folder.step({"b": "1,20\n2,2\n"})
    folder.step({"a": "3,10\n2,2\n"})
    assert not folder.warnings


def histories(seed: int) -> Iterator[dict[str, str]]:
    """Runs of new and grown files under random names with few keys."""
    chosen = random.Random(seed)
    texts: dict[str, str] = {}
    for _ in range(5):
        for name in chosen.sample("abcdef", 2):
            texts[name] = texts.get(name, "") + "".join(f"{chosen.randint(1, 6)},{chosen.randint(1, 99)}\n" for _ in range(chosen.randint(1, 3)))
        yield dict(texts)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_refresh_follows_files_that_grew_in_turns(seed: int, folder: Deliveries) -> None:
    """The output has the first record of each key in the order of arrival, as plain Python finds it; a refresh gives the same bytes, also the second one."""
    folder.prepare("ledger")
    first: dict[int, int] = {}
    read: dict[str, str] = {}
    for texts in histories(seed):
        for name in sorted(texts):
            for line in texts[name].removeprefix(read.get(name, "")).splitlines():
                first.setdefault(*map(int, line.split(",")))
        read = texts
        expected = "".join(f"{key},{first[key]}\n" for key in sorted(first))
        assert folder.step(texts) == expected
    for _ in range(2):
        assert folder.step({}, full_refresh=True) == expected


@pytest.mark.parametrize(("strategy", "second", "stands", "says"), [
    ("ledger", "1,99\n3,7\n", "1,10\n2,5\n3,7\n", "it takes the records of new keys; all others stay as they were first read"),
    ("upsert", "1,99\n3,7\n", "1,99\n2,5\n3,7\n", "it counts as a new delivery: its records replace those of their keys, and keys that it has no more keep their rows"),
    ("changelog", "2,5,-R\n3,7,+A\n", "1,10\n3,7\n", "it counts as a new delivery: each of its operations is applied to what stands now"),
])  # fmt: skip
def test_a_delivery_that_changes_is_told_of(strategy: str, second: str, stands: str, says: str, folder: Deliveries) -> None:
    folder.prepare(strategy)
    mark = ",+A" if strategy == "changelog" else ""
    folder.step({"a": f"1,10{mark}\n2,5{mark}\n"})
    assert folder.step({"a": second}) == stands
    assert folder.warnings == [f"source 's': data/a.csv was read before and has changed: under 'merge: {strategy}' {says}"]
    folder.step({})
    assert not folder.warnings


def test_a_late_delivery_that_cannot_be_put_in_its_place_is_told_of(folder: Deliveries) -> None:
    """While all deliveries are there, a late one is read in its place and gives no warning."""
    folder.prepare("upsert")
    folder.step({"b": "1,20\n", "d": "2,2\n"})
    assert folder.step({"a": "1,10\n3,3\n"}) == "1,20\n2,2\n3,3\n"
    assert not folder.warnings
    folder.remove("data/b.csv")
    assert folder.step({"c": "2,1\n"}) == "1,20\n2,1\n3,3\n"
    assert folder.warnings == ["source 's': data/c.csv stands before files that were read already, and not all of these can be read again: it counts as the latest"]


def test_arrivals_are_those_of_the_runs_that_read_something() -> None:
    def file(path: str, rows: int, arrived: int = 1) -> dict[str, object]:
        return {"path": path, "rows": rows, "arrived": arrived, "size": 10 * rows}

    sources = [{"files": [file("b", 2)]}, {"files": [file("a", 1, 2), file("b", 2)]}, {"files": [file("a", 3, 2), file("b", 5)]}]
    assert arrivals_in(sources) == {"a": Arrival(((2, 1), (3, 3)), 30), "b": Arrival(((1, 2), (3, 5)), 50)}
    assert arrivals_in([*sources, {"files": [file("a", 3, 4)]}])["a"] == Arrival(((4, 3),), 30)  # it was overwritten
    records = [FileRecord("a", 30, 0, "", (1,), rows=4), FileRecord("b", 50, 0, "", (2,), rows=5)]
    assert kept(arrivals_in(sources), records) == {"a": [[2, 1], [3, 3], [4, 4]], "b": [[1, 2], [3, 5]]}
    again = arrivals_in([{"files": [file("a", 4), file("b", 5)], "arrivals": kept(arrivals_in(sources), records)}, {"files": [file("a", 6), file("b", 5)]}])
    assert again == {"a": Arrival(((2, 1), (3, 3), (4, 4), (5, 6)), 60), "b": Arrival(((1, 2), (3, 5)), 50)}


def test_pieces_of_one_file_that_follow_each_other_are_one() -> None:
    def parts(*names: str) -> Sequence[Part]:
        return [Part(FileRecord(name, 10, 0, "", (at,)), order=at) for at, name in enumerate(names)]

    alone, splits = in_turn(parts("a"), {"a": Arrival(((1, 1), (2, 5), (9, 7)), 10)})
    assert ([one.order for one in alone], splits) == ([0], [])
    both, splits = in_turn(parts("a", "b", "new"), {"a": Arrival(((2, 1), (4, 3)), 10), "b": Arrival(((3, 9),), 10)})
    assert [one.order for one in both] == [0, 1, 3]
    assert splits == [Split(0, 0, 0, 1), Split(0, 2, 1, NO_END)]
