"""The input of the benchmark: CSV files of sales, the same bytes for the same number of rows everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

ACCOUNTS = 1000
HEADER = "id,account,quantity,price,day"


def write_sales(path: Path, rows: int, *, first: int = 1, seed: int = 7) -> Path:
    """Write `rows` sales, `id` from `first` on. 36 bytes a row, so five million are 182 MB. A file that is there already is kept."""
    if path.exists():
        return path
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    write_frame(sales(np.arange(first, first + rows), seed), partial)
    partial.rename(path)
    return path


def sales(ids: NDArray[np.int64], seed: int) -> pl.DataFrame:
    """A sale for each id: an account of 1000, a quantity, a price in cents, a day of one year. `seed` decides the values."""
    import numpy as np
    import polars as pl

    random, rows = np.random.default_rng(seed), len(ids)
    frame = pl.DataFrame(
        {
            "id": ids,
            "account": random.integers(0, ACCOUNTS, rows),
            "quantity": random.integers(1, 100, rows),
            "price": random.integers(100, 99_999, rows) / 100,
            "day": random.integers(0, 365, rows),
        }
    )
    return frame.with_columns(
        pl.format("a{}", pl.col("account").cast(pl.String).str.zfill(4)).alias("account"),
        (pl.date(2025, 1, 1) + pl.duration(days=pl.col("day"))).alias("day"),
    )


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write sales as a CSV file."""
    frame.write_csv(path, float_precision=2)


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
