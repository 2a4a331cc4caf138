"""Many small runs of one pipeline: whether the two hundredth is as quick as the tenth."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from benchmarks.job import Job

RUNS = 200
ROWS = 1_000
WATCHED: Final = {"runs 8 to 12": range(8, 13), "runs 196 to 200": range(196, 201)}
PIPELINE = """\
pipeline: { name: small }
nodes:
  - type: source
    name: sales
    config:
      name: sales
      type: csv
      glob: data/*.csv
      merge: { strategy: snapshot, primary_key: [id] }
      schema: [{ name: id, type: int }, { name: account, type: string }, { name: price, type: float }]
  - { type: transform, name: taxed, input: sales, config: { cxl: "emit gross = price * 1.2" } }
  - { type: aggregate, name: totals, input: taxed, config: { group_by: [account], cxl: "emit total = sum(gross)" } }
  - { type: output, name: result, input: totals, config: { name: result, type: csv, path: sums.csv } }
"""


def later_runs(job: Job) -> None:
    """Two hundred runs that correct one row each, then, of another state, two hundred that bring a file each."""
    for name, change in CHANGES.items():
        folder = job.folder()
        (folder / "data").mkdir()
        (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")
        for number in range(1, RUNS + 1):
            change(folder / "data", number)
            run(job, folder, name, number)


def correct_one_row(data: Path, number: int) -> None:
    """Write the file of all rows with another price in one of them."""
    write(data / "all.csv", range(ROWS), {number % ROWS: number})


def add_a_file(data: Path, number: int) -> None:
    """Write all rows at first, then ten new ones in a file of their own."""
    write(data / f"{number:03}.csv", range(ROWS) if number == 1 else range(ROWS + 10 * number, ROWS + 10 * number + 10), {})


CHANGES: Final[Mapping[str, Callable[[Path, int], None]]] = {"one row corrected": correct_one_row, "a file of ten rows added": add_a_file}
"""What happens to the data folder before a run of some number."""


def write(path: Path, ids: range, prices: dict[int, int]) -> None:
    """Write one record for each number, with the same price each time but for those given."""
    chance = random.Random(ids.start)
    lines = [f"{at},account {at % 50},{prices.get(at, chance.randrange(800) / 8)}" for at in ids]
    path.write_text("id,account,price\n" + "\n".join(lines) + "\n", encoding="utf-8")


def run(job: Job, folder: Path, name: str, number: int) -> None:
    """One run; measured if it is compared."""
    import errata
    from errata.core.options import EngineOptions, RunOptions

    project = errata.load(folder / "pipeline.yaml")
    part = next((part for part, numbers in WATCHED.items() if number in numbers), "other runs")
    with job.lap(f"{name}, {part}"):
        result = project.run(RunOptions(engine=EngineOptions(job.engine)))  # type: ignore[arg-type]  # `sail` or `spark`
    if result.epoch != number:
        raise SystemExit(f"run {number} ended as epoch {result.epoch}")
