"""Arrays and maps are measured while they are made, and what exact columns read is counted."""

from contextlib import nullcontext

import pytest

from cxl.compiler import compile_program
from cxl.spark.lowering import MOST_COPIED
from cxl.typed.rewrite import weight
from cxl.types.types import INT, decimal_of
from cxl.values.failure import CxlFailure
from cxl.values.nested import MAX_NESTED, Meter


def test_an_array_that_stands_in_several_places_is_measured_once():
    value = [1]
    for _ in range(MAX_NESTED - 2):
        value = [value, value]
    with pytest.raises(CxlFailure, match="large"):
        Meter().part(value, 1)


def test_parts_fail_before_they_fill_the_memory():
    meter, part = Meter(), ["x" * 100_000] * 10
    meter.around(1)
    for _ in range(10):
        meter.part(part, 1)
    with pytest.raises(CxlFailure, match="large"):
        meter.part(part, 1)


@pytest.mark.parametrize(("levels", "level", "is_deep"), [(63, 1, False), (64, 1, True), (1, 63, False), (1, 64, True), (900, 1, True)])
def test_levels_around_and_inside_count_together(levels, level, is_deep):
    value = 1
    for _ in range(levels):
        value = [value]
    with pytest.raises(CxlFailure, match="deep") if is_deep else nullcontext():
        Meter().part(value, level)


@pytest.mark.parametrize(("type_", "is_shared"), [(INT, False), (decimal_of(2), True)])
def test_chains_of_decimals_are_not_copied_into_each_other(type_, is_shared):
    program = compile_program("let b = a + a\nlet c = b + b\nlet d = c + c\nemit e = d + d", {"a": type_})
    weights = {}
    for statement in program.statements[:-1]:
        weights[statement.slot] = weight(statement.value, weights)
    assert (max(weights.values()) > MOST_COPIED) == is_shared
