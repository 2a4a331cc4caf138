"""Correlation rollback: a run that rolls back one record in a hundred, and one that repairs ten groups, against the plain run of the same pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.job import Job

GROUPS = 10_000
BROKEN = range(0, GROUPS, 100)
REPAIRED = 10
PIPELINE = """\
pipeline: { name: lines }
error_handling:
  strategy: continue
  dlq: { path: rejected.csv }
nodes:
  - type: source
    name: lines
    config:
      name: lines
      type: csv
      path: lines.csv
      correlation_key: sale
      schema:
        - { name: id, type: int }
        - { name: sale, type: int }
        - { name: product, type: string }
        - { name: pieces, type: string }
        - { name: price, type: float }
  - type: transform
    name: valued
    input: lines
    config:
      cxl: |
        emit value = price * pieces.to_int()
  - type: aggregate
    name: products
    input: valued
    config:
      group_by: [product]
      cxl: |
        emit value = sum(value)
        emit sales = count(*)
  - type: output
    name: result
    input: products
    config: { name: result, type: csv, path: totals.csv }
"""


def all_runs(job: Job) -> None:
    """First runs without failing records, first runs in which one group of a hundred fails, then ten of these groups repaired at a time."""
    rows = sum(1 for _ in job.data.open("rb")) - 1
    good, bad = job.data.with_name(f"lines-{rows}.csv"), job.data.with_name(f"lines-{rows}-broken.csv")
    write_lines(good, rows)
    write_lines(bad, rows, BROKEN)
    for name, folder in job.first_runs():
        place(good, folder)
        run(job, name, folder, 0)
    for _ in range(3):
        folder = job.folder()
        place(bad, folder)
        run(job, "1 % rolled back", folder, 2)
    for turn in range(1, 4):
        write_lines(folder / "lines.csv", rows, BROKEN[turn * REPAIRED :], afresh=True)
        run(job, "ten groups repaired", folder, 2)


def write_lines(path: Path, rows: int, broken: Iterable[int] = (), *, afresh: bool = False) -> None:
    """Write `rows` lines of sales in `GROUPS` groups, a bad number of pieces in the last line of each group of `broken`."""
    if path.exists() and not afresh:
        return
    import numpy as np
    import polars as pl

    random = np.random.default_rng(7)
    sale = np.arange(rows) % GROUPS
    pieces = random.integers(1, 100, rows).astype(str).astype(object)
    pieces[np.isin(sale, list(broken)) & (np.arange(rows) >= rows - GROUPS)] = "?"
    frame = pl.DataFrame({
        "id": np.arange(1, rows + 1), "sale": sale, "product": random.integers(0, 1000, rows), "pieces": pieces.tolist(),
        "price": random.integers(100, 99_999, rows) / 100,
    })  # fmt: skip
    partial = path.with_suffix(".partial")
    frame.with_columns(pl.format("p{}", pl.col("product")).alias("product")).write_csv(partial, float_precision=2)
    partial.rename(path)


def place(data: Path, folder: Path) -> None:
    """Put the pipeline and a link to its input into a folder."""
    (folder / "lines.csv").hardlink_to(data)
    (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")


def run(job: Job, name: str, folder: Path, code: int) -> None:
    """`errata run` in this process, measured as `name`; it has to end with `code`."""
    from errata.cli import main

    with job.lap(name):
        found = main(["run", str(folder / "pipeline.yaml"), "--engine", job.engine, "--quiet"])
    if found != code:
        raise SystemExit(f"errata run ended with {found}, not with {code}")
