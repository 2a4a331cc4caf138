"""The drawing of a DAG: every box is there, none covers another, and no line runs through a box that it does not belong to."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.pages.drawing import HEIGHT, Box, drawings
from errata.pages.rendering import macro
from tests.support.examples import examples


def box(number, inputs, name=None):
    return Box(name or f"node_{number}", "transform", f"transform, {number * 1000:,} rows", tuple(f"node_{one}" for one in sorted(inputs)), (("add", "+12"),))


@st.composite
def dags(draw):
    count = draw(st.integers(1, 14))
    return [box(at, draw(st.sets(st.integers(0, at - 1), max_size=3)) if at else set()) for at in range(count)]


def points(path):
    """the corners of a path and of its curves."""
    numbers = [float(one) for one in re.findall(r"-?\d+\.\d", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def crosses(start, end, placed, slack=2.0):
    """Whether a line of one direction runs through a box."""
    (x1, y1), (x2, y2) = start, end
    left, right, top, bottom = placed.x + slack, placed.x + placed.width - slack, placed.y + slack, placed.y + HEIGHT - slack
    return (max(min(x1, x2), left) < min(max(x1, x2), right) and max(min(y1, y2), top) < min(max(y1, y2), bottom)) or (
        (x1 == x2 and left < x1 < right and max(min(y1, y2), top) < min(max(y1, y2), bottom)) or (y1 == y2 and top < y1 < bottom and max(min(x1, x2), left) < min(max(x1, x2), right))
    )


@pytest.mark.property
@given(dags())
@examples(12)
def test_lines_go_around_boxes(boxes):
    for drawing in drawings(boxes):
        assert [placed.box for placed in drawing.boxes] == boxes
        edges = [(name, one.name) for one in boxes for name in one.inputs]
        assert len(drawing.edges) == len(edges)
        for one, other in combinations(drawing.boxes, 2):
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x or one.y + HEIGHT <= other.y or other.y + HEIGHT <= one.y
            assert apart, (one, other)
        for path, ends in zip(drawing.edges, edges, strict=True):
            for start, end in pairwise(points(path)):
                assert [placed.name for placed in drawing.boxes if placed.box.name not in ends and crosses(start, end, placed)] == []
        assert all(placed.x >= 0 and placed.x + placed.width <= drawing.width and placed.y >= 0 and placed.y + HEIGHT <= drawing.height for placed in drawing.boxes)


def test_a_pipeline_without_nodes_has_no_drawing():
    assert drawings([]) == ()


def test_the_same_pipeline_has_the_same_drawing():
    boxes = [box(0, ()), box(1, {0}), box(2, {0, 1})]
    assert drawings(boxes) == drawings(boxes)


def test_names_are_text_and_fit_their_boxes():
    [wide, narrow] = drawings([box(0, (), "<b>" + "long" * 100)])
    svg = macro("dag", wide, "wide", 0)
    assert "<b>" not in svg
    assert "&lt;b&gt;long" in svg
    assert wide.boxes[0].name.endswith("…")
    assert narrow.width < 200


def test_a_node_comes_after_what_it_reads():
    [across, down] = drawings([box(0, ()), box(1, {0}), box(2, {0, 1})])
    assert across.boxes[0].x < across.boxes[1].x < across.boxes[2].x
    assert down.boxes[0].y < down.boxes[1].y < down.boxes[2].y
