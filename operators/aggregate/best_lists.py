"""The lists of `best_values` on the driver and in the workers of an engine: values of many groups at once, as Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog.arrow_algebra import weights
from changelog.lazy_imports import np, pa, pc, pl
from changelog.rows import Limits
from operators.aggregate.best_values import RECORD, BestValues

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAN = 0x7FF8 << 48


@dataclass(frozen=True, slots=True)
class Entries:
    """Values of groups.

    Attributes:
        at: The number of the group of each value.
        values: The values.
        keys: The keys of their records, where these order them.
        counts: How many rows have each value; below zero: had it.
    """

    at: NDArray[np.int64]
    values: pa.Array
    keys: pa.Array | None
    counts: NDArray[np.int64]

    def where(self, kept: NDArray[np.bool_]) -> Entries:
        """Some of the entries."""
        mask = pa.array(kept)
        return Entries(self.at[kept], self.values.filter(mask), None if self.keys is None else self.keys.filter(mask), self.counts[kept])

    @property
    def ranks(self) -> pl.Series:
        """The ranks that order the entries; null where there is no value."""
        return _ranks(self.values if self.keys is None else self.keys)


def followed(states: pa.Table, before: pa.Table | None, op_rows: pa.Table, bests: Sequence[BestValues], limits: Limits) -> pa.Table:
    """Return states with the lists that op rows leave.

    Args:
        states: The states after the op rows, without lists.
        before: The states before them, lists among their columns; None where there are none.
        op_rows: The op rows, by `_key` of their group, with `RECORD`.
        bests: The calls.
        limits: How long lists may be.
    """
    groups = _numbered(states)
    at, weight, count = _places(groups, op_rows), weights(op_rows), states.num_rows
    for one in bests:
        change = _of_rows(op_rows, one, at, weight)
        parts = [change] if before is None else _with_known(before, one, _places(groups, before), count, change)
        states = _with_lists(states, one, _best(parts, count, one, limits))
    return states


def merged(states: pa.Table, bests: Sequence[BestValues], limits: Limits) -> pa.Table:
    """Return states with their lists after a large delta. Only the best value that came and the best that went are known (`BestValues.changes`).

    A list that may have lost a value is empty: it has run out. A list whose last values may have lost their place ends ahead of them.
    """
    for one in bests:
        came, rank, went = (_whole(states.column(name)) for name in one.changes)
        every = np.arange(states.num_rows)
        known = _stored(states, one, every)
        ranks, floors = _ranks(rank), _floors(known, states.num_rows)
        lost = _reaching(_ranks(went), floors, one)
        new = Entries(every, came, rank if one.by_key else None, np.ones(states.num_rows, np.int64)).where(_reaching(ranks, floors, one) & ~lost)
        bounds = pl.Series(np.where(np.isin(every, new.at), every, -1)).replace(-1, None)
        kept = _reaching(known.ranks, ranks.gather(bounds.gather(known.at)), one) & ~lost[known.at]
        states = _with_lists(states, one, _best([known.where(kept), new], states.num_rows, one, limits)).drop_columns(list(one.changes))
    return states


def merging(bests: Sequence[BestValues], limits: Limits, names: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """`merged` for batches of an engine, with the columns `names`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from merged(pa.Table.from_batches([batch]), bests, limits).select(names).combine_chunks().to_batches()

    return work


def run_out(states: pa.Table, bests: Sequence[BestValues]) -> NDArray[np.bool_]:
    """Whether a list of each state has run out: the group has values and the list has none."""
    found = np.zeros(states.num_rows, np.bool_)
    for one in bests:
        lengths = pc.list_value_length(states.column(one.values)).fill_null(0).to_numpy()
        found |= (lengths == 0) & (states.column(one.columns[0]).to_numpy() > 0)
    return found


def refilled(states: pa.Table, lists: pa.Table, bests: Sequence[BestValues], limits: Limits) -> pa.Table:
    """Return states with lists that were read anew (`_key` and the lists) in the place of theirs."""
    places = _places(_numbered(states), lists)
    for one in bests:
        known = _stored(states, one, np.arange(states.num_rows))
        parts = [known.where(~np.isin(known.at, places)), _stored(lists, one, places)]
        states = _with_lists(states, one, _best(parts, states.num_rows, one, limits))
    return states


def first_ones(states: pa.Table, bests: Sequence[BestValues]) -> pa.Table:
    """Return states with the best values in columns of their own (`BestValues.best`), without lists."""
    for one in bests:
        lists = _whole(states.column(one.values))
        begins, filled = lists.offsets.to_numpy()[:-1], pc.list_value_length(lists).fill_null(0).to_numpy() > 0
        found = lists.values.take(pa.array(begins, mask=~filled))
        states = states.append_column(one.best, found).drop_columns(list(one.lists))
    return states


def _numbered(states: pa.Table) -> pl.DataFrame:
    """The keys of groups with their numbers."""
    return pl.DataFrame({"key": states.column("_key")}).with_columns(at=pl.int_range(pl.len(), dtype=pl.Int64))


def _of_rows(op_rows: pa.Table, one: BestValues, at: NDArray[np.int64], weight: NDArray[np.int64]) -> Entries:
    """The entries of op rows. Of the zeros, which are equal, it is the one without a sign where values are compared."""
    values = _whole(op_rows.column(one.value))
    if one.by_key:
        found = Entries(at, values, _whole(op_rows.column(RECORD)), weight)
    else:
        found = Entries(at, pc.add(values, 0.0) if pa.types.is_floating(values.type) else values, None, weight)
    return found if one.with_nulls else found.where(values.is_valid().to_numpy(zero_copy_only=False))


def _with_known(before: pa.Table, one: BestValues, places: NDArray[np.int64], groups: int, change: Entries) -> list[Entries]:
    """The entries of prior lists, and the changes that these follow."""
    known, open_ = _stored(before, one, places), np.zeros(groups, np.bool_)
    open_[places] = before.column(one.columns[0]).to_numpy() > _counted(known, groups)[places]
    return [known, _within(known, change, open_, one)]


def _places(groups: pl.DataFrame, rows: pa.Table) -> NDArray[np.int64]:
    """The number of the group of each row, by `_key`."""
    return pl.DataFrame({"key": rows.column("_key")}).join(groups, on="key", how="left", maintain_order="left")["at"].to_numpy()


def _whole(values: pa.ChunkedArray) -> pa.Array:
    joined = values.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _ranks(values: pa.Array) -> pl.Series:
    """Values as what sorts and compares like them: floats as integers, NaN the greatest."""
    if not pa.types.is_floating(values.type):
        return pl.Series(values).cast(pl.Int8) if pa.types.is_boolean(values.type) else pl.Series(values)
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), _NAN, np.where(numbers < 0, -np.abs(numbers).view(np.int64), np.abs(numbers).view(np.int64)))
    return pl.Series(pa.array(bits, mask=values.is_null().to_numpy(zero_copy_only=False)))


def _images(values: pa.Array) -> pl.Series:
    """Values as what is equal where they are the same: floats by their bits, NaN as one."""
    if not pa.types.is_floating(values.type):
        return pl.Series(values)
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    return pl.Series(pa.array(np.where(np.isnan(numbers), _NAN, numbers.view(np.int64)), mask=values.is_null().to_numpy(zero_copy_only=False)))


def _stored(states: pa.Table, one: BestValues, places: NDArray[np.int64]) -> Entries:
    """The entries of the lists of states. `places`: the number of each state's group."""
    lists, beside = (_whole(states.column(name)) for name in one.lists)
    at, values = places[pc.list_parent_indices(lists).to_numpy()], pc.list_flatten(lists)
    if one.by_key:
        keys = pc.list_flatten(beside)
        return Entries(at, values, keys, np.ones(len(at), np.int64)).where(keys.is_valid().to_numpy(zero_copy_only=False))
    counts = np.ones(len(at), np.int64)
    counts[beside.is_valid().to_numpy(zero_copy_only=False)[pc.list_parent_indices(lists).to_numpy()]] = pc.list_flatten(beside).to_numpy()
    return Entries(at, values, None, counts).where(values.is_valid().to_numpy(zero_copy_only=False))


def _counted(entries: Entries, groups: int) -> NDArray[np.int64]:
    """How many rows the entries of each group have."""
    return np.bincount(entries.at, entries.counts, groups).astype(np.int64)


def _floors(known: Entries, groups: int) -> pl.Series:
    """The rank of the last entry of each group, null where it has none. Entries of a group are in order, the best one first."""
    last = np.full(groups, -1)
    last[known.at] = np.arange(len(known.at))  # of several the last one stays
    return known.ranks.gather(pl.Series(last).replace(-1, None))


def _reaching(ranks: pl.Series, bounds: pl.Series, one: BestValues) -> NDArray[np.bool_]:
    """Whether ranks are as good as bounds, or better. A rank that is null never is; any other is as good as a bound that is null."""
    good = ranks >= bounds if one.descending else ranks <= bounds
    return (good.fill_null(True) & ranks.is_not_null()).to_numpy()


def _within(known: Entries, change: Entries, open_: NDArray[np.bool_], one: BestValues) -> Entries:
    """The changes that lists have to follow: those beyond the floor of an open list are cut off."""
    floors = _floors(known, len(open_)).gather(change.at)
    return change.where(_reaching(change.ranks, floors, one) | ~open_[change.at])


def _best(parts: Sequence[Entries], groups: int, one: BestValues, limits: Limits) -> Mapping[str, pa.Array]:
    """The lists of all groups: entries that have rows left, the best first, as many as there is room for."""
    values = pa.concat_arrays([part.values.cast(parts[0].values.type) for part in parts])
    keys = None if parts[0].keys is None else pa.concat_arrays([part.keys for part in parts])
    every = Entries(np.concatenate([part.at for part in parts]), values, keys, np.concatenate([part.counts for part in parts]))
    given = pl.DataFrame({"at": every.at, "rank": every.ranks, "image": _images(values) if one.by_key else every.ranks, "rows": every.counts})
    left = (
        given.with_row_index("place")
        .group_by("at", "rank", "image")
        .agg(pl.col("rows").sum(), pl.col("place").filter(pl.col("rows") > 0).last())
        .filter(pl.col("rows") > 0)
        .sort("at", "rank", descending=[False, one.descending])
    )
    if left["place"].null_count():
        left = left.filter(pl.col("place").is_not_null())
    sizes = pl.Series(_bytes(values.take(left["place"].to_arrow()))) if one.is_wide else pl.zeros(len(left), dtype=pl.Int64, eager=True)
    room = (pl.int_range(pl.len()).over("at") == 0) | ((pl.int_range(pl.len()).over("at") < limits.best_values) & (pl.col("size").cum_sum().over("at") <= limits.best_bytes))
    left = left.with_columns(size=sizes).filter(room)
    places = left["place"].to_arrow()
    offsets = np.concatenate([[0], np.cumsum(np.bincount(left["at"].to_numpy(), minlength=groups))]).astype(np.int32)
    beside = left["rows"].to_arrow().cast(pa.int64()) if keys is None else keys.take(places)
    return {one.values: _lists(offsets, values.take(places)), one.beside: _lists(offsets, beside)}


def _bytes(values: pa.Array) -> pa.Array:
    """The size of each text."""
    return pc.binary_length(values).cast(pa.int64()).fill_null(0)


def _lists(offsets: NDArray[np.int32], values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=pa.list_(pa.field("element", values.type)))


def _with_lists(states: pa.Table, one: BestValues, lists: Mapping[str, pa.Array]) -> pa.Table:
    return pa.table({**{name: states.column(name) for name in states.column_names}, **lists})
