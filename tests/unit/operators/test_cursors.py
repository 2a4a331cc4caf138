"""The cursor of a source that asks a database."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from operators.source.answers import Cursor, less


def test_rows_before_the_floor_are_left_out_where_a_database_answers_more() -> None:
    times = pa.array([datetime(2026, 3, 1, 8), datetime(2026, 3, 1, 9), None, datetime(2026, 3, 1, 10)], pa.timestamp("us"))
    batch = pa.record_batch({"at": times, "id": [1, 2, 3, 4]})
    for more, asked in ((True, [2, 3, 4]), (False, [1, 2, 3, 4])):
        found, _ = Cursor("at", None, by_text=False, asks_more=more).asked(batch, times, datetime(2026, 3, 1, 9))
        assert found.column("id").to_pylist() == asked


@pytest.mark.parametrize(("value", "overlap", "floor"), [("2.5", 0.5, "2.0"), ("2.5", 0.55, "2.0"), ("2.5", 0.45, "2.1"), ("-2.5", 0.45, "-2.9")])
def test_a_floor_of_decimals_has_the_places_of_its_column(value: str, overlap: float, floor: str) -> None:
    assert str(less(Decimal(value), overlap)) == floor
