"""Figures over fifty epochs: `errata restate`, and histories that are added to a pipeline that has run fifty times, against its first run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import rows_of, seconds, section, share, table
from benchmarks.job import COLD

if TYPE_CHECKING:
    import polars as pl

    from benchmarks.job import Job
    from benchmarks.results import Results

NAME: Final = "errata-histories"
FILE: Final = "pipeline.yaml"
RESTATE, DELTA = "restate", "one row in a thousand corrected"
EPOCHS: Final = 50
SHARE: Final = 1000
"""In each epoch one row of this number changes."""
HISTORIES: Final = {"by recording": "recorded: epoch", "by event time": "valid_from: since", "by both": "valid_from: since, recorded: epoch"}

PIPELINE: Final = """\
pipeline: { name: rents }
nodes:
  - type: source
    name: rents
    config:
      name: rents
      type: csv
      path: rents.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema:
        - { name: id, type: int }
        - { name: flat, type: int }
        - { name: month, type: string }
        - { name: since, type: date }
        - { name: amount, type: int }
  - { type: transform, name: valued, input: rents, config: { cxl: "emit value = amount * 2" } }
  - { type: output, name: plain, input: valued, config: { name: plain, type: csv, path: plain.csv } }
"""


def all_runs(job: Job) -> None:
    """A first run and 49 corrections, then `restate` of a node, and the first run of each history as a new output."""
    folder, rows = job.folder(), int(job.size)
    (folder / FILE).write_text(PIPELINE, encoding="utf-8")
    for number, rents in enumerate(versions(rows)):
        rents.write_csv(folder / "rents.csv")
        job.run(DELTA if number else COLD, folder / FILE)
    job.command(RESTATE, "restate", str(folder / FILE), "valued", "--by", "month", "--from", "1", "--format", "csv")
    for name, keys in HISTORIES.items():
        output = f"  - {{ type: output, name: history, input: valued, config: {{ name: history, type: csv, path: history.csv, history: {{ key: [flat], {keys} }} }} }}\n"
        (folder / FILE).write_text(PIPELINE + output, encoding="utf-8")
        job.run(name, folder / FILE)
        (folder / FILE).write_text(PIPELINE, encoding="utf-8")
        job.run("removed", folder / FILE)


def versions(rows: int) -> Iterator[pl.DataFrame]:
    """The file of each epoch: rents of flats, four for each; some amounts are others than before."""
    import numpy as np
    import polars as pl

    random, place = np.random.default_rng(1), np.arange(rows)
    amount = random.integers(1, 1000, rows)
    fixed = pl.DataFrame({"id": place, "flat": place // 4, "month": place % 12 + 1, "since": place % 4 * 3 + 1})
    two = {name: pl.col(name).cast(pl.String).str.zfill(2) for name in ("month", "since")}
    fixed = fixed.with_columns(pl.format("2026-{}", two["month"]).alias("month"), pl.format("2026-{}-01", two["since"]).alias("since"))
    for _ in range(EPOCHS):
        yield fixed.with_columns(amount=amount)
        amount = amount.copy()
        amount[random.integers(0, rows, max(1, rows // SHARE))] += 1


def written(folder: Path, program: str, size: float) -> Path:
    """No input: each run writes its file anew."""
    return folder


TEXT: Final = (
    "Rents of flats in one keyed snapshot of CSV, a transform and an output, over fifty epochs: one row in a thousand changes in each. Then `errata restate` of the transform by month,",
    "and the first run of each kind of history as a new output; histories by recording begin with the present rows. The aim is twice the first run.",
)


def show(results: Results) -> Iterator[str]:
    """The cost of restating and of histories, as a share of the first run."""
    yield from section("Fifty epochs", TEXT)
    measured = results.among([NAME])
    rows = []
    for one in measured:
        first = one.part(COLD)
        cells = [cell for name in (DELTA, RESTATE, *HISTORIES) for cell in (seconds(one.part(name)), share(one.part(name), first))]
        rows.append((rows_of(one.size), one.engine, seconds(first), *cells))
    named = [cell for name in (DELTA, RESTATE, *(f"history {name}" for name in HISTORIES)) for cell in (name, "of the first run")]
    yield from table(("rows", "engine", "first run", *named), rows, measured)


BENCHMARK: Final = Benchmark("histories", {NAME: Program(all_runs)}, (1_000_000,), written, show)
