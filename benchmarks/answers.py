"""Answers of queries as CSV files, and the first place where one differs from DuckDB's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

EXACT: Final = 1e-12
"""Floats agree to twelve digits; all else by every digit."""
ROUGH: Final = 1e-6
"""Spark and Sail cut the mean of decimals to six digits."""
FLOATS: Final = ("DOUBLE", "FLOAT")
WIDEST: Final = pl.Decimal(38, 12)


@dataclass(frozen=True, slots=True)
class Answer:
    """A CSV file, and the types in DuckDB of its columns."""

    file: Path
    types: Sequence[str]


def difference(found: Path, expected: Answer, digits: float = EXACT, *, ordered: bool = True) -> str | None:
    """The first place where an answer differs from the expected one, None where nothing differs.

    Args:
        found: A CSV file, or a folder with CSV files.
        expected: DuckDB's.
        digits: By how much floats may differ, in themselves and as a share.
        ordered: Whether the rows have to come in the same order.
    """
    ours, theirs = _texts(found), _texts(expected.file)
    if ours.shape != theirs.shape:
        return f"{ours.height} rows of {ours.width} columns, not {theirs.height} of {theirs.width}"
    left, right = (_typed(frame, expected.types) for frame in (ours, theirs))
    if not ordered:
        exact = [name for name, kind in zip(left.columns, expected.types, strict=True) if kind not in FLOATS]
        left, right = (frame.sort([*exact, *(set(frame.columns) - set(exact))], nulls_last=True) for frame in (left, right))
    pairs = zip(left.get_columns(), right.get_columns(), expected.types, strict=True)
    apart = [~_agrees(one, other, digits if kind in FLOATS else 0) for one, other, kind in pairs]
    rows = pl.DataFrame(apart).with_row_index().filter(pl.any_horizontal(pl.exclude("index")))
    if rows.is_empty():
        return None
    row = rows["index"][0]
    return f"row {row + 1} of {left.height} is {left.row(row)}, not {right.row(row)}"


def _texts(place: Path) -> pl.DataFrame:
    """The cells of one CSV file, or of all in a folder, columns named by number."""
    files = sorted(place.glob("*.csv")) if place.is_dir() else [place]
    frames = [pl.read_csv(file, infer_schema=False) for file in files]
    return pl.concat(frame.rename({name: str(number) for number, name in enumerate(frame.columns)}) for frame in frames)


def _typed(frame: pl.DataFrame, types: Iterable[str]) -> pl.DataFrame:
    return frame.select(_value(pl.col(name), kind) for name, kind in zip(frame.columns, types, strict=True))


def _value(cell: pl.Expr, kind: str) -> pl.Expr:
    """A cell as a value that compares; what is no number of the type is the least one, so that it differs."""
    there = pl.when(cell.fill_null("") != "")
    if kind in FLOATS:
        return there.then(cell.cast(pl.Float64, strict=False).fill_null(float("-inf")))
    if kind.startswith("DECIMAL"):
        return there.then(cell.cast(WIDEST, strict=False).fill_null(pl.lit(-(10**20)).cast(WIDEST)))
    if kind.startswith("TIMESTAMP"):
        return cell.str.strip_suffix("Z").str.replace("T", " ", literal=True).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    return cell.fill_null("")


def _agrees(one: pl.Series, other: pl.Series, digits: float) -> pl.Series:
    same = one.eq_missing(other)
    if not digits:
        return same
    larger = pl.select(pl.max_horizontal(one.abs(), other.abs(), pl.lit(1.0))).to_series()
    close = larger.is_finite() & ((one - other).abs() <= digits * larger)
    return same | close.fill_null(value=False)
