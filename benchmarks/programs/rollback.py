"""Correlation rollback: a run that rolls back one record in a hundred, and one that repairs ten groups, against the plain run of the same pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import rows_of, seconds, section, share, table
from benchmarks.job import REPEATS, WARM
from benchmarks.programs.sales import write

if TYPE_CHECKING:
    from benchmarks.job import Job
    from benchmarks.results import Results

NAME: Final = "errata-rollback"
FILE: Final = "pipeline.yaml"
ROLLED_BACK, REPAIRED = "1 % rolled back", "ten groups repaired"
FILES, GROUPS, BROKEN = 10, 1000, 10
"""Numbers of files, of groups in each, and of groups that fail in one of the two versions."""

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
      glob: lines/*.csv
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
    config: { name: result, type: csv, path: products.csv }
"""


def all_runs(job: Job) -> None:
    """First runs without failing records, first runs in which one group of a hundred fails, then ten of these groups repaired at a time."""
    rows = int(job.size)
    good, bad = (job.data.with_name(f"{name}-{rows}") for name in ("lines", "lines-broken"))
    for number in range(FILES):
        write_lines(good / f"{number}.csv", rows // FILES, number, broken=0)
        write_lines(bad / f"{number}.csv", rows // FILES, number, broken=BROKEN)
    for name, folder in job.first_runs():
        place(good, folder)
        job.run(name, folder / FILE)
    for _ in range(REPEATS):
        folder = job.folder()
        place(bad, folder)
        job.run(ROLLED_BACK, folder / FILE, code=2)
    for number in range(REPEATS):
        target = folder / "lines" / f"{number}.csv"
        target.unlink()
        target.hardlink_to(good / target.name)
        job.run(REPAIRED, folder / FILE, code=2)


def write_lines(path: Path, rows: int, number: int, *, broken: int) -> None:
    """Write the `number`-th file: `rows` lines of sales in `GROUPS` groups. The last line of some groups has no number of pieces."""
    if path.exists():
        return
    import numpy as np
    import polars as pl

    random = np.random.default_rng(number)
    place = np.arange(rows)
    pieces = random.integers(1, 100, rows).astype(str).astype(object)
    pieces[(place >= rows - GROUPS) & (place % GROUPS < broken)] = "?"
    frame = pl.DataFrame({
        "id": place + number * rows, "sale": place % GROUPS + number * GROUPS, "product": random.integers(0, 1000, rows), "pieces": pieces.tolist(),
        "price": random.integers(100, 99_999, rows) / 100,
    })  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    frame.with_columns(pl.format("p{}", pl.col("product")).alias("product")).write_csv(partial, float_precision=2)
    partial.rename(path)


def place(data: Path, folder: Path) -> None:
    """Put the pipeline and links to its input into a folder."""
    (folder / "lines").mkdir()
    for file in data.glob("*.csv"):
        (folder / "lines" / file.name).hardlink_to(file)
    (folder / FILE).write_text(PIPELINE, encoding="utf-8")


TEXT: Final = (
    "Lines of 10,000 sales in ten files, a correlation key, a transform and a relaxed aggregate, `persist: all`. One sale in a hundred has a line that",
    "fails, so its lines are rolled back and listed in the DLQ; then ten sales of one file are repaired.",
)


def show(results: Results) -> Iterator[str]:
    """The cost of rolling back: over a plain run of the same pipeline, and over one that repairs groups."""
    yield from section("Rollback", TEXT)
    measured = results.among([NAME])
    rows = []
    for one in measured:
        plain, back, repair = (one.part(part) for part in (WARM, ROLLED_BACK, REPAIRED))
        more = None if back is None or plain is None else back - plain
        rows.append((rows_of(one.size), one.engine, seconds(plain), seconds(back), share(more, plain), seconds(repair), share(repair, plain)))
    yield from table(("rows", "engine", "plain", "1 % rolled back", "more", "ten groups repaired", "of the plain run"), rows, measured)


BENCHMARK: Final = Benchmark("rollback", {NAME: Program(all_runs)}, (1_000_000,), write, show)
