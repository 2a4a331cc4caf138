"""Whether a node follows the deltas of its inputs, or computes all of its rows: whichever is quicker by the counts.

A delta is not followed where it has many op rows for the live rows, which is known before anything is read. What it leads to is known later: the prior
rows of the affected keys, and the live input rows of these keys. Where these turn out to be many, the operator raises `Outgrown`. What it stored so far is
taken back, and all rows are computed. Both ways give the same op rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from changelog.rows import Rows
from operators.core.context import OperatorContext
from operators.core.delta import Delta

ENOUGH = 100
"""Rows from which on a share of them tells something. Few rows may be very unequal: of five groups, one may have nearly all records."""


class Follower(Protocol):
    """The questions to an operator that answers deltas."""

    name: str
    deterministic: bool

    def is_outweighed(self, context: OperatorContext) -> bool:
        """Whether counts show that `rebuild` is quicker than `answer`."""

    def answer(self, context: OperatorContext) -> Delta:
        """The delta of the operator, from the deltas of its inputs. Raises `Outgrown`."""

    def rebuild(self, context: OperatorContext, cause: str = ...) -> Delta:
        """The delta from its prior rows to all rows."""


class Outgrown(Exception):
    """A delta leads to more rows than a node looks up one by one. To compute all rows is quicker."""


def answered(operator: Follower, context: OperatorContext, undo: Callable[[], object]) -> Delta:
    """The answer of an operator to the deltas of its inputs. It follows them, or computes all rows where that is quicker.

    Args:
        operator: The operator.
        context: What it may look up.
        undo: Takes back what the operator stored by `context`.
    """
    if are_too_many(operator, context):
        return operator.rebuild(context.of_all(), "recompute")
    try:
        return operator.answer(context)
    except Outgrown:
        undo()
        return operator.rebuild(context.of_all(), "recompute")


def are_too_many(operator: Follower, context: OperatorContext) -> bool:
    """Whether counts show, before anything is read, that all rows are computed quicker than the deltas are followed."""
    return may_choose(operator, context) and operator.is_outweighed(context)


def may_choose(operator: Follower, context: OperatorContext) -> bool:
    """Whether both ways give the same rows: not in a first run, and not where a program depends on more than its records."""
    return not context.first and operator.deterministic


def outweighs(context: OperatorContext, inputs: Iterable[int], most: float) -> bool:
    """Whether the deltas of inputs have more op rows for each live row than `most`. Known from counts, before anything is read.

    Args:
        context: What the operator may look up.
        inputs: The numbers of the inputs.
        most: The op rows for each live row up to which deltas are followed.
    """
    counts = [(context.changed_rows(index), context.live_rows(index)) for index in inputs]
    changed, live = (sum(count for count in side if count is not None) for side in zip(*counts, strict=True))
    return all(count is not None for pair in counts for count in pair) and changed > most * live


def require_few(operator: Follower, context: OperatorContext, rows: Rows, among: int | None, share: float) -> None:
    """Raise `Outgrown` where rows that a delta leads to are more than a share of all such rows.

    Args:
        operator: The operator that follows the delta.
        context: What it may look up.
        rows: The rows, materialized.
        among: The number of all rows of this kind; None where it is not known.
        share: The share of these up to which a delta is followed.
    """
    _require(operator, context, among, share, lambda most: exceed(rows, most, context.limits.held_rows))


def require_share(operator: Follower, context: OperatorContext, count: int, among: int | None, share: float) -> None:
    """The same of rows that were counted."""
    _require(operator, context, among, share, lambda most: count > most)


def _require(operator: Follower, context: OperatorContext, among: int | None, share: float, exceeds: Callable[[float], bool]) -> None:
    if among is not None and among >= ENOUGH and may_choose(operator, context) and exceeds(among * share):
        raise Outgrown(operator.name)


def exceed(rows: Rows, most: float, held: int) -> bool:
    """Whether materialized rows are more than `most`. Rows that are not on the driver are more than `held`; where that does not tell, they are counted."""
    return rows.at_most > most if rows.at_most is not None else held >= most or rows.count() > most
