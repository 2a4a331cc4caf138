"""The input of the benchmark: CSV files of sales, the same bytes for the same number of rows everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ACCOUNTS = 1000
HEADER = "id,account,quantity,price,day"


def write_sales(path: Path, rows: int, *, first: int = 1, seed: int = 7) -> Path:
    """Write `rows` sales, `id` from `first` on: an account of 1000, a quantity, a price in cents, a day of one year.

    36 bytes a row, so five million are 182 MB. `seed` decides the values; a file that is there already is kept.
    """
    if path.exists():
        return path
    import numpy as np
    import polars as pl

    random = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(
        {
            "id": np.arange(first, first + rows),
            "account": random.integers(0, ACCOUNTS, rows),
            "quantity": random.integers(1, 100, rows),
            "price": random.integers(100, 99_999, rows) / 100,
            "day": random.integers(0, 365, rows),
        }
    ).with_columns(
        pl.format("a{}", pl.col("account").cast(pl.String).str.zfill(4)).alias("account"),
        (pl.date(2025, 1, 1) + pl.duration(days=pl.col("day"))).alias("day"),
    )
    partial = path.with_suffix(".partial")
    frame.write_csv(partial, float_precision=2)
    partial.rename(path)
    return path


def correct_one_price(path: Path, row: int) -> None:
    """Give the `row`-th sale of a file another price, every other byte as it was, in a new file of the same name."""
    correct_prices(path, [row])


def correct_prices(path: Path, rows: Iterable[int]) -> None:
    """The same for several sales, in ascending order."""
    import numpy as np

    data = path.read_bytes()
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    pieces, at = [], 0
    for row in rows:
        start, end = int(ends[row - 1]) + 1, int(ends[row])
        cells = data[start:end].split(b",")
        cells[3] = b"1.01" if cells[3] != b"1.01" else b"1.02"
        pieces += [data[at:start], b",".join(cells)]
        at = end
    corrected = path.with_suffix(".corrected")
    corrected.write_bytes(b"".join([*pieces, data[at:]]))
    corrected.rename(path)
