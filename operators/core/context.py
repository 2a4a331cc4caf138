"""The lookups and the state of an operator while it answers deltas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from changelog.rows import Limits, Rows
from operators.core.delta import Delta
from operators.core.evaluate import Narrow, as_it_is
from operators.core.run_values import RunValues

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class OperatorContext(Protocol):
    """The surroundings of one operator in one run. Rows have `_key`, hidden and data columns."""

    @property
    def values(self) -> RunValues:
        """System variables of the run."""

    @property
    def first(self) -> bool:
        """Whether the node had no rows before: the delta is everything, and all of it is `+A`."""

    @property
    def limits(self) -> Limits:
        """How many rows are handled on the driver, and how much is kept of a group."""

    @property
    def own_rows(self) -> int | None:
        """The number of the operator's own live rows before this run, rejects among them; None where it is not known."""

    def of_all(self) -> OperatorContext:
        """The same for an answer that computes all rows: nothing is expected to be few but what the inputs' rows show."""

    def live_rows(self, index: int) -> int | None:
        """An upper bound of the live rows of an input, this run's included; None where there is none."""

    def changed_rows(self, index: int) -> int | None:
        """An upper bound of the op rows of an input's delta; None where there is none."""

    def delta(self, index: int) -> Delta | None:
        """The delta of an input, by its number; None where nothing changed."""

    def live_input(self, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input, this run's delta included.

        Args:
            index: The number of the input.
            narrow: Chooses rows. The others are not folded.
        """

    def live_own(self, keys: Rows | None = None, on: str = "_lookup") -> Rows:
        """The operator's own live rows before this run, rejects among them.

        Args:
            keys: Choose the rows that have one of these keys in the column `on`. The others are not folded.
            on: The column.
        """

    @property
    def may_have_rejects(self) -> bool:
        """Whether the operator may have rejects from before this run."""

    def own_state(self, keys: Rows | None = None) -> Rows | None:
        """The latest state of each key before this run; None where there is none.

        Args:
            keys: Choose the states that have one of these as `_key`.
        """

    def keep_state(self, state: Rows, *, anew: bool = False, bounds: bool = False) -> Rows:
        """Store this run's states and return them, computed once.

        Args:
            state: States by `_key`. A row with `_key` alone removes the state of that key.
            anew: Whether these are all states; states of other keys are then removed.
            bounds: Whether the operator answers with at most one row for each state, rejects not counted.
        """

    def rows(self, rows: DataFrame | pa.Table) -> Rows:
        """The rows of a frame or of a table."""

    def materialized(self, rows: Rows | DataFrame, *, condensed: bool = False, narrow: bool = False) -> Rows:
        """Rows computed once and held where they are few, so that what is built on them stays a small plan.

        Args:
            rows: The rows to compute.
            condensed: Whether they are far fewer than what they are computed from. They may be few even where the inputs' deltas are large.
            narrow: Whether they have few columns, so that more of them are held.
        """

    def to_driver_if_small(self, frame: DataFrame) -> Rows:
        """The rows of a frame, on the driver where the inputs' deltas are small. The frame has at most one row for each row of a delta."""

    def remark(self, text: str) -> None:
        """Tell the user at the end of the run, as a warning."""
