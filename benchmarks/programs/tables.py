"""From a Delta table to a Delta table: a first run, then runs that follow a thousand changed rows in the source's change data feed.

The output holds the live rows, or it is a log of op rows. Rows are corrected all over the table, or the newest ones; or new ones come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.job import REPEATS
from benchmarks.programs.with_errata import PIPELINE as FILE
from benchmarks.programs.with_errata import ROWS_CORRECTED as ROWS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.job import Job

PIPELINE = """\
pipeline: { name: tables }
changelog: { persist: boundaries }
nodes:
  - type: source
    name: sales
    config:
      name: sales
      type: delta
      path: sales
      merge: { strategy: snapshot, primary_key: [id] }
      schema:
        - { name: id, type: int }
        - { name: account, type: string }
        - { name: quantity, type: int }
        - { name: price, type: float }
        - { name: day, type: date }
  - type: transform
    name: priced
    input: sales
    config:
      cxl: |
        emit total = price * quantity
  - type: output
    name: result
    input: priced
    config: { name: result, type: delta, path: priced, options: { mode: MODE } }
"""
SCATTERED = "1,000 rows corrected"
NEWEST = "the newest 1,000 rows corrected"
ADDED = "1,000 rows added"


def all_runs(job: Job) -> None:
    """The output holds the live rows."""
    _runs(job, "upsert")


def op_rows(job: Job) -> None:
    """The output is a log of op rows."""
    _runs(job, "changelog")


def _runs(job: Job, mode: str) -> None:
    """First runs, then in the last one's folder a thousand rows changed at a time."""
    for name, folder in job.first_runs():
        write_table(job.data, folder, mode)
        job.run(name, folder / FILE)
    changes: tuple[tuple[str, Callable[[Path, int], None]], ...] = ((SCATTERED, correct_rows), (NEWEST, correct_newest), (ADDED, add_rows))
    for name, change in changes:
        for turn in range(REPEATS):
            change(folder / "sales", turn)
            job.run(name, folder / FILE)


def write_table(data: Path, folder: Path, mode: str = "upsert") -> None:
    """Put the pipeline and the sales of a CSV file, as a table with a change data feed, into a folder."""
    import polars as pl

    sales = pl.read_csv(data, try_parse_dates=True)
    sales.write_delta(folder / "sales", delta_write_options={"configuration": {"delta.enableChangeDataFeed": "true"}})
    (folder / FILE).write_text(PIPELINE.replace("MODE", mode), encoding="utf-8")


def correct_rows(table: Path, turn: int) -> None:
    """Give a thousand sales another quantity, evenly spread, in one commit."""
    from deltalake import DeltaTable

    sales = DeltaTable(table)
    every = max(sales.count() // ROWS, 1)
    sales.update(predicate=f"id % {every} = {(turn * 7 + 1) % every}", updates={"quantity": "quantity + 1"})


def correct_newest(table: Path, turn: int) -> None:
    """Give the last thousand sales another quantity."""
    from deltalake import DeltaTable

    sales = DeltaTable(table)
    sales.update(predicate=f"id > {sales.count() - ROWS}", updates={"quantity": "quantity + 1"})


def add_rows(table: Path, turn: int) -> None:
    """Add a thousand sales."""
    import polars as pl
    from deltalake import DeltaTable

    last = DeltaTable(table).count()
    sales = pl.DataFrame(DeltaTable(table).scan(predicate=f"id > {last - ROWS}"))
    sales.with_columns(id=pl.int_range(last + 1, last + 1 + ROWS)).write_delta(table, mode="append")
