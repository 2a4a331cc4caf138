"""Charts over epochs: bars by their share, lines through their values, axes with epochs and dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from errata.pages.charts import BOTTOM, TICKS, TOP, bars, steps

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def moments(count, apart):
    return {epoch: START + apart * epoch for epoch in range(1, count + 1)}


def test_bars_have_the_height_of_their_share():
    chart = bars("rows", {1: {"added": 4}, 2: {"removed": 1, "corrected": 2}}, moments(2, timedelta(days=1)), 100 + TOP + BOTTOM)
    assert [(one.style, one.height) for one in chart.bars] == [("added", 100), ("removed", 25), ("corrected", 50)]
    assert chart.bars[2].y + chart.bars[2].height == pytest.approx(chart.bars[1].y)
    assert "epoch 2: corrected 2" in chart.bars[2].title


def test_nothing_to_draw_is_no_chart():
    assert bars("rows", {}, {}) is None
    assert steps("total", {}, {}) is None
    assert steps("total", {1: float("nan")}, {}) is None
    assert steps("total", {1: 10**400}, {}) is None


def test_a_line_goes_through_its_values():
    chart = steps("total", {1: 0, 2: Decimal(10), 3: 5.0}, moments(3, timedelta(days=1)), 100 + TOP + BOTTOM)
    assert [dot.y for dot in chart.dots] == [100 + TOP, TOP, 50 + TOP]
    assert [float(number) for number in re.findall(r"V([\d.]+)", chart.line)] == [TOP, 50 + TOP]
    assert [tick.label for tick in chart.up] == ["0", "5", "10"]


def test_the_axis_names_epochs_and_dates():
    chart = bars("rows", {epoch: {"added": 1} for epoch in range(1, 41)}, moments(40, timedelta(hours=8)))
    assert len(chart.across) <= TICKS + 1
    assert chart.across[0].label == "epoch 1"
    assert chart.across[0].below == "2026-03-01"
    assert [one.below for one in chart.across if one.below] == list(dict.fromkeys(one.below for one in chart.across if one.below))


def test_epochs_of_one_day_show_the_time():
    chart = bars("rows", {epoch: {"added": 1} for epoch in range(1, 4)}, moments(3, timedelta(minutes=5)))
    assert [one.below for one in chart.across] == ["2026-03-01", "12:10", "12:15"]


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, 0])
def test_extreme_values_stay_on_the_chart(value):
    chart = steps("total", {1: value, 2: -value}, moments(2, timedelta(days=1)))
    assert all(TOP - 1 <= dot.y <= chart.floor + 1 for dot in chart.dots)
