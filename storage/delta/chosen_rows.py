"""Some rows of a Delta table on the driver, chosen file by file by the values of few columns.

Many scattered rows lie in nearly every page. Polars tests the values of few columns in one pass and decodes the other columns where these fit, in less time than a query
needs to test many conditions.
"""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter, or_
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from changelog.arrow_algebra import of_last_epochs
from changelog.columns import EPOCH, KEY
from changelog.lazy_imports import np, pa, pc, pl
from storage.delta.columns import in_place
from storage.delta.data_files import TableFiles
from storage.engines.arrow import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable
    from numpy.typing import NDArray

    from storage.delta.data_files import DataFile

    Bounds: TypeAlias = Mapping[str, tuple[Any, Any]]
    Mask: TypeAlias = NDArray[np.bool_]

__all__ = ["Choice", "FileSpans", "InRanges", "InSpans", "InValues", "blank_columns", "chosen_rows", "newest_rows"]


_ANY: Final = (-(1 << 63), (1 << 63) - 1)


class Choice(Protocol):
    """Chooses rows by some of their columns."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns that it needs. They are Errata's own."""

    def may_choose(self, bounds: Bounds) -> bool:
        """Return whether a file may have such rows, by the lowest and highest values of columns, where known."""

    def near(self, bounds: Bounds) -> pl.Expr:
        """Return a quick test that all chosen rows of a file with these bounds pass, and few others."""

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return which rows are chosen."""


@dataclass(frozen=True, slots=True)
class InRanges:
    """Rows with a binary column in one of some ranges. Ranges ascend and do not overlap; each includes its first value and excludes its second."""

    column: str
    ranges: Sequence[tuple[bytes, bytes]]

    @property
    def columns(self) -> Sequence[str]:
        """The column."""
        return (self.column,)

    def may_choose(self, bounds: Bounds) -> bool:
        """Return whether a range meets the bounds of the column."""
        if self.column not in bounds:
            return bool(self.ranges)
        low, high = bounds[self.column]
        first = bisect_right(self.ranges, low, key=itemgetter(1))  # the first range that ends behind the lowest value
        return first < len(self.ranges) and self.ranges[first][0] <= high

    def near(self, bounds: Bounds) -> pl.Expr:
        """Return whether a value lies between the first range's begin and the last range's end."""
        return pl.col(self.column).is_between(self.ranges[0][0], self.ranges[-1][1])

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return the rows within the ranges. In a sorted file the ends of the ranges are looked up, else each value."""
        values = rows[self.column]
        ends = pl.Series([end for pair in self.ranges for end in pair], dtype=pl.Binary)
        if values.is_sorted():
            at = values.search_sorted(ends, "left").to_numpy().astype(np.int64)
            return _between(at[::2], at[1::2], len(values))
        return (ends.search_sorted(values, "right").to_numpy() & 1).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class InValues:
    """Rows with a binary column that has one of some values, which ascend."""

    column: str
    values: Sequence[bytes]

    @property
    def columns(self) -> Sequence[str]:
        """The column."""
        return (self.column,)

    def may_choose(self, bounds: Bounds) -> bool:
        """Return whether a value lies within the bounds of the column."""
        if self.column not in bounds:
            return bool(self.values)
        low, high = bounds[self.column]
        first = bisect_left(self.values, low)
        return first < len(self.values) and self.values[first] <= high

    def near(self, bounds: Bounds) -> pl.Expr:
        """Return whether a row has one of the values."""
        low, high = (0, len(self.values)) if self.column not in bounds else (bisect_left(self.values, bounds[self.column][0]), bisect_right(self.values, bounds[self.column][1]))
        return pl.col(self.column).is_in(pl.Series(self.values[low:high], dtype=pl.Binary).implode())

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return the rows with one of the values."""
        chosen: Mask = rows[self.column].is_in(pl.Series(self.values, dtype=pl.Binary).implode()).fill_null(value=False).to_numpy().copy()
        return chosen


@dataclass(frozen=True, slots=True)
class FileSpans:
    """Spans of rows of a file of a source, each with the epoch that read it.

    Attributes:
        file: The file, as the column `_file` names it.
        epochs: The epoch of each span.
        first: Its first row.
        last: Its last row.
    """

    file: str
    epochs: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def may_choose(self, bounds: Bounds) -> bool:
        """Return whether a span meets the bounds of epochs and rows."""
        (oldest, newest), (low, high) = (bounds.get(name, _ANY) for name in (EPOCH, "_row"))
        return bool(((self.epochs >= oldest) & (self.epochs <= newest) & (self.first <= high) & (self.last >= low)).any())

    def rows(self, bounds: Bounds) -> NDArray[np.int64]:
        """Return the numbers of the rows within the spans and the bounds."""
        low, high = bounds.get("_row", _ANY)
        own = (self.first <= high) & (self.last >= low)
        first = np.maximum(self.first[own], low)
        counts = np.minimum(self.last[own], high) - first + 1
        ends = np.cumsum(counts)
        numbers: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + counts, counts)
        return numbers

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return the rows within the spans."""
        epochs, found = rows[EPOCH].to_numpy(), np.zeros(rows.height, np.bool_)
        numbers = rows["_row"].fill_null(0).to_numpy()
        low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
        for epoch in np.intersect1d(rows[EPOCH].unique().to_numpy(), self.epochs):
            own = (self.epochs == epoch) & (self.first <= high) & (self.last >= low)
            found |= _between(self.first[own] - low, self.last[own] + 1 - low, high - low + 1)[numbers - low] & (epochs == epoch)
        found &= (rows["_file"] == self.file).fill_null(value=False).to_numpy()
        return found


@dataclass(frozen=True, slots=True)
class InSpans:
    """Rows within the spans of some files."""

    files: Sequence[FileSpans]

    @property
    def columns(self) -> Sequence[str]:
        """The columns that hold epoch, file and row."""
        return (EPOCH, "_file", "_row")

    def may_choose(self, bounds: Bounds) -> bool:
        """Return whether a span meets the bounds."""
        return any(file.may_choose(bounds) for file in self.files)

    def near(self, bounds: Bounds) -> pl.Expr:
        """Return whether a row has the number of one within the spans."""
        return pl.col("_row").is_in(pl.Series(np.unique(np.concatenate([file.rows(bounds) for file in self.files]))).implode())

    def mask(self, rows: pl.DataFrame) -> Mask:
        """Return the rows within the spans."""
        inside: Mask = reduce(or_, (file.mask(rows) for file in self.files), np.zeros(rows.height, np.bool_))
        return inside


def _between(starts: NDArray[np.int64], stops: NDArray[np.int64], count: int) -> Mask:
    """Return which of `count` places lie in one of some ranges, ends excluded. Ranges may overlap, and reach beyond the first and the last place."""
    steps = np.zeros(count + 1, np.int64)
    np.add.at(steps, np.clip(starts, 0, count), 1)
    np.add.at(steps, np.clip(stops, 0, count), -1)
    inside: Mask = np.cumsum(steps[:-1]) > 0
    return inside


def chosen_rows(table: DeltaTable, names: Sequence[str], choice: Choice, last_epoch: int | None = None, most: int | None = None) -> pa.Table | None:
    """Return some stored columns of the chosen rows up to an epoch, in plain types and in any order; None where there are more than `most`. Raises OSError."""
    schema = _schema(table, names)
    files, made, count = TableFiles(table), [schema.empty_table()], 0
    for one in files.all():
        made.append(_File(files, one).rows(schema, choice, last_epoch))
        count += made[-1].num_rows
        if most is not None and count > most:
            return None
    return pa.concat_tables(made)


def newest_rows(table: DeltaTable, names: Sequence[str], keys: Sequence[bytes], last_epoch: int | None = None, most: int | None = None) -> pa.Table | None:
    """Return some stored columns of the rows that some keys have in the last of their epochs, in any order; None where more than `most` are read. Raises OSError.

    Files are read from the newest one on, until the others are older than what was found of each key. So a key costs no more where it has rows of many epochs.

    Args:
        table: The table.
        names: The columns, `_key` and `_epoch` among them.
        keys: The keys, ascending.
        last_epoch: The last epoch that counts.
        most: The most rows.
    """
    files = TableFiles(table)
    ordered = sorted(((one.bounds.get(EPOCH, _ANY)[1], one) for one in files.all()), key=itemgetter(0), reverse=True)
    behind = [*(last for last, _ in ordered[1:]), _ANY[0]]
    schema = _schema(table, names)
    made, left, count = [schema.empty_table()], InValues(KEY, keys), 0
    unsettled = made[0].select([KEY, EPOCH])
    for (_, one), older in zip(ordered, behind, strict=False):
        found = _File(files, one).rows(schema, left, last_epoch)
        made.append(found)
        count += found.num_rows
        if most is not None and count > most:
            return None
        unsettled = pa.concat_tables([unsettled, found.select([KEY, EPOCH])])
        is_newer = pc.greater(unsettled.column(EPOCH), older)
        settled, unsettled = set(unsettled.filter(is_newer).column(KEY).to_pylist()), unsettled.filter(pc.invert(is_newer))
        if settled:
            left = InValues(KEY, [key for key in left.values if key not in settled])
        if not left.values:
            break
    return of_last_epochs(pa.concat_tables(made))


def _schema(table: DeltaTable, names: Sequence[str]) -> pa.Schema:
    """The plain types of some stored columns."""
    kinds = {where.column.name: where.column.type for where in in_place(table.schema().fields)}
    return pa.schema([pa.field(name, kinds[name]) for name in names])


def blank_columns(table: DeltaTable, names: Collection[str]) -> frozenset[str]:
    """Return the columns in which no row of a local table has a value. A column that a file lacks has none there."""
    import pyarrow.parquet as pq

    files, blank = TableFiles(table), frozenset(names)
    places = [files.place(one) for one in files.all()]
    if None in places:
        return frozenset()
    for place in places:
        metadata = pq.read_metadata(place)
        there = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
        blank = frozenset(name for name in blank if name not in there or _has_none(metadata, there[name]))
    return blank


def _has_none(metadata: Any, place: int) -> bool:
    """Return whether the statistics of a file say that a column has only nulls."""
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    statistics = [(group.column(place).statistics, group.num_rows) for group in groups]
    return all(found is not None and found.has_null_count and found.null_count == rows for found, rows in statistics)


@dataclass(frozen=True, slots=True)
class _File:
    """A data file of a table."""

    files: TableFiles
    file: DataFile

    def rows(self, schema: pa.Schema, choice: Choice, last_epoch: int | None) -> pa.Table:
        """Return the chosen rows in the columns of a schema. A column that the file lacks is null."""
        try:
            content = self._content()
            bounds = _bounds(content(), choice.columns)
            if not choice.may_choose(bounds):
                return schema.empty_table()
            tested = [*dict.fromkeys([EPOCH, *choice.columns])]
            rows = self._near(content, schema, choice.near(bounds), tested)
            seen = pl.DataFrame({name: rows.column(name) for name in tested})
            mask = choice.mask(seen)
            mask &= True if last_epoch is None else (seen[EPOCH] <= last_epoch).to_numpy()
            found = plain(rows.filter(pa.array(mask)))
            columns = [found.column(one.name).cast(one.type) if one.name in found.column_names else pa.nulls(found.num_rows, one.type) for one in schema]
            return pa.Table.from_arrays(columns, schema=schema)
        except (pl.exceptions.PolarsError, pa.ArrowInvalid) as problem:
            raise OSError(f"{self.file.path}: {problem}") from problem

    def _content(self) -> Callable[[], Any]:
        """Return what opens the file: its path where it is local, else its bytes."""
        place = self.files.place(self.file)
        if place is not None:
            return lambda: place
        data = self.files.content(self.file)
        return lambda: io.BytesIO(data)

    def _near(self, content: Callable[[], Any], schema: pa.Schema, near: pl.Expr, tested: Sequence[str]) -> pa.Table:
        """Return the rows that pass a quick test, or more. They have the tested columns, and what the file has of a schema."""
        places = {name: place for place, name in enumerate(pl.read_parquet_schema(content()))}
        names = [*dict.fromkeys([*(name for name in schema.names if name in places), *tested])]
        if any(pa.types.is_timestamp(kind) for kind in schema.types):
            import pyarrow.parquet as pq

            file = pq.ParquetFile(content(), coerce_int96_timestamp_unit="us")
            if any(file.schema.column(at).physical_type == "INT96" for at in range(len(file.schema))):  # Spark writes nanoseconds, which end in the year 2262
                return file.read(names)
        rows = pl.scan_parquet(content(), glob=False, parallel="prefiltered").filter(near)
        return rows.select(pl.nth(*(places[name] for name in names))).collect().to_arrow()  # by places, because Polars reads some names as patterns


def _bounds(content: Any, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Return the lowest and highest value of columns, as a file gives them. Bounds of bytes may be wider than the values."""
    import pyarrow.parquet as pq

    metadata, found = pq.read_metadata(content), dict[str, tuple[Any, Any]]()
    places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    for name in (name for name in names if name in places):
        statistics = [metadata.row_group(group).column(places[name]).statistics for group in range(metadata.num_row_groups)]
        if statistics and all(one is not None and one.has_min_max for one in statistics):
            found[name] = min(one.min for one in statistics), max(one.max for one in statistics)
    return found
