"""The tables of db-benchmark as CSV files, by its published scripts: `x` for group-by (`G1_1e7_1e2_0_0`), `lhs`, `small`, `medium` and `big` for joins (`J1_1e7_NA_0_0`).

Numbers and texts of a column are spread evenly. Nine tenths of the keys of a join lie on both sides, a tenth on each side alone.
What differs: with fewer than a million rows the small table keeps ten rows, and columns with few values have ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.versions import corrected_place, write_once

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

VERSIONS: Final = ("first run", "0.1 % corrected")
GROUPS, FEWER_GROUPS = 100, 10
"""The number of values of the columns with few values; the others have as many as there are rows for each of these."""
MILLION: Final = 1_000_000
INTEGERS: Final = ("id1", "id2", "id3")
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "x": {**dict.fromkeys(("id1", "id2", "id3"), "VARCHAR"), **dict.fromkeys(("id4", "id5", "id6", "v1", "v2"), "BIGINT"), "v3": "DOUBLE"},
    "lhs": {**dict.fromkeys(INTEGERS, "BIGINT"), **dict.fromkeys(("id4", "id5", "id6"), "VARCHAR"), "v1": "DOUBLE"},
    "small": {"id1": "BIGINT", "id4": "VARCHAR", "v2": "DOUBLE"},
    "medium": {"id1": "BIGINT", "id2": "BIGINT", "id4": "VARCHAR", "id5": "VARCHAR", "v2": "DOUBLE"},
    "big": {**dict.fromkeys(INTEGERS, "BIGINT"), **dict.fromkeys(("id4", "id5", "id6"), "VARCHAR"), "v2": "DOUBLE"},
}
CORRECTED: Final[Mapping[str, str]] = {"x": "v3", "lhs": "v1", "big": "v2"}
"""The column in which one value of a thousand changes."""


def write_versions(folder: Path, rows: float, share: int) -> Path:
    """Write a folder `0` and a folder `1` with corrections, each with all tables. A folder that is there already is kept.

    Args:
        folder: What holds the versions.
        rows: The number of rows of the large tables.
        share: One row of this number is corrected.
    """
    return write_once(folder, lambda place: _write_versions(place, int(rows), share))


def _write_versions(folder: Path, rows: int, share: int) -> None:
    import polars as pl

    first, second = (folder / str(version) for version in range(len(VERSIONS)))
    first.mkdir()
    second.mkdir()
    for name, frame in frames(rows).items():
        frame.write_csv(first / f"{name}.csv", float_precision=6)
        if column := CORRECTED.get(name):
            chosen = pl.int_range(pl.len()) % share == corrected_place(share)
            frame.with_columns(pl.when(chosen).then(100 - pl.col(column)).otherwise(column).alias(column)).write_csv(second / f"{name}.csv", float_precision=6)
        else:
            (second / f"{name}.csv").hardlink_to(first / f"{name}.csv")


def frames(rows: int) -> Mapping[str, pl.DataFrame]:
    """All tables by name."""
    import numpy as np

    random = np.random.default_rng(108)
    keys = [_keys(max(rows // divisor, 10), random) for divisor in (MILLION, 1000, 1)]
    return {
        "x": _grouped(rows, random),
        "lhs": _joined(rows, keys, "lhs", random),
        "small": _joined(len(keys[0]["lhs"]), keys[:1], "other", random),
        "medium": _joined(len(keys[1]["lhs"]), keys[:2], "other", random),
        "big": _joined(rows, keys, "other", random),
    }


def _grouped(rows: int, random: np.random.Generator) -> pl.DataFrame:
    import polars as pl

    few = GROUPS if rows >= MILLION else FEWER_GROUPS
    many = max(rows // few, 1)
    widths = {"id1": (few, 3), "id2": (few, 3), "id3": (many, 10)}
    texts = {name: _texts(pl.Series(random.integers(1, count + 1, rows)), width) for name, (count, width) in widths.items()}
    numbers = {name: random.integers(1, count + 1, rows) for name, count in (("id4", few), ("id5", few), ("id6", many), ("v1", 5), ("v2", 15))}
    return pl.DataFrame({**texts, **numbers, "v3": (random.random(rows) * 100).round(6)})


def _keys(count: int, random: np.random.Generator) -> Mapping[str, NDArray[np.int64]]:
    """`count` keys for each side. Nine tenths are on both sides."""
    apart = max(count // 10, 1)
    keys = random.permutation(count + apart) + 1
    return {"lhs": keys[:count], "other": keys[apart:]}


def _joined(rows: int, keys: Sequence[Mapping[str, NDArray[np.int64]]], side: str, random: np.random.Generator) -> pl.DataFrame:
    """Keys of one side: each once where there are as many as rows, else by chance; then the same as texts; then a value."""
    import polars as pl

    chosen = [values[side] if len(values[side]) == rows else random.choice(values[side], rows) for values in keys]
    numbers = {f"id{place}": column for place, column in enumerate(chosen, 1)}
    texts = {f"id{place}": pl.Series(column).cast(pl.String).str.replace("^", "id") for place, column in enumerate(chosen, 4)}
    return pl.DataFrame({**numbers, **texts, "v1" if side == "lhs" else "v2": (random.random(rows) * 100).round(6)})


def _texts(numbers: pl.Series, width: int) -> pl.Series:
    import polars as pl

    return numbers.cast(pl.String).str.zfill(width).str.replace("^", "id")
