"""The four operations of a changelog, with the codes, symbols and signs of Open Data Fabric."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from changelog.lazy_imports import F

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column


class Op(IntEnum):
    """An operation. The value is its code in `_op`."""

    APPEND = 0
    RETRACT = 1
    CORRECT_FROM = 2
    CORRECT_TO = 3

    @property
    def symbol(self) -> str:
        """Symbol for people: `+A`, `-R`, `-C` or `+C`."""
        return SYMBOLS[self]

    @property
    def weight(self) -> int:
        """Change in the number of live rows of the key: 1 or -1."""
        return 1 if self in POSITIVE else -1


SYMBOLS: Final[dict[Op, str]] = {Op.APPEND: "+A", Op.RETRACT: "-R", Op.CORRECT_FROM: "-C", Op.CORRECT_TO: "+C"}
BY_SYMBOL: Final[dict[str, Op]] = {symbol: op for op, symbol in SYMBOLS.items()}


class Changed(NamedTuple):
    """How many rows op rows add, remove and correct."""

    added: int
    removed: int
    corrected: int

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Changed:
        """The rows behind counts of op rows by their symbols. A correction is one row."""
        return cls(*(counts.get(SYMBOLS[op], 0) for op in (Op.APPEND, Op.RETRACT, Op.CORRECT_TO)))

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


POSITIVE: Final = frozenset({Op.APPEND, Op.CORRECT_TO})
NEGATIVE: Final = frozenset({Op.RETRACT, Op.CORRECT_FROM})


def is_positive(op: Column) -> Column:
    """Return whether the operation inserts its image (`+A`, `+C`)."""
    return op.isin(*map(int, sorted(POSITIVE)))


def is_negative(op: Column) -> Column:
    """Return whether the operation retracts its image (`-R`, `-C`)."""
    return op.isin(*map(int, sorted(NEGATIVE)))


def weight(op: Column) -> Column:
    """Return the weight of an `_op` column as a bigint: 1 for `+A` and `+C`, -1 for `-R` and `-C`."""
    return F.when(is_positive(op), 1).otherwise(-1).cast("bigint")


def only_appends(ops: Collection[Op] | None) -> bool:
    """Return whether a delta that contains at most the operations `ops` only inserts rows. None: the operations are unknown."""
    return ops is not None and set(ops) <= {Op.APPEND}
