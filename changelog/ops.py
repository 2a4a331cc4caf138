"""The four operations of a changelog (Open Data Fabric, "ODF Model"): their codes, symbols and signs."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from changelog.lazy_imports import F

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column


class Op(IntEnum):
    """An operation, by the code under which `_op` stores it."""

    APPEND = 0
    RETRACT = 1
    CORRECT_FROM = 2
    CORRECT_TO = 3

    @property
    def symbol(self) -> str:
        """The operation as people read it: `+A`, `-R`, `-C` or `+C`."""
        return SYMBOLS[self]

    @property
    def weight(self) -> int:
        """What the row adds to the number of live rows of its key: 1 or -1."""
        return 1 if self in POSITIVE else -1


SYMBOLS: Final[dict[Op, str]] = {Op.APPEND: "+A", Op.RETRACT: "-R", Op.CORRECT_FROM: "-C", Op.CORRECT_TO: "+C"}
BY_SYMBOL: Final[dict[str, Op]] = {symbol: op for op, symbol in SYMBOLS.items()}
POSITIVE: Final = frozenset({Op.APPEND, Op.CORRECT_TO})
NEGATIVE: Final = frozenset({Op.RETRACT, Op.CORRECT_FROM})


def is_positive(op: Column) -> Column:
    """Whether an `_op` column brings its image in (`+A`, `+C`)."""
    return op.isin(*map(int, sorted(POSITIVE)))


def is_negative(op: Column) -> Column:
    """Whether an `_op` column takes its image back (`-R`, `-C`)."""
    return op.isin(*map(int, sorted(NEGATIVE)))


def weight(op: Column) -> Column:
    """The weight of an `_op` column as a bigint: 1 for `+A` and `+C`, -1 for `-R` and `-C`."""
    return F.when(is_positive(op), 1).otherwise(-1).cast("bigint")


def only_appends(ops: Collection[Op] | None) -> bool:
    """Whether a delta that is known to hold no other operations than `ops` brings rows in and takes none back."""
    return ops is not None and set(ops) <= {Op.APPEND}
