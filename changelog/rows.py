"""Rows of a changelog, wherever they are: on the driver as an Arrow table, in an engine as a DataFrame, or some here and some there.

*Op rows* have `_op`, `_key`, `_cause` and an image. *Live rows* have no `_op`. Code above this package handles `Rows` and does not ask where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Protocol

from changelog.columns import column
from changelog.frames import Batches, any_of, chosen, known, of_keys, united, with_schema, without
from changelog.lazy_imports import F, pa, pc

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rows are handled on the driver, and how much is kept of a group.

    Attributes:
        small_rows: Tables and deltas of at most this size are read, written and held on the driver. A table library needs milliseconds, an engine a job.
        driver_rows: What small deltas lead to is held on the driver up to this size.
        held_rows: What an operator looks up to follow a delta of any size is held on the driver up to this size. An engine would compute it once for each reader.
        narrow_rows: The same of rows with few columns.
        best_values: The number of best values of a group that an aggregate keeps.
        best_bytes: An aggregate keeps best texts of a group up to this size together, and one of any size.
        sorted_rows: The best values of groups are found by sorting in tables of at most this size. Of larger tables only the single best value is found.
    """

    small_rows: int = 10_000
    driver_rows: int = 100_000
    held_rows: int = 500_000
    narrow_rows: int = 2_000_000
    best_values: int = 16
    best_bytes: int = 4_096
    sorted_rows: int = 20_000_000

    def are_small(self, rows: int | None) -> bool:
        """Whether a number of rows is small; None, an unknown number, is not."""
        return rows is not None and rows <= self.small_rows


class RowEngine(Protocol):
    """The engine that `Rows` needs."""

    limits: Limits

    def from_arrow(self, table: pa.Table) -> DataFrame:
        """The rows of a table as a frame."""

    def to_arrow(self, frame: DataFrame, limit: int | None = None) -> pa.Table:
        """The rows of a frame on the driver, at most `limit`."""

    def few(self, frame: DataFrame, limit: int) -> pa.Table | DataFrame:
        """The rows of a frame on the driver where there are at most `limit` and this saves time; else the frame."""


@dataclass(frozen=True, slots=True)
class TaskRows:
    """Rows that tasks of an engine make in Python, so that the tasks can write them too.

    Attributes:
        seeds: What the tasks begin with.
        work: Makes batches of rows out of batches of seeds.
    """

    seeds: DataFrame
    work: Batches

    def frame(self, schema: StructType) -> DataFrame:
        """The rows as a frame."""
        return with_schema(self.seeds.mapInArrow(self.work, schema), schema)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on rows that holds for the same rows in both places. It is never null."""

    column: Callable[[], Column]
    mask: Callable[[pa.Table], pa.ChunkedArray]

    def __invert__(self) -> Predicate:
        return Predicate(lambda: ~self.column(), lambda table: pc.invert(self.mask(table)))

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda: self.column() & other.column(), lambda table: pc.and_(self.mask(table), other.mask(table)))

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda: self.column() | other.column(), lambda table: pc.or_(self.mask(table), other.mask(table)))


def is_set(name: str) -> Predicate:
    """Whether a column is not null."""
    return Predicate(lambda: column(name).isNotNull(), lambda table: pc.is_valid(table.column(name)))


def is_null(name: str) -> Predicate:
    """Whether a column is null."""
    return Predicate(lambda: column(name).isNull(), lambda table: pc.is_null(table.column(name)))


def begins(name: str, text: str) -> Predicate:
    """Whether a column of strings begins with a text."""
    return Predicate(
        lambda: F.coalesce(column(name).startswith(text), F.lit(False)),
        lambda table: pc.fill_null(pc.starts_with(table.column(name), text), False),
    )


def contains(name: str, text: str) -> Predicate:
    """Whether a column of strings contains a text."""
    return Predicate(
        lambda: F.coalesce(column(name).contains(text), F.lit(False)),
        lambda table: pc.fill_null(pc.match_substring(table.column(name), text), False),
    )


def has_value(name: str, value: str | int) -> Predicate:
    """Whether a column of strings, or of integers, has a value."""
    return Predicate(
        lambda: F.coalesce(column(name) == F.lit(value), F.lit(False)),
        lambda table: pc.fill_null(pc.equal(table.column(name), value), False),
    )


def some_set(names: Sequence[str]) -> Predicate:
    """Whether one of some columns is not null."""
    return Predicate(
        lambda: any_of([column(name).isNotNull() for name in names]),
        lambda table: reduce(pc.or_, (pc.is_valid(table.column(name)) for name in names)),
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with known columns: those of `table` and those of `frame`, where each may be missing.

    Attributes:
        engine: Where the frame is evaluated; it moves rows from one place to the other.
        table: The rows on the driver.
        frame: The rows in the engine.
        good: The rows of the frame without its rejects, where a shorter plan gives them; None where no such plan is known.
        made_by: The tasks that make the rows of the frame, and further columns; None where the engine does.
    """

    engine: RowEngine
    table: pa.Table | None = None
    frame: DataFrame | None = None
    good: DataFrame | None = None
    made_by: TaskRows | None = None

    @classmethod
    def of(cls, engine: RowEngine, rows: pa.Table | DataFrame) -> Rows:
        """The rows of a table or a frame."""
        return cls(engine, table=rows) if isinstance(rows, pa.Table) else cls(engine, frame=rows)

    # -- where they are

    @property
    def are_here(self) -> bool:
        """Whether all rows are on the driver."""
        return self.frame is None

    @property
    def at_most(self) -> int | None:
        """The number of rows where all are on the driver, else None."""
        return self.as_table().num_rows if self.frame is None else None

    def as_table(self) -> pa.Table:
        """The rows on the driver. One query where some are in the engine."""
        if self.frame is None:
            assert self.table is not None  # rows are somewhere
            return self.table
        return self._with_table(self.engine.to_arrow(self.frame))

    def as_frame(self) -> DataFrame:
        """The rows in the engine."""
        return self._framed

    @cached_property
    def _framed(self) -> DataFrame:
        """The rows as one frame. A table is handed over once, however many plans read it."""
        parts = [] if self.frame is None else [self.frame]
        return united(*parts, *([] if self.table is None else [self.engine.from_arrow(self.table)]))

    def _with_table(self, fetched: pa.Table) -> pa.Table:
        if self.table is None:
            return fetched
        return pa.concat_tables([fetched, self.table.select(fetched.column_names).cast(fetched.schema)])

    def on_driver(self, limit: int | None = None) -> Rows:
        """The rows on the driver. One query where some are in the engine.

        Args:
            limit: Leave the rows where they are if the engine has more than this.
        """
        if self.frame is None:
            return self
        fetched = self.engine.to_arrow(self.frame, None if limit is None else limit + 1)
        return self if limit is not None and fetched.num_rows > limit else Rows(self.engine, self._with_table(fetched))

    def condensed(self) -> Rows:
        """Rows that are expected to be few, on the driver where they are and where the engine saves time by it."""
        if self.frame is None:
            return self
        return Rows.of(self.engine, self.engine.few(self._framed, self.engine.limits.small_rows))

    @property
    def content(self) -> pa.Table | DataFrame | TaskRows:
        """The rows as a table stores them: themselves, or the tasks that make them."""
        if self.frame is None:
            return self.as_table()
        return self.made_by or self.as_frame()

    def are_empty(self) -> bool:
        """Whether there are no rows. One query where some may be in the engine."""
        return not (self.table is not None and self.table.num_rows) and (self.frame is None or self.frame.isEmpty())

    def count(self) -> int:
        """The number of rows. One query where some are in the engine."""
        return (0 if self.table is None else self.table.num_rows) + (0 if self.frame is None else self.frame.count())

    # -- what they hold

    def extremes(self, name: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column, None without rows. One query where some rows are in the engine."""
        if self.frame is None:
            found = pc.min_max(self.as_table().column(name)).as_py()
        else:
            least, greatest = F.min(column(name)).alias("min"), F.max(column(name)).alias("max")
            [found] = self.engine.to_arrow(self.as_frame().agg(least, greatest)).to_pylist()
        return found["min"], found["max"]

    @property
    def columns(self) -> list[str]:
        """The names of the columns in order."""
        return self.frame.columns if self.frame is not None else self.as_table().column_names

    @property
    def _known(self) -> list[str] | None:
        """The names of the columns where they are known without asking the engine."""
        if self.frame is None:
            return self.columns
        schema = known(self.frame)
        return None if schema is None else list(schema.names)

    def select(self, names: Sequence[str]) -> Rows:
        """Columns of the rows."""
        if self._known == list(names):
            return self
        rows = self.each(lambda table: table.select(names), lambda frame: chosen(frame, names))
        return replace(rows, made_by=self.made_by)

    def without(self, *names: str) -> Rows:
        """The rows without some columns, which they need not have."""
        if self._known is not None and not set(names).intersection(self._known):
            return self
        rows = self.each(lambda table: table.drop_columns([name for name in names if name in table.column_names]), lambda frame: without(frame, *names))
        return replace(rows, made_by=self.made_by)

    def renamed(self, names: Mapping[str, str]) -> Rows:
        """The rows with new names (values) for some columns (keys)."""
        if not names:
            return self
        return self.each(lambda table: table.rename_columns([names.get(name, name) for name in table.column_names]), lambda frame: frame.withColumnsRenamed(dict(names)))

    def distinct(self, names: Sequence[str]) -> Rows:
        """The combinations of values that some columns have, each once."""
        return self.each(lambda table: table.group_by(list(names)).aggregate([]), lambda frame: chosen(frame, names).distinct())

    def where(self, predicate: Predicate) -> Rows:
        """The rows for which a predicate holds."""
        return self.each(lambda table: table.filter(predicate.mask(table)), lambda frame: frame.where(predicate.column()))

    def semi_join(self, keys: Rows, on: str) -> Rows:
        """The rows whose column `on` has one of the values that `keys` have there."""
        if self.are_here and keys.are_here:
            return Rows(self.engine, self.as_table().filter(pc.is_in(self.as_table().column(on), value_set=keys.as_table().column(on))))
        return Rows(self.engine, frame=of_keys(self.as_frame(), keys.as_frame(), on))

    def anti_join(self, keys: Rows, on: str) -> Rows:
        """The rows whose column `on` has none of the values that `keys` have there."""
        if self.are_here and keys.are_here:
            return Rows(self.engine, self.as_table().filter(pc.invert(pc.is_in(self.as_table().column(on), value_set=keys.as_table().column(on)))))
        return Rows(self.engine, frame=self.as_frame().join(keys.as_frame(), on, "left_anti"))

    def union(self, *others: Rows) -> Rows:
        """All rows of some with the same columns, whatever their order. Each stays where it is."""
        if not others:
            return self
        every = (self, *others)
        frames = [one.frame for one in every if one.frame is not None]
        here = [one.table for one in every if one.table is not None]
        tables = [one for one in here if one.num_rows] or ([] if frames else here[:1])
        table = pa.concat_tables([one.select(tables[0].column_names).cast(tables[0].schema) for one in tables]) if tables else None
        return Rows(self.engine, table, united(*frames) if frames else None)

    def through(self, work: Callable[[DataFrame], DataFrame]) -> Rows:
        """The rows that a plan of the engine makes of these, each by itself."""
        return Rows(self.engine, frame=work(self.as_frame()), good=None if self.good is None or self.table is not None else work(self.good))

    @property
    def accepted(self) -> Rows:
        """The rows without rejects where a shorter plan gives them, else all rows, rejects among them."""
        return self if self.good is None or self.table is not None else Rows(self.engine, frame=self.good)

    def each(self, on_table: Callable[[pa.Table], pa.Table], on_frame: Callable[[DataFrame], DataFrame]) -> Rows:
        """The rows after the same step in each place; the step looks at each row by itself, unless all are in one place."""
        table, frame, good = self.table, self.frame, self.good
        return Rows(self.engine, table if table is None else on_table(table), frame if frame is None else on_frame(frame), good if good is None else on_frame(good))
