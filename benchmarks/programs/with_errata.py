"""The work of the benchmark as a pipeline: its first run, and what a later run costs when little or nothing has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import correct_one_price, correct_prices, write_sales
from benchmarks.job import REPEATS, WARM

if TYPE_CHECKING:
    from benchmarks.job import Job

ROWS_ADDED = 1000
ROWS_CORRECTED = 1000
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
        emit sales = count(*)
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
    for name, folder in job.first_runs():
        place(job.data, folder, SOURCE.format(persist="boundaries") + TOTALS.format(input="priced", result="totals"))
        run(job, name, folder)
    run(job, "nothing changed", folder)
    for number in range(2, 5):
        write_sales(folder / "data" / f"sales-{number}.csv", ROWS_ADDED, first=number * 10_000_000, seed=number)
        run(job, "1,000 rows added", folder)
    file = folder / "data" / job.data.name
    for row in (17, 170_017, 700_017):
        correct_one_price(file, row)
        run(job, "one row corrected", folder)
    _correct_all_over(job, file, folder)
    for _ in range(REPEATS):
        in_a_new_process(job, "nothing changed, new process", "run", str(folder / "pipeline.yaml"), "--engine", job.engine)
        in_a_new_process(job, "errata --help", "--help")


def keyed_runs(job: Job) -> None:
    """First runs of a snapshot under a primary key, then in the last one's folder: one price of the large file corrected, and a thousand all over it."""
    for name, folder in job.first_runs():
        place(job.data, folder, SOURCE.replace(FILES, FILES + MERGE).format(persist="boundaries") + TOTALS.format(input="priced", result="totals"))
        run(job, name, folder)
    file = folder / "data" / job.data.name
    sales = _sales_in(file)
    for row in (17, sales // 6, sales // 2):
        correct_one_price(file, row)
        run(job, "one row corrected", folder)
    _correct_all_over(job, file, folder)


def _sales_in(file: Path) -> int:
    return file.read_bytes().count(b"\n") - 1


def _correct_all_over(job: Job, file: Path, folder: Path) -> None:
    sales = _sales_in(file)
    for turn in range(3):
        correct_prices(file, range(1 + turn * 7, sales, sales // ROWS_CORRECTED))
        run(job, "1,000 rows corrected", folder)


def first_run_keeping_all(job: Job) -> None:
    """First runs with the default `persist: all`, which keeps the changelog of the transform too."""
    for name, folder in job.first_runs():
        place(job.data, folder, SOURCE.format(persist="all") + TOTALS.format(input="priced", result="totals"))
        run(job, name, folder)


def six_nodes(job: Job) -> None:
    """First runs of a pipeline of six nodes over few rows: by the command, engine start included, and in this process."""
    text = SOURCE.format(persist="all") + THREE_NODES_MORE + TOTALS.format(input="large", result="average") + AVERAGE
    for _ in range(REPEATS):
        folder = job.folder()
        place(job.data, folder, text)
        in_a_new_process(job, "small, new process", "run", str(folder / "pipeline.yaml"), "--engine", job.engine)
    for name, folder in job.first_runs():
        place(job.data, folder, text)
        run(job, "small" if name == WARM else name, folder)


def place(data: Path, folder: Path, pipeline: str) -> None:
    """Put the pipeline and its input (a link, no copy) into a folder."""
    (folder / "data").mkdir()
    os.link(data, folder / "data" / data.name)
    (folder / "pipeline.yaml").write_text(pipeline, encoding="utf-8")


def run(job: Job, name: str, folder: Path) -> None:
    """`errata run` in this process, measured as `name`."""
    from errata.cli import main

    with job.lap(name):
        code = main(["run", str(folder / "pipeline.yaml"), "--engine", job.engine, "--quiet"])
    if code:
        raise SystemExit(f"errata run ended with {code}")


def in_a_new_process(job: Job, name: str, *arguments: str) -> None:
    """The `errata` command as a person starts it, measured as `name`."""
    command = Path(sys.executable).with_name("errata")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # a person has the modules compiled
    with job.lap(name):
        subprocess.run([command, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
