"""From a Delta table to a Delta table: a first run, then runs that follow a thousand corrected rows in the source's change data feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.job import REPEATS
from benchmarks.programs.with_errata import ROWS_CORRECTED, run

if TYPE_CHECKING:
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
    config: { name: result, type: delta, path: priced }
"""


def all_runs(job: Job) -> None:
    """First runs, then in the last one's folder a thousand rows all over the table corrected at a time."""
    for name, folder in job.first_runs():
        write_table(job.data, folder)
        run(job, name, folder)
    for turn in range(REPEATS):
        correct_rows(folder / "sales", turn)
        run(job, "1,000 rows corrected", folder)


def write_table(data: Path, folder: Path) -> None:
    """Put the pipeline and the sales of a CSV file, as a table with a change data feed, into a folder."""
    import polars as pl

    sales = pl.read_csv(data, try_parse_dates=True)
    sales.write_delta(folder / "sales", delta_write_options={"configuration": {"delta.enableChangeDataFeed": "true"}})
    (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")


def correct_rows(table: Path, turn: int) -> None:
    """Give a thousand sales another quantity, the same every so many rows, in one commit."""
    from deltalake import DeltaTable

    sales = DeltaTable(table)
    every = sales.count() // ROWS_CORRECTED
    sales.update(predicate=f"id % {every} = {turn * 7 + 1}", updates={"quantity": "quantity + 1"})
