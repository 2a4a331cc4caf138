"""Rows of a node for programs and notebooks: as pandas, Polars, Arrow or Spark, and as a small table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame

SHOWN, LONGEST = 20, 60
"""Rows that a notebook shows, and characters of a value."""


@dataclass(frozen=True, slots=True)
class NodeRows:
    """Rows of a node: its live rows, or its changes. They are read when they are asked for.

    Attributes:
        node: The node.
        read: Returns the rows in their order.
        collect: Brings rows of the engine to this process.
        what: What the rows are, in words.
    """

    node: str
    read: Callable[[], DataFrame]
    collect: Callable[[DataFrame], pa.Table]
    what: str

    def to_spark(self) -> DataFrame:
        """The rows as a DataFrame of PySpark, on the engine of the run."""
        return self.read()

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.collect(self.read())

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame of pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a DataFrame of Polars."""
        import polars as pl

        found = pl.from_arrow(self.to_arrow())
        assert isinstance(found, pl.DataFrame)  # a table becomes one
        return found

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as a list of maps."""
        return list(self.to_arrow().to_pylist())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def __len__(self) -> int:
        return int(self.read().count())

    def __repr__(self) -> str:
        return f"<{self.what}>"

    def _repr_html_(self) -> str:
        """The first rows as a table, with long values cut."""
        first = self.collect(self.read().limit(SHOWN + 1))
        names, rows = first.column_names, first.slice(0, SHOWN).to_pylist()
        more = "<p>and further rows</p>" if first.num_rows > SHOWN else ""
        return f"<p>{escape(self.what)}</p>\n{small_table(names, rows)}{more}"


def small_table(names: Sequence[str], rows: Sequence[Mapping[str, Any]], empty: str = "no rows") -> str:
    """Rows as a table of HTML, escaped; long values are cut."""
    if not rows:
        return f"<p>{escape(empty)}</p>"
    head = "".join(f"<th>{escape(shown(name))}</th>" for name in names)
    lines = [f"<tr>{''.join(f'<td>{escape(shown(row.get(name)))}</td>' for name in names)}</tr>" for row in rows]
    return "\n".join(["<table>", f"<tr>{head}</tr>", *lines, "</table>"])


def shown(value: Any) -> str:
    """A value as a cell shows it: null is empty, bytes are hexadecimal, a long text is cut."""
    if value is None:
        return ""
    text = bytes(value).hex() if isinstance(value, bytes | bytearray) else f"{value:,}" if type(value) is int else str(value)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
