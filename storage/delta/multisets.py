"""Rows of a table as multisets: each row with its number of copies, and the rows that leave.

Floats are compared by their bits, so that matches are exact; a Delta table that looks for 0.0 finds -0.0 too. Columns get numbers as names,
because Polars may read names as patterns, and because names may collide with names in this module.

Rows mostly differ in one column, such as an id. Where they do, they are met by this column, and pairs are compared in the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_
from threading import Lock

from changelog.lazy_imports import np, pa, pl

__all__ = ["Leaving", "net"]

_COUNT, _AT, _IMAGE = "__count", "__at", "__image"
_SAMPLE = 10_000
"""Rows of a sample."""


def net(rows: pa.Table, weights: pl.Series) -> tuple[pa.Table, pl.Series]:
    """Return each distinct row once, with the sum of its weights. Leaves out rows with sum 0."""
    plain = pl.DataFrame(rows)
    bits = as_bits(plain)
    stays = _uncancelled(bits, weights)
    if stays is not None:
        return rows.filter(stays.to_arrow()), weights.cast(pl.Int64).filter(stays)
    frame = bits.with_columns(weights.cast(pl.Int64).alias(_COUNT))
    summed = frame.group_by(pl.all().exclude(_COUNT), maintain_order=True).agg(pl.col(_COUNT).sum()).filter(pl.col(_COUNT) != 0)
    floats = [str(at) for at, kind in enumerate(plain.dtypes) if kind.is_float()]
    images = summed.drop(_COUNT).with_columns(pl.col(floats).reinterpret(dtype=pl.Float64))
    return images.to_arrow().rename_columns(rows.column_names).cast(rows.schema), summed[_COUNT]


def _uncancelled(bits: pl.DataFrame, weights: pl.Series) -> pl.Series | None:
    """Return which rows have none of the other sign that is equal. None where a sign may have a row twice, or weights are not 1 and -1."""
    name = _telling(bits)
    if name is None or not (weights.abs() == 1).all():
        return None
    came, gone = ((weights == sign).arg_true() for sign in (1, -1))
    sides = [_placed(bits[name].gather(at), at, place) for at, place in ((came, _AT), (gone, _IMAGE))]
    if any(side[name].n_unique() < side.height for side in sides):
        return None
    met = sides[0].join(sides[1], on=name, nulls_equal=True)
    equal = met.filter(_agree(bits, met[_AT], bits, met[_IMAGE]))
    return pl.repeat(True, bits.height, eager=True).scatter(pl.concat([equal[_AT], equal[_IMAGE]]), False)


def _telling(bits: pl.DataFrame) -> str | None:
    """Return the column with the most values in a sample; None without rows."""
    if bits.is_empty():
        return None
    sample = bits.gather_every(max(1, bits.height // _SAMPLE))
    return max(bits.columns, key=lambda name: sample[name].n_unique())


def _placed(values: pl.Series, places: pl.Series, name: str) -> pl.DataFrame:
    return pl.DataFrame([values, places.alias(name)])


def _agree(one: pl.DataFrame, places: pl.Series, other: pl.DataFrame, others: pl.Series) -> pl.Series:
    """Return whether pairs of rows are equal, by their places in two frames of the same columns."""
    return reduce(and_, (one[name].gather(places).eq_missing(other[name].gather(others)) for name in one.columns))


def as_bits(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with numbers as column names, and floats as integers of the same bits."""
    bits = frame.with_columns(pl.col(pl.Float64).reinterpret(dtype=pl.Int64))
    bits.columns = [str(at) for at in range(bits.width)]
    return bits


def _zeros_alike(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `as_bits` without the sign of zeros."""
    return as_bits(frame.with_columns(pl.col(pl.Float64) + 0.0))  # -0.0 + 0.0 is 0.0


class Leaving:
    """Rows that leave a table, each with its number of copies. Several threads may search at the same time."""

    def __init__(self, rows: pl.DataFrame, copies: pl.Series) -> None:
        self.rows = rows
        self._bits = as_bits(rows)
        self._left = copies.cast(pl.Int64).to_numpy().copy()
        self._telling = _telling(self._bits)
        self._lock = Lock()

    def out_of(self, frame: pl.DataFrame, among: pl.Series | None = None) -> pl.Series:
        """Return the positions of the rows of a frame that leave. Of each row, at most the copies that no other frame had.

        Args:
            frame: The frame.
            among: The places of the leaving rows that it may hold. None: of all.
        """
        found = self._equal(as_bits(frame), pl.int_range(self._bits.height, eager=True) if among is None else among)
        once = found[_IMAGE].n_unique() == found.height
        nth = np.ones(found.height, np.int64) if once else found.select(pl.int_range(1, pl.len() + 1).over(_IMAGE)).to_series().to_numpy()
        images = found[_IMAGE].to_numpy()
        with self._lock:
            taken = nth <= self._left[images]
            np.subtract.at(self._left, images[taken], 1)
        return found[_AT].filter(pl.Series(taken))

    def _equal(self, bits: pl.DataFrame, among: pl.Series) -> pl.DataFrame:
        """Return the places of equal rows: in a frame, and among the leaving ones."""
        name = self._telling
        if name is None:
            return pl.DataFrame(schema={_AT: pl.UInt32, _IMAGE: pl.UInt32})
        images, rows = _placed(self._bits[name].gather(among), among, _IMAGE), bits.select(name).with_row_index(_AT)
        if images[name].n_unique() == images.height:
            met = rows.join(images, on=name, nulls_equal=True).select(_AT, _IMAGE)
            return met.filter(_agree(bits, met[_AT], self._bits, met[_IMAGE]))
        likely = bits.with_row_index(_AT).filter(pl.col(name).is_in(images[name].unique().implode(), nulls_equal=True))
        whole = self._bits[among].with_columns(among.alias(_IMAGE))
        return likely.join(whole, on=bits.columns, nulls_equal=True).select(_AT, _IMAGE)

    def staying(self, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Return the rows of frames that a Delta table finds equal to a leaving row, but that do not leave."""
        leaving, found = _zeros_alike(self.rows), [self.rows.clear()]
        for rows in frames:
            alike = _zeros_alike(rows).with_row_index(_AT).join(leaving, on=leaving.columns, how="semi", nulls_equal=True)[_AT]
            found.append(rows[alike.filter(~alike.is_in(self.out_of(rows).implode()))])
        return pl.concat(found)

    @property
    def all_gone(self) -> bool:
        """Whether all copies of all rows were found."""
        return not (self._left > 0).any()
