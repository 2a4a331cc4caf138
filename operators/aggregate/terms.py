"""What the state columns of accumulators add up. Two columns with the same term have the same sums, so a query computes one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

Term: TypeAlias = tuple[object, ...]
"""What a state column adds up over the rows of a group. Equal terms have equal sums."""
ROWS: Final = "__rows"
"""The state column that counts a group's rows; a group without rows has no row in the output."""


class Total(Protocol):
    """An exact sum in several columns."""

    @property
    def columns(self) -> Sequence[str]:
        """Their names."""


def counted(value: str | None) -> Term:
    """The term of a column that counts the rows with a value in a column; None: all rows."""
    return ("count", value)


def of_value(total: Total, *arguments: str) -> tuple[Term, ...]:
    """The terms of the columns of a total. `arguments` says what the total is made of: columns, and how."""
    return tuple((type(total), *arguments, at) for at in range(len(total.columns)))
