"""Changed rows as lines for people."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from errata.rendering.changes import changed_values, in_short

NAN = float("nan")
VALUES = st.none() | st.integers(-3, 3) | st.sampled_from([Decimal("1.0"), Decimal("1.00"), NAN, "a", "b"])
ROWS = st.fixed_dictionaries({"id": VALUES, "x": VALUES, "y": VALUES})


def test_the_key_comes_first_then_what_changed_then_the_rest() -> None:
    before = {"id": 7, "region": "eu", "amount": Decimal("42.25"), "note": None}
    after = {**before, "amount": Decimal("45.25"), "note": "typo"}
    assert in_short({"node": "orders", "op": "+C", "before": before, "after": after}) == {
        "node": "orders", "op": "+C", "row": "id: 7, amount: 42.25 → 45.25, note: null → typo, region: eu",
    }  # fmt: skip


def test_a_row_that_comes_or_goes_has_its_values_in_order() -> None:
    row = {"id": 7, "amount": Decimal("1.50")}
    assert in_short({"op": "+A", "before": None, "after": row}) == {"op": "+A", "row": "id: 7, amount: 1.50"}
    assert in_short({"op": "-R", "before": row, "after": None}) == {"op": "-R", "row": "id: 7, amount: 1.50"}


def test_nan_stays_nan() -> None:
    before = {"id": 1, "x": float("nan"), "y": Decimal("NaN"), "z": 1}
    after = {"id": 1, "x": float("nan"), "y": Decimal("NaN"), "z": float("nan")}
    assert changed_values({"before": before, "after": after}) == {"z": "1 → NaN"}


@given(ROWS, ROWS)
def test_each_column_is_named_once_and_changes_have_an_arrow(before: dict[str, object], after: dict[str, object]) -> None:
    cells = in_short({"op": "+C", "before": before, "after": after})["row"].split(", ")
    assert sorted(one.partition(": ")[0] for one in cells) == sorted(after)
    differing = {name for name in after if (str(before[name]), before[name]) != (str(after[name]), after[name])}
    assert {one.partition(": ")[0] for one in cells if "→" in one} == differing == set(changed_values({"before": before, "after": after}))
