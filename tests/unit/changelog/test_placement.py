"""`Rows` and their algebra: the driver and the engine give the same rows, and rows stay where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from changelog.algebra import consolidate, diff, fold, insertions, replacement, retractions
from changelog.rows import Limits, Predicate, Rows, begins, contains, has_value, is_null, is_set, some_set
from tests.support.tables import equals, table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

HISTORY = """
epoch | op | key | cause      | player | score:bigint
1     | +A | 1   | ingest     | Alice  | 100
1     | +A | 2   | ingest     | Bob    | 80
2     | -C | 2   | correction | Bob    | 80
2     | +C | 2   | correction | Carol  | 90
3     | -R | 1   | correction | Alice  | 100
4     | +A | 1   | ingest     | Dan    |
"""
OLD = "key | player | score:bigint\n1 | Alice | 100\n2 | Bob | 80"
NEW = "key | player | score:bigint\n2 | Carol | 80\n3 | Dan |"
CHANGE = """
op | key | cause | player | score:bigint
-R | 1   | why   | Alice  | 100
-C | 2   | why   | Bob    | 80
+C | 2   | why   | Carol  | 80
+A | 3   | why   | Dan    |
"""


@dataclass
class Counting:
    """An engine that counts how often it is asked for rows."""

    engine: Engine
    limits: Limits
    queries: int = 0

    def from_arrow(self, rows: pa.Table) -> DataFrame:
        return self.engine.from_arrow(rows)

    def to_arrow(self, frame: DataFrame, limit: int | None = None) -> pa.Table:
        self.queries += 1
        return self.engine.to_arrow(frame, limit)

    def few(self, frame: DataFrame, limit: int) -> pa.Table | DataFrame:
        self.queries += 1
        return self.engine.up_to(frame, limit)


@pytest.fixture
def counting(engine: Engine) -> Counting:
    return Counting(engine, Limits(small_rows=2, driver_rows=3))


PLACES = ["driver", "engine"]


def rows(counting: Counting, text: str, place: str) -> Rows:
    here = table(text)
    return Rows(counting, here) if place == "driver" else Rows(counting, frame=counting.engine.from_arrow(here))


def same(counting: Counting, found: Rows, text: str) -> None:
    """Assert that rows equal a text table, whatever the order of their columns."""
    names = table(text).column_names
    assert sorted(found.columns) == sorted(names)
    equals(counting.engine, found.select(names).as_frame(), text)


@pytest.mark.parametrize("place", PLACES)
def test_the_algebra_gives_the_same_in_both_places(counting: Counting, place: str) -> None:
    history, old, new = (rows(counting, text, place) for text in (HISTORY, OLD, NEW))
    same(counting, fold(history), "epoch | key | player | score:bigint\n2 | 2 | Carol | 90\n4 | 1 | Dan |")
    same(counting, consolidate(history), "op | key | cause | player | score:bigint\n+A | 1 | ingest | Dan |\n+A | 2 | correction | Carol | 90")
    same(counting, insertions(new, "why"), "op | key | cause | player | score:bigint\n+A | 2 | why | Carol | 80\n+A | 3 | why | Dan |")
    same(counting, retractions(new, "why"), "op | key | cause | player | score:bigint\n-R | 2 | why | Carol | 80\n-R | 3 | why | Dan |")
    same(counting, diff(old, new, "why"), CHANGE)
    same(counting, consolidate(replacement(old, new, "why")), CHANGE)
    assert all(one.are_here == (place == "driver") for one in (fold(history), consolidate(history), insertions(new, ""), diff(old, new, "")))
    assert counting.queries == 0


@pytest.mark.parametrize("old", PLACES)
@pytest.mark.parametrize("new", PLACES)
def test_rows_of_two_places_go_together(counting: Counting, old: str, new: str) -> None:
    before, after = rows(counting, OLD, old), rows(counting, NEW, new)
    same(counting, diff(before, after, "why"), CHANGE)
    together = replacement(before, after, "why")
    same(counting, consolidate(together.on_driver()), CHANGE)
    assert counting.queries == (0 if old == new == "driver" else 1)
    same(counting, before.union(rows(counting, "score:bigint | player | key\n | Dan | 3", new)), f"{OLD}\n3 | Dan |")


@pytest.mark.parametrize("place", PLACES)
def test_steps_on_rows(counting: Counting, place: str) -> None:
    found = rows(counting, OLD, place)
    assert found.at_most == (2 if place == "driver" else None)
    same(counting, found.select(["score", "_key"]), "score:bigint | key\n100 | 1\n80 | 2")
    same(counting, found.without("score", "nothing"), "key | player\n1 | Alice\n2 | Bob")
    same(counting, found.renamed({"player": "a.b"}), "key | a.b | score:bigint\n1 | Alice | 100\n2 | Bob | 80")
    assert found.without("nothing") is found
    for keys in PLACES:
        same(counting, found.semi_join(rows(counting, "key\n2\n3", keys), "_key"), "key | player | score:bigint\n2 | Bob | 80")
    same(counting, found.through(lambda frame: frame.drop("score")), "key | player\n1 | Alice\n2 | Bob")


@pytest.mark.rarely_on_spark
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("predicate", "keys"),
    [
        (is_set("a"), "12"), (is_null("a"), "3"), (begins("a", "x"), "2"), (contains("a", "y"), "12"), (~begins("a", "x"), "13"), (has_value("a", "xy"), "2"), (~has_value("a", "y"), "23"),
        (is_null("a") | begins("a", "y"), "13"), (is_set("a") & is_set("b.c"), "1"), (some_set(["a", "b.c"]), "123"), (~some_set(["b.c"]), "2"),
    ],
)  # fmt: skip
def test_predicates_hold_for_the_same_rows(counting: Counting, place: str, predicate: Predicate, keys: str) -> None:
    found = rows(counting, "key | a | b.c:bigint\n1 | y | 1\n2 | xy |\n3 | | 0", place).where(predicate)
    assert sorted(key.decode() for key in found.as_table().column("_key").to_pylist()) == list(keys)


def test_rows_come_to_the_driver_up_to_a_limit(counting: Counting) -> None:
    found = rows(counting, OLD, "engine")
    assert not found.on_driver(1).are_here
    assert found.on_driver(2).are_here
    assert found.condensed().are_here
    assert not rows(counting, "key\n1\n2\n3", "engine").condensed().are_here
    assert counting.queries == 4


def test_accepted_rows_have_a_plan_of_their_own(counting: Counting) -> None:
    every, good = rows(counting, "key | a\n1 | x\n1! |", "engine"), rows(counting, "key | a\n1 | x", "engine")
    found = Rows(counting, frame=every.frame, good=good.frame)
    same(counting, found.accepted, "key | a\n1 | x")
    same(counting, found.select(["_key"]).accepted, "key\n1")
    same(counting, found.through(lambda frame: frame.drop("a")).accepted, "key\n1")
    same(counting, every.accepted, "key | a\n1 | x\n1! |")
