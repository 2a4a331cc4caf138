"""`errata why` names exactly the records that a row comes from: without them the row differs or is gone, without others it stays."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.counterfactuals import BLOCKS, HEADERS, PIPELINE, TOLD_APART, Record, Records, model, of_block, records, told_apart
from tests.support.pipelines import Folder

ROWS = 500


class Answer(NamedTuple):
    """A row, what would be there of its block by the model, and the records that `why` names by source."""

    node: str
    place: tuple[Any, ...]
    row: Record
    named: Records

    @property
    def block(self) -> Records:
        return of_block(NOW, self.place[0])

    def without(self, gone: Records) -> Record | None:
        """The row without some records."""
        return model(less(self.block, gone))[self.node].get(self.place)


NOW = records(2)


def less(everything: Records, gone: Records) -> Records:
    return {source: [one for one in found if one not in gone.get(source, [])] for source, found in everything.items()}


def lay_out(folder: Folder, everything: Records) -> None:
    for source, found in everything.items():
        folder.write_csv(f"{source}.csv", HEADERS[source], found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The pipeline after a run over other records and one over `NOW`."""
    made = Folder(tmp_path_factory.mktemp("blocks"))
    made.write("pipeline.yaml", PIPELINE)
    for everything in (records(1), NOW):
        lay_out(made, everything)
        made.run()
    return made


@pytest.fixture(scope="module")
def answers(folder: Folder) -> list[Answer]:
    """Each row of each node with what `why` says of it: one question about the rows of all blocks that differ by their block alone."""
    project, found = folder.load(), []
    for node, rows in model(NOW).items():
        questions: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
        for place in rows:
            questions[place[1:]].append(place)
        for rest, places in questions.items():
            asked = {name: str(value) for name, value in zip(TOLD_APART[node][1:], rest, strict=True)}
            named = _named(project.why(node, asked))
            found += [Answer(node, place, rows[place], named[place[0]]) for place in places]
    return found


def _named(rows: Iterator[Mapping[str, Any]]) -> dict[int, dict[str, list[Record]]]:
    """The live records by block and source."""
    found: dict[int, dict[str, list[Record]]] = {block: {"lines": [], "prices": []} for block in range(BLOCKS)}
    for row in rows:
        if row["live"]:
            found[row["data"]["block"]][row["source"]].append(dict(row["data"]))
    return found


def test_the_model_says_what_the_pipeline_makes(folder: Folder) -> None:
    project = folder.load()
    assert {node: told_apart(node, project.show(node)) for node in TOLD_APART} == model(NOW)


def test_there_are_enough_rows_and_records_of_both_sources_behind_them(answers: list[Answer]) -> None:
    assert len(answers) >= ROWS
    assert all(one.named["lines"] for one in answers)
    assert all(bool(one.named["prices"]) == (one.node in ("priced", "totals")) for one in answers)


def test_without_all_or_any_of_its_records_a_row_is_another_or_gone(answers: list[Answer]) -> None:
    for one in answers:
        assert one.without(one.named) != one.row, one
        for source, found in one.named.items():
            assert [record for record in found if one.without({source: [record]}) == one.row] == [], one


def test_records_that_are_not_named_do_not_matter(answers: list[Answer]) -> None:
    chance = random.Random(0)
    for one in answers:
        others = less(one.block, one.named)
        assert one.without(others) == one.row, one
        source = chance.choice([source for source, found in others.items() if found])
        assert one.without({source: [chance.choice(others[source])]}) == one.row, one


def test_a_run_without_them_says_so_too(answers: list[Answer], tmp_path: Path) -> None:
    """One row of each block, whatever node it is of, loses its records."""
    chance = random.Random(1)
    chosen = [chance.choice([one for one in answers if one.place[0] == block]) for block in range(BLOCKS)]
    gone: Records = {source: [record for one in chosen for record in one.named[source]] for source in HEADERS}
    rest = Folder(tmp_path)
    rest.write("pipeline.yaml", PIPELINE)
    lay_out(rest, less(NOW, gone))
    rest.run()
    project = rest.load()
    left = {node: told_apart(node, project.show(node)) for node in TOLD_APART}
    assert [one for one in chosen if left[one.node].get(one.place) == one.row] == []
