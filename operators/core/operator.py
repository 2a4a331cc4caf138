"""What an operator is: three classes, each with its delta rule (DESIGN section 4; docs/architecture.md, "Operators").

A linear operator maps op rows to op rows. A keyed operator's rows for one lookup key are a function of the live input rows
of that key: the keys touched by a delta are computed anew and compared with what stood. An accumulating operator is a keyed
one that keeps exact accumulators, so that only the delta is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from changelog.frames import alike, of_keys, united
from changelog.lazy_imports import F, pa
from changelog.spark_algebra import as_appends, changed, consolidate, diff
from cxl.types.types import Kind, Type
from operators.core.evaluate import Narrow, as_it_is
from operators.core.node import BoundNode
from operators.core.provenance import by_key
from operators.core.row_type import LOOSE, SYSTEM
from operators.core.run_values import RunValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


INEXACT = LOOSE | {Kind.FLOAT}
"""Kinds of which equal values may differ in their bits or in their text."""
SHARED = "__shared"
"""A column with what `Keyed.shared` gives."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The op rows that one run adds to a port. `signed` says whether retractions may be among them."""

    frame: DataFrame
    signed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an operator answers to deltas: rows for its changelog, rejects among them (told by `_error`).

    `net` gives the same rows consolidated by the engine, where they are not yet: few rows are consolidated on the driver. `here`: further op rows,
    which are on the driver and are among those of `net`.
    """

    rows: DataFrame
    signed: bool
    net: Callable[[], DataFrame] | None = None
    here: pa.Table | None = None

    @classmethod
    def loose(cls, rows: DataFrame) -> Outcome:
        """Op rows that are yet to be consolidated."""
        return cls(rows, True, lambda: consolidate(rows))

    @classmethod
    def difference(cls, stood: DataFrame, rows: DataFrame, cause: str) -> Outcome:
        """What makes of the live rows that stood those that are computed now."""
        return cls(changed(stood, rows, cause), True, lambda: diff(stood, rows, cause))

    def beside(self, rows: DataFrame) -> Outcome:
        """The same with further op rows, of other keys."""
        return Outcome(united(self.rows, rows), True, lambda: united(self.rows if self.net is None else self.net(), consolidate(rows)), self.here)


class OperatorContext(Protocol):
    """What an operator may look up while it answers deltas. All frames have `_key`, hidden and data columns."""

    @property
    def values(self) -> RunValues:
        """System variables of the run."""

    def delta(self, index: int) -> Delta | None:
        """The delta of input number `index`, None where nothing changed."""

    def live_input(self, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input, this run's delta counted in; those that `narrow` chooses: the others are not folded."""

    def live_own(self, narrow: Narrow = as_it_is) -> DataFrame:
        """The operator's own live rows before this run, rejects among them (`_error`); those that `narrow` chooses."""

    def own_state(self, narrow: Narrow = as_it_is) -> DataFrame | None:
        """The latest accumulators of each key before this run, of those that `narrow` chooses; None where there are none."""

    def state_of(self, keys: pa.ChunkedArray) -> pa.Table | None:
        """The same of a few keys, on the driver."""

    def keep_state(self, state: DataFrame | pa.Table, *, anew: bool = False, bounds: bool = False) -> DataFrame:
        """Write this run's accumulators and give them back as rows that were computed already.

        `anew`: they are all there are; else a row of `_key` alone says that there are none of that key any more.
        `bounds`: what the operator answers has no more rows than these, rejects left out.
        """

    def settled(self, frame: DataFrame, *, condensed: bool = False) -> DataFrame:
        """The frame, computed once and held where it is small, so that what is built on it stays a small plan.

        `condensed`: it has far fewer rows than it is computed from, so it may be small whatever comes from the inputs.
        """

    def own_rows(self, lookups: pa.ChunkedArray) -> pa.Table:
        """The operator's own live rows before this run that have one of a few keys as `_lookup`, on the driver."""

    def few(self, frame: DataFrame) -> pa.Table | None:
        """The rows of a frame that has no more of them than come from the inputs, on the driver where these are few; else None."""

    def given(self, rows: pa.Table) -> DataFrame:
        """Rows of the driver as a frame."""

    @property
    def first(self) -> bool:
        """Whether nothing stood before: the delta is everything and all of it is `+A`."""


class Operator(BoundNode, ABC):
    """A bound node that turns the deltas of its inputs into rows of its own changelog."""

    def origins(self, rows: DataFrame, inputs: Sequence[DataFrame], values: RunValues, reads: frozenset[str]) -> list[DataFrame]:
        """For each input the keys (`_key`, distinct) of its live rows that these live rows of the node come from.

        `reads`: the system variables that are read of the rows further down. By default each row comes from one row of the only input.
        """
        return [by_key(rows, self.output.key, self.inputs[0].key)]

    @abstractmethod
    def answer(self, around: OperatorContext) -> Outcome:
        """The rows that the inputs' deltas add to the operator's changelog."""

    @abstractmethod
    def rebuild(self, around: OperatorContext, cause: str = "logic") -> Outcome:
        """The difference between the rows of the live inputs by today's logic and the rows that stand."""


class Linear(Operator):
    """An operator that maps each op row by itself."""

    explain_class = "linear"

    @abstractmethod
    def images(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The rows that op rows of input `index` become: zero, one or more each, rejects with `_error` set."""

    def answer(self, around: OperatorContext) -> Outcome:
        """Map both images of each change; images that are equal vanish."""
        deltas = [(index, delta) for index in range(len(self.inputs)) if (delta := around.delta(index)) is not None]
        rows = united(*(self._mapped(delta.frame, index, around.values) for index, delta in deltas))
        signed = any(delta.signed for _, delta in deltas)
        return Outcome.loose(rows) if signed else Outcome(rows, signed=False)

    def rebuild(self, around: OperatorContext, cause: str = "logic") -> Outcome:
        """Map the live inputs and compare by key."""
        images = [self._mapped(as_appends(around.live_input(index), cause), index, around.values) for index in range(len(self.inputs))]
        return compared(around, united(*images), cause)

    def _mapped(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        return alike(self.images(frame, index, values), lambda rows: self.output.shaped(rows, [*SYSTEM, *self.output.columns()]))


class Keyed(Operator):
    """An operator whose rows for one lookup key depend on the live input rows of that key alone. Its rows carry `_lookup`."""

    explain_class = "affected-key"

    def bound(self, changes: int, live: int) -> int | None:
        """All rows of the touched keys may change, each twice."""
        return 2 * (changes + live)

    @abstractmethod
    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The frame with `_lookup`: the bytes of the key that each row of input `index` belongs to."""

    @abstractmethod
    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """All rows of the given live input rows, which hold every row of the keys concerned; `_op` and `_cause` are passed over."""

    def answer(self, around: OperatorContext) -> Outcome:
        """Compute the touched keys anew and compare with what stood; on the first run all is computed and nothing compared."""
        if around.first:
            frames = [_frame_or_live(around, index) for index in range(len(self.inputs))]
            return Outcome(as_appends(self._whole_rows(self.compute(frames, around.values)), "recompute"), signed=False)
        touched = around.settled(self.touched(around))
        of_touched = among(touched.select("_lookup").distinct(), "_lookup")
        frames = [self.of_touched(around, index, touched).drop("_lookup") for index in range(len(self.inputs))]
        stood = around.settled(around.live_own(of_touched))
        rows = self.compute(frames, around.values)
        if self.always_has_rows:  # also where a delta turned out to bring nothing
            rows = of_touched(rows)
        return Outcome.difference(stood, self._whole_rows(rows), "recompute")

    def _whole_rows(self, rows: DataFrame) -> DataFrame:
        return self.output.shaped(rows, ["_key", *self.output.columns()])

    def touched(self, around: OperatorContext) -> DataFrame:
        """The lookup keys that occur in the deltas with the numbers that their rows share: `_lookup` and `SHARED`, distinct."""
        deltas = [(index, delta) for index in range(len(self.inputs)) if (delta := around.delta(index)) is not None]
        return united(*(self.lookup(self.hashed(delta.frame, i), i, around.values).select("_lookup", SHARED) for i, delta in deltas)).distinct()

    def shared(self, index: int) -> Column | None:
        """A number that all rows of one lookup key have in common and few others have, much quicker to compute than the key; None where there is none."""
        return None

    def needed(self, frame: DataFrame, index: int) -> DataFrame:
        """Live rows of an input with the columns that `lookup` and `compute` read: others are not read of the table."""
        return frame

    def hashed(self, frame: DataFrame, index: int) -> DataFrame:
        """Rows of an input with `SHARED`, null where nothing is shared."""
        number = self.shared(index)
        return frame.withColumn(SHARED, F.lit(None).cast("bigint") if number is None else number)

    def of_touched(self, around: OperatorContext, index: int, touched: DataFrame) -> DataFrame:
        """The live rows of an input that have one of these keys, as `lookup` gives them: by the shared number first, by the key then."""
        of_touched = among(touched.select("_lookup").distinct(), "_lookup")

        def exact(rows: DataFrame) -> DataFrame:
            return of_touched(self.lookup(rows, index, around.values))

        if self.shared(index) is None:
            return around.settled(around.live_input(index, lambda rows: exact(self.needed(rows, index))))
        numbers = among(touched.select(SHARED).distinct(), SHARED)

        def shared(rows: DataFrame) -> DataFrame:
            return numbers(self.hashed(self.needed(rows, index), index)).drop(SHARED)

        return exact(around.settled(around.live_input(index, shared)))

    def rebuild(self, around: OperatorContext, cause: str = "logic") -> Outcome:
        """Compute everything and compare with what stood."""
        frames = [around.live_input(index) for index in range(len(self.inputs))]
        return compared(around, self._whole_rows(self.compute(frames, around.values)), cause)


def shared_number(columns: Sequence[tuple[Column, Type]]) -> Column | None:
    """A hash of columns, without those of `INEXACT` kinds. None where no column is left."""
    exact = [value for value, type_ in columns if type_.kind not in INEXACT]
    return F.xxhash64(*exact) if exact else None


def among(keys: DataFrame, *names: str) -> Narrow:
    """Chooses the rows whose columns `names` are those of one of a few keys."""
    return lambda rows: of_keys(rows, keys, *names)


def compared(around: OperatorContext, rows: DataFrame, cause: str) -> Outcome:
    """The difference between all rows of a node by today's logic and those that stand; nothing is compared where none stand."""
    if around.first:
        return Outcome(as_appends(rows, cause), signed=False)
    return Outcome.difference(around.live_own(), rows, cause)


def _frame_or_live(around: OperatorContext, index: int) -> DataFrame:
    delta = around.delta(index)
    return delta.frame if delta is not None else around.live_input(index)
