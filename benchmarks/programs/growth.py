"""Stateful nodes: what 1,000 new rows cost each of them, to be compared between numbers of rows that stand (DESIGN section 4, Arrangements)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.job import Job

ROWS_A_KEY = 20
CHANGED = 1_000
TURNS = 3
PIPELINE = """\
pipeline: { name: growth }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      glob: rows/*.csv
      watermark: { column: day }
      schema: [{ name: id, type: int }, { name: k, type: int }, { name: v, type: float }, { name: day, type: date }]
  - type: source
    name: items
    config: { name: items, type: csv, path: items.csv, schema: [{ name: k, type: int }, { name: label, type: string }] }
  - { type: aggregate, name: sums, input: rows, config: { group_by: [k], cxl: "emit total = sum(v)" } }
  - { type: aggregate, name: extremes, input: rows, config: { group_by: [k], cxl: "emit low = min(v)" } }
  - { type: transform, name: distinct, input: rows, config: { cxl: "distinct by k" } }
  - type: transform
    name: analytic_window
    input: rows
    config: { analytic_window: { partition_by: [k], sort_by: [id] }, cxl: "emit so_far = $window.sum(v)" }
  - type: aggregate
    name: time_window
    input: rows
    config: { group_by: [k], time_window: { tumbling: { size: 1d } }, allowed_lateness: forever, cxl: "emit n = count(*)" }
  - type: combine
    name: combine
    input: { r: rows, i: items }
    config: { where: "r.k == i.k", match: first, propagate_ck: driver, cxl: "emit id = r.id\\nemit label = i.label" }
"""


def later_runs(job: Job) -> None:
    """A first run over as many rows as the data has, then runs that bring 1,000 rows each: the seconds of each node in these."""
    rows = sum(1 for _ in job.data.open("rb")) - 1
    folder = job.folder()
    (folder / "rows").mkdir()
    (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")
    keys = max(rows // ROWS_A_KEY, 1)
    (folder / "items.csv").write_text("k,label\n" + "".join(f"{key},label {key}\n" for key in range(keys)), encoding="utf-8")
    write_rows(folder / "rows/0.csv", range(rows), keys)
    run(job, folder, "first run")
    for turn in range(1, TURNS + 1):
        write_rows(folder / f"rows/{turn}.csv", range(rows + (turn - 1) * CHANGED, rows + turn * CHANGED), keys)
        run(job, folder, "1,000 rows added")


def write_rows(path: Path, ids: range, keys: int) -> None:
    """Write a record for each of some numbers, of keys by chance, in the order of their days."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng(ids.start)
    numbers = np.arange(ids.start, ids.stop)
    days = pl.Series("days", 28 * (numbers - ids.start) // len(ids)).cast(pl.Int64)
    first = pl.lit("2026-03-01").str.to_date()
    frame = pl.DataFrame({"id": numbers, "days": days, "k": random.integers(0, keys, len(ids)), "v": random.integers(0, 1000, len(ids)) / 8})
    frame.select("id", "k", "v", (first + pl.duration(days="days")).alias("day")).write_csv(path)


def run(job: Job, folder: Path, name: str) -> None:
    """One run, measured as a whole and node by node."""
    import errata
    from errata.options import EngineOptions, Event, RunOptions

    def told(event: Event) -> None:
        if event.kind == "node":
            job.report(f"{name}: {event.node}", event.seconds)

    with job.lap(name):
        errata.load(folder / "pipeline.yaml").run(RunOptions(engine=EngineOptions(job.engine), listener=told))  # type: ignore[arg-type]  # `sail` or `spark`
