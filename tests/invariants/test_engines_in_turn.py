"""Both engines share the state: a run goes on from what the other engine left, and ends as one full run would.

There are twenty small pipelines and two hundred larger ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, seed, settings

from operators.combine import range_join
from tests.invariants.dags import Story, stories
from tests.invariants.walking import walk


@pytest.fixture(autouse=True, scope="module")
def buckets() -> Iterator[None]:
    """Range joins are made by buckets also where rows are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_join, "FEW_PAIRS", -1)
        yield


def story_of(number: int, *, most: int, changes: int) -> Story:
    """A random pipeline by its number."""
    asked: list[Story] = []

    @seed(number)
    @settings(max_examples=2, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(stories(most=most, changes=changes))
    def drawn(story: Story) -> None:
        asked.append(story)

    drawn()
    return asked[-1]  # the first example is the simplest pipeline there is, whatever the seed


def in_turn(number: int, *, most: int, changes: int) -> None:
    """One random pipeline whose engine changes at random after each step, and at least once; the full runs are made on Sail."""
    chance, story = random.Random(number), story_of(number, most=most, changes=changes)
    engines = [chance.choice(["sail", "spark"]) for _ in story.steps]
    if len(set(engines)) == 1:
        engines[-1] = "spark" if engines[0] == "sail" else "sail"
    walk(story, turns=engines)


@pytest.mark.spark
@pytest.mark.parametrize("number", range(20))
def test_engines_take_turns_over_a_small_pipeline(number: int) -> None:
    in_turn(number, most=1, changes=1)


@pytest.mark.spark
@pytest.mark.parametrize("number", range(1000, 1200))
def test_engines_take_turns_over_a_large_pipeline(number: int) -> None:
    in_turn(number, most=4, changes=3)
