"""Rows of a table as multisets: each row with its number of copies, and the rows that leave.

Floats are compared by their bits, so that matches are exact; a Delta table that looks for 0.0 finds -0.0 too. Columns get numbers as names,
because Polars may read names as patterns, and because names may collide with names in this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from changelog.lazy_imports import pa, pl

__all__ = ["Leaving", "net"]

_COUNT, _AT, _IMAGE, _NTH = "__count", "__at", "__image", "__nth"


def net(rows: pa.Table, weights: pl.Series) -> tuple[pa.Table, pl.Series]:
    """Return each distinct row once, with the sum of its weights. Leaves out rows with sum 0."""
    plain = pl.DataFrame(rows)
    frame = as_bits(plain).with_columns(weights.cast(pl.Int64).alias(_COUNT))
    summed = frame.group_by(pl.all().exclude(_COUNT), maintain_order=True).agg(pl.col(_COUNT).sum()).filter(pl.col(_COUNT) != 0)
    floats = [str(at) for at, kind in enumerate(plain.dtypes) if kind.is_float()]
    images = summed.drop(_COUNT).with_columns(pl.col(floats).reinterpret(dtype=pl.Float64))
    return images.to_arrow().rename_columns(rows.column_names).cast(rows.schema), summed[_COUNT]


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
        bits = as_bits(rows)
        self._names = bits.columns
        self._images = bits.with_row_index(_IMAGE)
        self._left = pl.DataFrame({_IMAGE: self._images[_IMAGE], _COUNT: copies.cast(pl.Int64)})
        self._selective = max(self._names, key=lambda name: bits[name].n_unique())
        self._lock = Lock()

    def out_of(self, frame: pl.DataFrame) -> pl.Series:
        """Return the positions of the rows of a frame that leave. Of each row, at most the copies that no other frame had."""
        likely = pl.col(self._selective).is_in(self._images[self._selective].unique().implode(), nulls_equal=True)
        near = as_bits(frame).with_row_index(_AT).filter(likely)
        found = near.join(self._images, on=self._names, how="inner", nulls_equal=True).select(_AT, _IMAGE)
        with self._lock:
            numbered = found.with_columns(pl.int_range(1, pl.len() + 1).over(_IMAGE).alias(_NTH))
            taken = numbered.join(self._left, on=_IMAGE).filter(pl.col(_NTH) <= pl.col(_COUNT))
            self._count_down(taken)
        return taken[_AT]

    def staying(self, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Return the rows of frames that a Delta table finds equal to a leaving row, but that do not leave."""
        leaving, found = _zeros_alike(self.rows), [self.rows.clear()]
        for rows in frames:
            alike = _zeros_alike(rows).with_row_index(_AT).join(leaving, on=self._names, how="semi", nulls_equal=True)[_AT]
            found.append(rows[alike.filter(~alike.is_in(self.out_of(rows).implode()))])
        return pl.concat(found)

    def _count_down(self, taken: pl.DataFrame) -> None:
        fewer = taken.group_by(_IMAGE).agg(pl.len().cast(pl.Int64).alias(_NTH))
        left = self._left.join(fewer, on=_IMAGE, how="left")
        self._left = left.select(_IMAGE, pl.col(_COUNT) - pl.col(_NTH).fill_null(0))

    @property
    def all_gone(self) -> bool:
        """Whether all copies of all rows were found."""
        return not (self._left[_COUNT] > 0).any()
