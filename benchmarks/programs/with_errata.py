"""The work of the benchmark as a pipeline: its first run, and what a later run costs when little or nothing has changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.data import correct_one_price, correct_prices, write_sales
from benchmarks.job import REPEATS, WARM
from benchmarks.programs.baseline import check

if TYPE_CHECKING:
    from benchmarks.job import Job

PIPELINE: Final = "pipeline.yaml"
ROWS_ADDED = 1000
ROWS_CORRECTED = 1000
NOTHING, ADDED, ONE_CORRECTED, CORRECTED = "nothing changed", "1,000 rows added", "one row corrected", "1,000 rows corrected"
COMMANDS: Final = ("nothing changed, new process", "errata --help")
"""Parts that are commands in processes of their own."""
FILES = "      glob: data/*.csv\n"
MERGE = "      merge: {{ strategy: snapshot, primary_key: [id] }}\n"
SOURCE = """\
pipeline:
  name: sales
changelog: {{persist: {persist}}}
nodes:
  - type: source
    name: sales
    config:
      name: sales
      type: csv
      glob: data/*.csv
      schema:
        - {{ name: id, type: int }}
        - {{ name: account, type: string }}
        - {{ name: quantity, type: int }}
        - {{ name: price, type: float }}
        - {{ name: day, type: date }}
  - type: transform
    name: priced
    input: sales
    config:
      cxl: |
        emit total = price * quantity
"""
TOTALS = """\
  - type: aggregate
    name: totals
    input: {input}
    config:
      group_by: [account]
      cxl: |
        emit total = sum(total)
        emit mean = avg(total)
        emit sales = count(*)
        emit largest = max(total)
  - type: output
    name: result
    input: {result}
    config:
      name: result
      type: csv
      path: totals.csv
"""
THREE_NODES_MORE = """\
  - type: transform
    name: large
    input: priced
    config:
      cxl: |
        filter total > 100.0
"""
AVERAGE = """\
  - type: transform
    name: average
    input: totals
    config:
      cxl: |
        emit average = total / sales
"""


def all_runs(job: Job) -> None:
    """First runs, then in the last one's folder: nothing changed, a file of 1000 rows added, one price of the large file corrected, and a thousand all over it."""
    folder = _first_runs(job, SOURCE)
    job.run(NOTHING, folder / PIPELINE)
    for number in range(1, REPEATS + 1):
        write_sales(folder / "data" / f"sales-{number}.csv", ROWS_ADDED, first=number * 1_000_000_000, seed=number)
        job.run(ADDED, folder / PIPELINE)
    _corrections(job, folder)
    for _ in range(REPEATS):
        job.command(COMMANDS[0], "run", str(folder / PIPELINE), "--engine", job.engine, "--quiet")
        job.command(COMMANDS[1], "--help")


def keyed_runs(job: Job) -> None:
    """First runs of a snapshot under a primary key, then in the last one's folder: one price of the large file corrected, and a thousand all over it."""
    _corrections(job, _first_runs(job, SOURCE.replace(FILES, FILES + MERGE)))


def _first_runs(job: Job, source: str) -> Path:
    """First runs, each checked. Returns the folder of the last one."""
    for name, folder in job.first_runs():
        place(job.data, folder, source.format(persist="boundaries") + TOTALS.format(input="priced", result="totals"))
        job.run(name, folder / PIPELINE)
        check(folder / "totals.csv", job.data)
    return folder


def _corrections(job: Job, folder: Path) -> None:
    file = folder / "data" / job.data.name
    for turn in range(REPEATS):
        correct_one_price(file, 17 + turn * int(job.size) // REPEATS)
        job.run(ONE_CORRECTED, folder / PIPELINE)
    for turn in range(REPEATS):
        correct_prices(file, scattered(job.size, turn))
        job.run(CORRECTED, folder / PIPELINE)
    check(folder / "totals.csv", *(folder / "data").glob("*.csv"))


def scattered(size: float, turn: int) -> range:
    """A thousand rows all over a file, other ones each turn."""
    sales = int(size)
    return range(1 + turn * 7, sales, max(sales // ROWS_CORRECTED, 1))


def first_run_keeping_all(job: Job) -> None:
    """First runs with the default `persist: all`, which keeps the changelog of the transform too."""
    for name, folder in job.first_runs():
        place(job.data, folder, SOURCE.format(persist="all") + TOTALS.format(input="priced", result="totals"))
        job.run(name, folder / PIPELINE)
        check(folder / "totals.csv", job.data)


def six_nodes(job: Job) -> None:
    """First runs of a pipeline of six nodes over few rows: by the command, engine start included, and in this process."""
    text = SOURCE.format(persist="all") + THREE_NODES_MORE + TOTALS.format(input="large", result="average") + AVERAGE
    for _ in range(REPEATS):
        folder = job.folder()
        place(job.data, folder, text)
        job.command("small, new process", "run", str(folder / PIPELINE), "--engine", job.engine, "--quiet")
    for name, folder in job.first_runs():
        place(job.data, folder, text)
        job.run("small" if name == WARM else name, folder / PIPELINE)


def place(data: Path, folder: Path, pipeline: str) -> None:
    """Put the pipeline and its input (a link, no copy) into a folder."""
    (folder / "data").mkdir()
    os.link(data, folder / "data" / data.name)
    (folder / PIPELINE).write_text(pipeline, encoding="utf-8")
