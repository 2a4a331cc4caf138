"""Decoding of many keys at once, on the driver: where positions and values end, and the numbers of positions. Single keys: `encoding`, `positions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import polars as pl

from changelog.lazy_imports import pa

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Bytes: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"

_WIDTH = 6
_FIXED = {"int": 9, "float": 9, "date": 9, "date_time": 9, "bool": 2, "decimal": 33}
_PADDING = bytes(16)
"""Bytes after the last key, so that reads past its end stay inside the array."""


@dataclass(frozen=True, slots=True)
class KeyBytes:
    """Keys as one array of bytes, with the begin and end of each. Places within a key count from its begin."""

    data: Bytes
    begins: Numbers
    ends: Numbers

    @classmethod
    def of(cls, keys: pl.Series) -> KeyBytes:
        """Return the bytes of a binary column without nulls."""
        array = keys.rechunk().to_arrow().cast(pa.large_binary())
        _, offsets, data = array.buffers()
        bounds = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8) if len(array) else np.zeros(1, np.int64)
        return cls(np.frombuffer((b"" if data is None else data.to_pybytes()) + _PADDING, np.uint8), bounds[:-1], bounds[1:])

    def start(self) -> Numbers:
        """Return the first place of each key."""
        return np.zeros(len(self.begins), np.int64)

    def at(self, places: Numbers) -> Bytes:
        """Return the byte at one place of each key."""
        return cast("Bytes", self.data[self.begins + places])

    def label_ends(self, places: Numbers) -> Numbers:
        """Return the place after the position that begins at each place. Raises ValueError where none begins."""
        found = places + _WIDTH
        while True:
            self._within(found + 1)
            closing = self.at(found)
            if not closing.any():
                return found + 1
            if (closing > 1).any():
                raise ValueError("a key has no label where one begins")
            found = np.where(closing == 1, found + _WIDTH + 1, found)

    def first_numbers(self, places: Numbers) -> Numbers:
        """Return the first number of the position that begins at each place."""
        found = np.zeros(len(places), np.int64)
        for at in range(_WIDTH):
            found = (found << 8) | self.at(places + at)
        return found

    def value_ends(self, places: Numbers, types: Sequence[str]) -> Numbers:
        """Return the place after the tuple of values of these types that begins at each place. Raises ValueError where none begins."""
        for kind in types:
            tags = self.at(places)
            if not np.isin(tags, (1, 2)).all():
                raise ValueError(f"a key has no value of ({', '.join(types)}) where one begins")
            behind = places + _FIXED[kind] if kind in _FIXED else self._text_ends(places + 1)
            places = np.where(tags == 1, behind, places + 1)
            self._within(places)
        return places

    def _text_ends(self, places: Numbers) -> Numbers:
        """Return the place after the text that begins at each place. Two bytes 00 end a text, and occur nowhere within it."""
        zero = self.data == 0
        closings = np.flatnonzero(zero[:-1] & zero[1:])
        return cast("Numbers", closings[np.searchsorted(closings, self.begins + places)] + 2 - self.begins)

    def _within(self, places: Numbers) -> None:
        if (self.begins + places > self.ends).any():
            raise ValueError("a key ends within a label or a value")


def bare_keys(keys: pl.Series) -> pl.Series:
    """Return the keys of records without the mark of rejects."""
    rows = keys.to_frame("key").with_columns(marked=pl.col("key").bin.ends_with(b"!"))
    length = pl.col("key").bin.size() - pl.col("marked").cast(pl.UInt32)
    return rows.select(pl.when("marked").then(pl.col("key").bin.slice(0, length)).otherwise("key").alias("key"))["key"]


def arrow_keys(keys: pl.Series) -> pa.Array:
    """Return the keys in the plain Arrow type."""
    return keys.rechunk().to_arrow().cast(pa.binary())
