"""Operators: three kinds, each with its delta rule.

A linear operator maps op rows to op rows. The rows of a keyed operator for one lookup key are a function of the live input rows of that key:
the keys that a delta affects are computed again and compared with the prior rows. An accumulating operator is a keyed one that stores exact
accumulators, so that it reads the delta alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from changelog.algebra import insertions
from changelog.frames import of_keys, united
from changelog.lazy_imports import F
from changelog.rows import Rows, contains
from cxl.types.types import Type
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import Narrow, as_it_is
from operators.core.following import outweighs, require_few
from operators.core.node import BoundNode
from operators.core.provenance import by_key
from operators.core.row_type import SYSTEM, is_hashed
from operators.core.run_values import RunValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


INEXACT_SUM = "inexact sum"
"""The detail of a reject whose sum met a value that its limbs do not hold. The data is sound: the node is computed again with wide sums."""
SHARED = "__shared"
"""A column with what `Keyed.shared` gives."""


class NeedsWiderSums(Exception):
    """A sum met a value that its limbs do not hold. The operator has to compute its rows again, with wide sums."""


class Operator(BoundNode, ABC):
    """A bound node that turns the deltas of its inputs into rows of its own changelog.

    `operators.core.following` chooses whether it follows a delta.
    """

    wide_sums: bool | None = None
    """Whether sums hold values of any size; None where the operator has no sums."""
    keeps_periods = False
    """Whether rows of closed periods stay as they were published, and changes of them are booked."""

    def require_exact_sums(self, rows: Rows) -> None:
        """Raise `NeedsWiderSums` where op rows of this operator have an inexact sum: no sum may be silently inexact."""
        if self.wide_sums is False and not rows.where(contains("_error", INEXACT_SUM)).are_empty():
            raise NeedsWiderSums(self.name)

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """The keys of the live input rows that some live rows of the node come from: for each input `_of` and `_key`, distinct.

        By default each row comes from one row of the only input.

        Args:
            rows: Live rows of the node, with `_of`: who asks. Each origin has the asker of its row.
            inputs: The live rows of each input.
            values: System variables.
            reads: The system variables that nodes downstream read.
        """
        return [by_key(rows, self.output.key, self.inputs[0].key)]

    def placed(self, frame: DataFrame, values: RunValues) -> DataFrame | None:
        """Rows of the only input, with the `_lookup` of the node's rows that come from them. None where that depends on other rows too."""
        return None

    def is_outweighed(self, context: OperatorContext) -> bool:
        """Whether counts show that deltas are so large that `rebuild` is quicker than `answer`."""
        return False

    @abstractmethod
    def answer(self, context: OperatorContext) -> Delta:
        """Answer the inputs' deltas with the delta of the operator. Raises `Outgrown` where `rebuild` turns out to be quicker."""

    @abstractmethod
    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Return the delta from the operator's prior rows to the rows that the present logic makes of the live inputs."""


class Linear(Operator):
    """An operator that maps each op row by itself."""

    explain_class = "linear"

    @abstractmethod
    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """The rows that op rows of an input become: zero, one or more each, rejects with `_error` set."""

    def answer(self, context: OperatorContext) -> Delta:
        """Map both images of each change. Equal images cancel."""
        deltas = [(index, delta) for index in range(len(self.inputs)) if (delta := context.delta(index)) is not None]
        rows, *others = (self._mapped(delta.rows, index, context.values) for index, delta in deltas)
        signed = any(delta.signed for _, delta in deltas)
        if not signed or (not others and self.keeps_apart(deltas[0][1].apart)):
            return Delta(rows.union(*others), signed)
        return Delta.mapped(rows.union(*others))

    def keeps_apart(self, names: frozenset[str] | None) -> bool:
        """Whether each row of the only input becomes one, and two that differ in some of these columns become two that differ. To look for equal images takes an engine as long as to write them."""
        return False

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Map the live inputs and compare by key."""
        live = [insertions(context.rows(context.live_input(index)), cause) for index in range(len(self.inputs))]
        rows, *others = (self._mapped(one, index, context.values) for index, one in enumerate(live))
        return compared(context, rows.union(*others), cause)

    def _mapped(self, rows: Rows, index: int, values: RunValues) -> Rows:
        return self.images(rows, index, values).through(lambda frame: self.output.shaped(frame, [*SYSTEM, *self.output.columns()]))


class Keyed(Operator):
    """An operator whose rows for one lookup key depend on the live input rows of that key alone. Its rows carry `_lookup`."""

    explain_class = "affected-key"
    most_changed = 0.5
    """The op rows for each live row up to which deltas are followed."""
    most_affected = 0.4
    """The share of its rows, and of its inputs' rows, up to which the affected ones are computed by themselves."""

    def is_outweighed(self, context: OperatorContext) -> bool:
        """Whether many op rows come for the live rows."""
        return outweighs(context, range(len(self.inputs)), self.most_changed)

    def bound(self, changes: int, live: int) -> int | None:
        """All rows of the affected keys may change, each twice."""
        return 2 * (changes + live)

    @abstractmethod
    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The frame with `_lookup`: the bytes of the key that each row of input `index` belongs to."""

    @abstractmethod
    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """All rows of some live input rows, which have every row of their lookup keys. `_op` and `_cause` are ignored."""

    def answer(self, context: OperatorContext) -> Delta:
        """Compute the rows of the affected keys and compare them with the prior ones. The first run computes all rows and compares none."""
        if context.first:
            frames = [_frame_or_live(context, index) for index in range(len(self.inputs))]
            return Delta.insertion(self._whole_rows(context, self.compute(frames, context.values)))
        affected = context.materialized(self.affected(context))
        lookups = affected.distinct(["_lookup"])
        frames = [self.of_affected(context, index, affected).drop("_lookup") for index in range(len(self.inputs))]
        prior = self.prior(context, lookups)
        rows = self.compute(frames, context.values)
        if self.always_has_rows:  # also where a delta turned out to bring nothing
            rows = of_keys(rows, lookups.as_frame(), "_lookup")
        return Delta.between(prior, self._whole_rows(context, rows))

    def _whole_rows(self, context: OperatorContext, rows: DataFrame) -> Rows:
        return context.rows(self.output.shaped(rows, ["_key", *self.output.columns()]))

    def affected(self, context: OperatorContext) -> DataFrame:
        """The lookup keys that occur in the deltas: `_lookup` and the number that their rows share (`SHARED`), distinct."""
        deltas = [(index, delta) for index in range(len(self.inputs)) if (delta := context.delta(index)) is not None]
        return united(*(self.lookup(self.hashed(delta.frame, i), i, context.values).select("_lookup", SHARED) for i, delta in deltas)).distinct()

    def shared(self, index: int) -> Column | None:
        """A number that all rows of a lookup key have in common and few others have; None where there is none. It is quicker to compute than the key."""
        return None

    def needed(self, frame: DataFrame, index: int) -> DataFrame:
        """Live rows of an input with the columns that `lookup` and `compute` read. Other columns are not read from the table."""
        return frame

    def hashed(self, frame: DataFrame, index: int) -> DataFrame:
        """Rows of an input with `SHARED`, null where nothing is shared."""
        number = self.shared(index)
        return frame.withColumn(SHARED, F.lit(None).cast("bigint") if number is None else number)

    def prior(self, context: OperatorContext, lookups: Rows) -> Rows:
        """The operator's rows of affected keys before this run. Raises `Outgrown`."""
        rows = context.materialized(context.live_own(lookups))
        require_few(self, context, rows, context.own_rows, self.most_affected)
        return rows

    def of_affected(self, context: OperatorContext, index: int, affected: Rows) -> DataFrame:
        """The live rows of an input that have an affected key, as `lookup` gives them, held for several readers. Raises `Outgrown`."""
        choose, exact = self._choosing(context, index, affected)
        rows = context.materialized(context.live_input(index, choose))
        require_few(self, context, rows, context.live_rows(index), self.most_affected)
        return exact(rows.as_frame())

    def read_once(self, context: OperatorContext, index: int, affected: Rows) -> DataFrame:
        """The same for one reader, to whom any number of rows is one pass over the input."""
        choose, exact = self._choosing(context, index, affected)
        return exact(context.live_input(index, choose))

    def _choosing(self, context: OperatorContext, index: int, affected: Rows) -> tuple[Narrow, Narrow]:
        """What chooses rows of an input that have an affected key: quickly by the shared number, and then exactly by the key."""
        exactly = among(affected.distinct(["_lookup"]).as_frame(), "_lookup")

        def exact(rows: DataFrame) -> DataFrame:
            return exactly(self.lookup(rows, index, context.values))

        if self.shared(index) is None:
            return lambda rows: exact(self.needed(rows, index)), as_it_is
        numbers = among(affected.distinct([SHARED]).as_frame(), SHARED)
        return lambda rows: numbers(self.hashed(self.needed(rows, index), index)).drop(SHARED), exact

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Compute all rows and compare them with the prior ones."""
        frames = [context.live_input(index) for index in range(len(self.inputs))]
        return compared(context, self._whole_rows(context, self.compute(frames, context.values)), cause)


def shared_number(columns: Sequence[tuple[Column, Type]]) -> Column | None:
    """Return a hash of columns whose equal values have one hash; None where no column is left."""
    exact = [value for value, type_ in columns if is_hashed(type_)]
    return F.xxhash64(*exact) if exact else None


def among(keys: DataFrame, *names: str) -> Narrow:
    """Return a predicate for the rows whose columns `names` have the values of a key."""
    return lambda rows: of_keys(rows, keys, *names)


def compared(context: OperatorContext, rows: Rows, cause: str) -> Delta:
    """The delta from the prior rows of a node to all rows by today's logic."""
    return Delta.insertion(rows, cause) if context.first else Delta.between(context.live_own(), rows, cause)


def _frame_or_live(context: OperatorContext, index: int) -> DataFrame:
    delta = context.delta(index)
    return delta.frame if delta is not None else context.live_input(index)
