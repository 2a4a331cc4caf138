"""Totals of the layout `FULL`, whose 66 limbs are too many for one expression: by Python's own integers, one group at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from changelog.exact import FloatSum
from changelog.lazy import F
from changelog.schema import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

_LIMBS, _COUNTS = "_limbs", "_counts"


def with_total(states: DataFrame, total: FloatSum, name: str) -> DataFrame:
    """State rows with the exact total, rounded once, as the double column `name` in place of the state columns.

    In: one row a group, with the sums of contributions; they need not be carried. Works for every layout.
    """
    from pyspark.sql.types import DoubleType, StructField, StructType

    limbs, counts = total.limbs, total.columns[len(total.limbs) : -1]
    kept = [field for field in states.schema.fields if field.name not in total.columns]
    packed = states.select(
        *(column(field.name) for field in kept), F.array(*map(column, limbs)).alias(_LIMBS), F.array(*map(column, counts)).alias(_COUNTS)
    )
    return packed.mapInArrow(_rounding(total.layout.exponents[-1], name), StructType([*kept, StructField(name, DoubleType())]))


def _rounding(lowest: int, name: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function over Arrow batches; all that it needs is inside, so that workers need not import this module."""

    def special(nan: int, inf: int, ninf: int) -> float | None:
        if nan > 0 or (inf > 0 and ninf > 0):
            return float("nan")
        return float("inf") if inf > 0 else float("-inf") if ninf > 0 else None

    def nearest(limbs: list[int]) -> float:
        exact = 0
        for limb in limbs:
            exact = (exact << 32) + limb
        try:
            return exact / (1 << -lowest)  # the quotient of two integers is rounded once
        except OverflowError:
            return float("inf" if exact > 0 else "-inf")

    def total(limbs: list[int], counts: list[int]) -> float:
        found = special(*counts)
        return nearest(limbs) if found is None else found

    def rounded(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            pairs = zip(batch.column("_limbs").to_pylist(), batch.column("_counts").to_pylist(), strict=True)
            totals = pa.array([total(limbs, counts) for limbs, counts in pairs], pa.float64())
            others = [column for column in batch.schema.names if column not in ("_limbs", "_counts")]
            yield pa.RecordBatch.from_arrays([*(batch.column(other) for other in others), totals], [*others, name])

    return rounded
