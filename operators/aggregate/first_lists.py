"""How lists of best values are filled from all rows of a group: how many values of a group, and only values that are good enough.

To sort all values of a group takes longer than to add them up. So a sample of the rows says from which value on some values of each group are left.
Only these are sorted. A group without one of them keeps its best value alone. Any such list is sound: it has every value of its group down to its last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from changelog.columns import column
from changelog.lazy_imports import F, pa, pc, pl
from changelog.rows import Limits, Rows
from operators.aggregate.best_values import BestValues
from operators.aggregate.terms import ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLED: Final = 1 << 16
"""The rows of a sample."""
ROWS_AN_ENTRY: Final = 20
"""A first run keeps at most one entry of a list of best values for this number of rows. More entries would take up to a quarter of its time."""
_SPARE: Final = 4
"""How many times more values than a list holds are left of a group, on average."""
_FEWEST: Final = 100
"""Values of a sample that are at least as good as a bound."""
_GROUP: Final = "__group"


@dataclass(frozen=True, slots=True)
class ListSize:
    """How the list of one call is filled.

    Attributes:
        call: The call.
        size: The most values of a list.
        bound: Only values as good as this one are sorted, as the number that `BestValues.number` gives; None: all are.
    """

    call: BestValues
    size: int
    bound: float | None = None

    def aggregates(self) -> list[Column]:
        """Aggregates of a group's rows."""
        return self.call.aggregates(self.size, self.bound)

    def listed(self) -> list[Column]:
        """The lists, from the aggregates."""
        return self.call.listed(self.size, self.bound)


def first_sizes(frame: DataFrame, groups: Sequence[str], bests: Sequence[BestValues], rows: int, size: int) -> list[ListSize]:
    """Return how the lists of a first run are filled. Reads a sample of the rows.

    Args:
        frame: All rows.
        groups: The columns of the groups.
        bests: The calls.
        rows: About how many rows there are.
        size: The most values of a list.
    """
    short = [one for one in bests if one.is_wide or one.by_key]
    if size == 1 or len(short) == len(bests):
        return [ListSize(one, 1) for one in bests]
    sample = _sample(frame, groups, bests)
    number = _groups(sample, rows)
    if number * size * len(bests) * ROWS_AN_ENTRY > rows:
        return [ListSize(one, 1) for one in bests]
    share = _SPARE * size * number / max(rows, 1)
    return [ListSize(one, 1) if one in short else ListSize(one, size, _bound(sample, one, share)) for one in bests]


def refilled_size(states: Rows, size: int, limits: Limits) -> int:
    """Return how many values the lists that ran out get. Where their groups have many rows it is one: to sort these takes twice as long as to read them.

    Args:
        states: The states of the groups.
        size: The most values of a list.
        limits: Up to how many rows are sorted.
    """
    rows = pc.sum(states.as_table().column(ROWS)).as_py() or 0 if states.are_here else None
    return size if rows is not None and rows <= limits.held_rows else 1


def _sample(frame: DataFrame, groups: Sequence[str], bests: Sequence[BestValues]) -> pa.Table:
    """Some rows: a number for their group, and the numbers of the values that have one."""
    group = F.xxhash64(*map(column, groups)) if groups else F.lit(0).cast("bigint")
    numbers = [number.alias(one.name) for one in bests if (number := one.number()) is not None]
    return frame.select(group.alias(_GROUP), *numbers).limit(SAMPLED).toArrow()


def _groups(sample: pa.Table, rows: int) -> float:
    """About how many groups all rows have. Groups that still come in the second half of a sample go on coming."""
    keys = pl.Series(sample.column(_GROUP))
    found, earlier = keys.n_unique(), keys.head(len(keys) // 2).n_unique()
    if len(keys) < SAMPLED or not earlier:
        return found
    growth = min(math.log2(found / earlier), 1.0)
    return found * math.pow(max(rows / len(keys), 1.0), growth)


def _bound(sample: pa.Table, one: BestValues, share: float) -> float | None:
    """The value that about a share of the rows reach; None where a bound would spare nothing."""
    if one.name not in sample.column_names or sample.num_rows < SAMPLED:
        return None
    place = max(math.ceil(share * sample.num_rows), _FEWEST)
    values = sample.column(one.name)
    known = values.filter(pc.is_finite(values)) if pa.types.is_floating(values.type) else values.drop_null()
    if 2 * place > sample.num_rows or place >= len(known):
        return None
    found: Any = pl.Series(known).sort(descending=one.descending)[place]
    return found + 0.0 if isinstance(found, float) else found
