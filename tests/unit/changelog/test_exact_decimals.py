"""Sums and means of decimals have every digit, in any order and after retractions; Python's integers are the reference."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from changelog.columns import column
from changelog.exact.decimals import DecimalMean, DecimalRatio, DecimalSum, limb_columns, limbs_of, product_columns, products_of, rounded
from changelog.exact.rounding import with_totals
from tests.support.changelog_histories import on_engines
from tests.support.examples import examples

WIDE = Context(prec=200)
SCALE = 2
units = st.none() | st.sampled_from([0, 1, -1, 10**38 - 1, 1 - 10**38, 2**32, -(2**64), 2**96]) | st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-500, 500)
rows = st.lists(st.tuples(units, units, st.sampled_from([1, -1])), min_size=1, max_size=40)


def decimals(numbers: list[int | None]) -> pa.Array:
    """Unscaled values as a slice of a longer column."""
    values = [None, *(None if number is None else Decimal(number).scaleb(-SCALE, WIDE) for number in numbers)]
    return pa.array(values, pa.decimal128(38, SCALE)).slice(1)


def at(units: int | None, scale: int) -> Decimal | None:
    """The decimal of an unscaled value, None where it has more than 38 digits."""
    return None if units is None or abs(units) >= 10**38 else Decimal(units).scaleb(-scale, WIDE)


def nearest(exact: Fraction) -> int:
    return round(exact)  # half to even


def expected(case: list[tuple[int | None, int | None, int]]) -> tuple[Decimal | None, Decimal | None, Decimal | None]:
    """Total, mean and weighted mean of rows with weights, by whole numbers."""
    values = [(value, sign) for value, _, sign in case if value is not None]
    pairs = [(value, share, sign) for value, share, sign in case if value is not None and share is not None]
    total, count = sum(value * sign for value, sign in values), sum(sign for _, sign in values)
    above, below = sum(value * share * sign for value, share, sign in pairs), sum(share * sign for _, share, sign in pairs)
    mean = nearest(Fraction(total * 10 ** (12 - SCALE), count)) if count else None
    weighted = nearest(Fraction(above * 10 ** (12 - SCALE), below)) if below else None
    return at(total, SCALE), at(mean, 12), at(weighted, 12)


TOTAL = DecimalSum("s", SCALE)
PRODUCTS, SHARES = DecimalSum("p", 2 * SCALE, 8), DecimalSum("w", SCALE)
MEAN, RATIO = DecimalMean("m", TOTAL, "n", 12), DecimalRatio("r", PRODUCTS, SHARES, 12)


@examples(300, least=60)
@given(case=rows)
def test_totals_on_the_driver(case: list[tuple[int | None, int | None, int]]) -> None:
    values, shares = decimals([value for value, _, _ in case]), decimals([share for _, share, _ in case])
    weight = np.array([sign for _, _, sign in case])
    known, both = values.is_valid().to_numpy(zero_copy_only=False), values.is_valid().to_numpy(zero_copy_only=False) & shares.is_valid().to_numpy(zero_copy_only=False)
    parts = dict(zip(TOTAL.columns, limbs_of(values), strict=True)) | dict(zip(PRODUCTS.columns, products_of(values, shares), strict=True))
    parts |= dict(zip(SHARES.columns, (limb * both for limb in limbs_of(shares)), strict=True)) | {"n": known.astype("i8")}
    states = {name: np.array([(part * weight).sum()]) for name, part in parts.items()}
    for one in (TOTAL, PRODUCTS, SHARES):
        states |= one.settled(states)
    assert tuple(rounded(one, states.__getitem__).to_pylist()[0] for one in (TOTAL, MEAN, RATIO)) == expected(case)


def test_ints_have_limbs_too() -> None:
    numbers = [0, -1, 2**63 - 1, -(2**63), 5]
    assert [sum(int(limb[place]) << (32 * at) for at, limb in enumerate(limbs_of(pa.array(numbers)))) for place in range(5)] == numbers


@on_engines
@given(case=rows)
def test_totals_on_engines(engine, case):
    table = pa.table({"v": decimals([value for value, _, _ in case]), "s": decimals([share for _, share, _ in case]), "sign": [sign for _, _, sign in case]})
    sign, value, share = F.col("sign"), F.col("v"), F.col("s")
    parts = [*TOTAL.weighted(limb_columns(value), sign), *PRODUCTS.weighted(product_columns(value, share), sign)]
    parts += SHARES.weighted([F.when(value.isNotNull(), limb) for limb in limb_columns(share)], sign)
    added = engine.from_arrow(table).select(*parts, F.when(value.isNotNull(), sign).otherwise(0).alias("n"))
    sums = added.agg(*(F.sum(column(name)).alias(name) for name in added.columns))
    carried = sums.select(*TOTAL.carried(), *PRODUCTS.carried(), *SHARES.carried(), "n", SHARES.is_zero().alias("none"))
    [row] = engine.to_arrow(with_totals(carried, [TOTAL, MEAN, RATIO])).to_pylist()
    assert (row["s_total"], row["m"], row["r"]) == expected(case)
