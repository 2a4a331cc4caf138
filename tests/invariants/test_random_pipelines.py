"""I1 over random pipelines of all node types: any change script ends as one full run over the last input would.

There are 300 small pipelines, and large ones: 4 of them, or with `--hypothesis-profile search` as many as ERRATA_TEST_EXAMPLES (5,000) says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, seed, settings

from operators.combine import range_join
from tests.invariants.dags import Story, stories
from tests.invariants.walking import walk

LARGE, SHARES, SHARE = 4, 50, 6
"""Large pipelines; shares of the small pipelines, pipelines in each share."""

asked = settings.default.max_examples
searching = settings.get_current_profile_name() == "search"


@pytest.fixture(autouse=True, scope="module")
def buckets() -> Iterator[None]:
    """Range joins are made by buckets also where rows are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_join, "FEW_PAIRS", -1)
        yield


@settings(max_examples=asked if searching else LARGE, derandomize=not searching, deadline=None, suppress_health_check=list(HealthCheck))
@given(stories())
def test_every_step_ends_as_one_full_run(story: Story) -> None:
    walk(story)


@pytest.mark.parametrize("share", range(SHARES))
def test_every_step_of_a_small_pipeline_ends_as_one_full_run(share: int) -> None:
    """Sources, one node of any type, outputs. The first example of each share is the simplest pipeline there is, which only the first share takes."""
    number = count()

    @seed(share)
    @settings(max_examples=SHARE + 1, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(stories(most=1, changes=1))
    def each(story: Story) -> None:
        if next(number) or not share:
            walk(story)

    each()
