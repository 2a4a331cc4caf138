"""Window functions as columns: the value of `$window.f(...)` for each row of its partition.

The frame of a row goes from the first row of its partition to the row itself, by rows, so ties do not share one; over another source it is the whole
partition. Sums are exact, as in aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from changelog.columns import column
from changelog.exact.decimals import rounded_column
from changelog.exact.quotients import divided_in_layers, in_two
from changelog.exact.ranges import ValueRange, value_ranges
from changelog.exact.sums import IntSum
from changelog.exact.windows import WindowSum, shared_unit
from changelog.lazy_imports import F
from cxl.check.split import read_results
from cxl.typed import tree
from cxl.typed.tree import WindowUse
from cxl.types.types import Kind
from operators.aggregate.accumulators import OVERFLOW, Sum
from operators.aggregate.decimal_accumulators import DecimalTotal
from operators.aggregate.group_functions import first_true
from operators.core.operator import INEXACT_SUM
from operators.transform.window.frames import Frames
from operators.transform.window.python_functions import SUMS, with_listed
from operators.transform.window.running_totals import with_running_totals

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


WRONG = "__window_wrong"
"""A column with why a row's functions have no value, or null."""

TotalT = TypeVar("TotalT", Sum, DecimalTotal)

POSITIONAL = frozenset({"row_number", "rank", "dense_rank", "lag", "lead"})
"""Functions of the current row's own place: without meaning in the rows of another source."""

LISTED = frozenset({"collect", "distinct"})
_SUMMED = (Kind.INT, Kind.FLOAT, Kind.DECIMAL)


def windowed(frame: DataFrame, uses: Sequence[WindowUse], frames: Frames, *, wide: bool = False, in_tasks: bool = False) -> DataFrame:
    """The frame with the result column of each call and `WRONG`.

    In: rows with `_key`, `PART`, the order fields and the calls' argument columns. `wide`: sums met values that columns cannot add up exactly, so Python does.
    `in_tasks`: tasks may hold all rows in Python.
    """
    listed = [use for use in uses if is_listed(use, wide=wide)]
    direct = [use for use in uses if use not in listed]
    sums = _sums(frame, [use for use in direct if use.function.name in SUMS], frames)
    native = {use.column: _NATIVE[use.function.name](use, frames) for use in direct if use.function.name not in SUMS}
    done = frame.withColumns(native) if native else frame
    done = _with_layers(done, [one.parts() for one in sums])
    done = with_running_totals(done, [name for one in sums for name in one.added], frames, in_tasks=in_tasks)
    done = _with_layers(done, [one.results() for one in sums])
    wrong = first_true([one.wrong(frames) for one in sums]).alias(WRONG)
    done = done.select(*map(column, frame.columns), *(column(use.column) for use in direct), wrong)
    return with_listed(done, listed, frames.number, whole=frames.whole) if listed else done


def _with_layers(frame: DataFrame, sums: Sequence[Iterator[Mapping[str, Column]]]) -> DataFrame:
    """The frame with the layers of columns of all sums, one after the other."""
    for layer in zip_longest(*sums, fillvalue={}):
        frame = frame.withColumns(dict(chain.from_iterable(columns.items() for columns in layer)))
    return frame


def _sums(frame: DataFrame, uses: Sequence[WindowUse], frames: Frames) -> list[_Floats | _Ints | _Decimals]:
    """The sums and means of a frame's columns, of floats with how far these reach."""
    reached = value_ranges(frame, list(dict.fromkeys(use.columns[0] for use in uses if use.args[0].type.kind is Kind.FLOAT)))
    return [_sum(use, frames, reached.get(use.columns[0])) for use in uses]


def is_listed(use: WindowUse, *, wide: bool = False) -> bool:
    """Whether Python computes a call from the list of its frame's values: arrays, dynamic values, sums beyond the limbs."""
    name = use.function.name
    if name in SUMS:
        kind = use.args[0].type.kind
        return kind not in _SUMMED or (wide and kind is Kind.FLOAT)
    return name in LISTED or (name in ("min", "max") and use.args[0].type.is_dynamic)


def may_fail(uses: Sequence[WindowUse]) -> bool:
    """Whether a call may have no value for a row, as sums may."""
    return any(use.function.name in SUMS for use in uses)


def reach(uses: Sequence[WindowUse]) -> tuple[int | None, int]:
    """How many rows before (None: all) and behind a row of its partition the calls look at, through the calls that they read too."""
    found: dict[str, tuple[int | None, int]] = {}
    for use in uses:  # a call comes behind the calls that it reads
        behind, ahead = _widest([found[name] for name in read_results(use)])
        step = offset(use) or 0
        if use.function.name not in ("lag", "lead"):
            behind = None
        elif use.function.name == "lag":
            behind, ahead = None if behind is None else behind + step, max(0, ahead - step)
        else:
            behind, ahead = None if behind is None else max(0, behind - step), ahead + step
        found[use.column] = behind, ahead
    return _widest(list(found.values()))


def _widest(reaches: Sequence[tuple[int | None, int]]) -> tuple[int | None, int]:
    behind = [before for before, _ in reaches]
    return None if None in behind else max([0, *(one for one in behind if one is not None)]), max([0, *(after for _, after in reaches)])


@dataclass(frozen=True, slots=True)
class _Floats:
    """A sum or mean of floats."""

    total: WindowSum

    @property
    def added(self) -> tuple[str, ...]:
        """The columns whose sums are needed."""
        return self.total.added

    def parts(self) -> Iterator[Mapping[str, Column]]:
        """The columns ahead of the sums, layer by layer."""
        return self.total.parts()

    def results(self) -> Iterator[Mapping[str, Column]]:
        """The columns behind the sums, layer by layer."""
        return self.total.results()

    def wrong(self, frames: Frames) -> tuple[Column, str]:
        """When there is no value, and why: an inexact one is to be computed in another way."""
        outside = self.total.outside
        return F.max(outside.cast("int")).over(frames.rows) > 0 if frames.whole and self.total.unit is None else outside, INEXACT_SUM


@dataclass(frozen=True, slots=True)
class _Accumulated(Generic[TotalT]):
    """A sum or mean that an accumulator of aggregates adds up."""

    total: TotalT

    @property
    def added(self) -> tuple[str, ...]:
        """The columns whose sums are needed."""
        return tuple(self.total.columns)

    def parts(self) -> Iterator[Mapping[str, Column]]:
        """The columns ahead of the sums, layer by layer."""
        yield dict(zip(self.total.columns, self.total.contributions(F.lit(1).cast("bigint")), strict=True))


class _Ints(_Accumulated[Sum]):
    """A sum or mean of ints."""

    __slots__ = ()

    def results(self) -> Iterator[Mapping[str, Column]]:
        """The columns behind the sums, layer by layer."""
        yield dict(zip(self.total.columns, self.total.carried(), strict=True))
        if not self.total.mean:
            yield {self.total.name: self.total.result()}
            return
        high, low = (column(name).cast("double") for name in self.total.total.columns)
        name, count = self.total.name, column(f"{self.total.name}_n")
        yield {f"{name}_above": high * 2.0**32, f"{name}_below": low}
        above, below = column(f"{name}_above"), column(f"{name}_below")
        yield from divided_in_layers(name, *in_two(above, below), F.when(count != 0, count).cast("double"))

    def wrong(self, frames: Frames) -> tuple[Column, str]:
        """When there is no value, and why."""
        return self.total.overflows(), OVERFLOW


class _Decimals(_Accumulated[DecimalTotal]):
    """A sum or mean of decimals."""

    __slots__ = ()

    def results(self) -> Iterator[Mapping[str, Column]]:
        """The columns behind the sums, layer by layer."""
        total = self.total
        yield dict(zip(total.columns, total.carried(), strict=True))
        yield {total.quotient.value: rounded_column(total.quotient)}
        yield {total.name: total.result()}

    def wrong(self, frames: Frames) -> tuple[Column, str]:
        """When there is no value, and why."""
        return self.total.overflows(), self.total.overflow


def _sum(use: WindowUse, frames: Frames, extent: ValueRange | None) -> _Floats | _Ints | _Decimals:
    value, mean = use.columns[0], use.function.name == "avg"
    if use.args[0].type.kind is Kind.DECIMAL:
        return _Decimals(DecimalTotal.of(use))
    if use.args[0].type.kind is Kind.INT:
        return _Ints(Sum(use.column, value, IntSum(use.column), mean))
    unit = None if extent is None else shared_unit(extent)
    return _Floats(WindowSum(use.column, value, frames.rows, frames.partition, mean, unit))


def over_nothing(use: WindowUse) -> Any:
    """The value of a call over no rows: of a row without partner in the other source."""
    return {"count": 0, "any": False, "exists": False, "every": True, "not_exists": True, "collect": "[]", "distinct": "[]"}.get(use.function.name)


def offset(use: WindowUse) -> int | None:
    """How many rows `lag` and `lead` go, 1 where nothing is said, 0 for less; None where it is no constant."""
    if not use.args:
        return 1
    node, sign = use.args[0], 1
    while isinstance(node, tree.Unary) and node.op == "-":
        node, sign = node.operand, -sign
    return max(sign * node.value, 0) if isinstance(node, tree.Literal) and isinstance(node.value, int) else None


# Functions --------------------------------------------------------------------------------------------------------------
def _value(use: WindowUse) -> Column:
    return column(use.member if use.member is not None else use.columns[0])


def _last(use: WindowUse, frames: Frames) -> Column:
    return F.last(_value(use)).over(frames.rows) if frames.whole else _value(use)


def _shifted(shift: str) -> Callable[[WindowUse, Frames], Column]:
    def made(use: WindowUse, frames: Frames) -> Column:
        return cast("Column", getattr(F, shift)(_value(use), offset(use) or 0).over(frames.places))

    return made


def _ranked(rank: str) -> Callable[[WindowUse, Frames], Column]:
    def made(use: WindowUse, frames: Frames) -> Column:
        return getattr(F, rank)().over(frames.peers).cast("bigint") if frames.order else F.lit(1).cast("bigint")

    return made


def _over_rows(function: str) -> Callable[[WindowUse, Frames], Column]:
    def made(use: WindowUse, frames: Frames) -> Column:
        return _as_stored(getattr(F, function)(_comparable(use)).over(frames.rows), use)

    return made


def _comparable(use: WindowUse) -> Column:
    """Bools as numbers: engines do not compare them alike."""
    return _value(use).cast("int") if use.args[0].type.kind is Kind.BOOL else _value(use)


def _as_stored(value: Column, use: WindowUse) -> Column:
    return value.cast("boolean") if use.args[0].type.kind is Kind.BOOL else value


def _levels(use: WindowUse) -> Column:
    """0 false, 1 null, 2 true."""
    value = _value(use)
    is_true = value == F.lit("true") if use.args[0].type.kind is not Kind.BOOL else value
    return F.when(value.isNull(), 1).when(is_true, 2).otherwise(0)


def _some(use: WindowUse, frames: Frames) -> Column:
    return _truth(F.max(_levels(use)).over(frames.rows))


def _none(use: WindowUse, frames: Frames) -> Column:
    return ~_some(use, frames)


def _every(use: WindowUse, frames: Frames) -> Column:
    return _truth(F.min(_levels(use)).over(frames.rows))


def _truth(level: Column) -> Column:
    return F.when(level == 2, F.lit(True)).when(level == 0, F.lit(False))


_NATIVE: Mapping[str, Callable[[WindowUse, Frames], Column]] = {
    "min": _over_rows("min"),
    "max": _over_rows("max"),
    "count": lambda use, frames: F.count(F.lit(1)).over(frames.rows),
    "row_number": lambda use, frames: frames.number.cast("bigint"),
    "rank": _ranked("rank"),
    "dense_rank": _ranked("dense_rank"),
    "first_value": lambda use, frames: F.first(_value(use)).over(frames.rows),
    "first": lambda use, frames: F.first(_value(use)).over(frames.rows),
    "last_value": _last,
    "last": _last,
    "lag": _shifted("lag"),
    "lead": _shifted("lead"),
    "any": _some,
    "exists": _some,
    "every": _every,
    "not_exists": _none,
}
