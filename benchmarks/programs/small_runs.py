"""Many small runs of one pipeline: whether the last ones are as quick as the first ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.answers import Answer, difference
from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, table

if TYPE_CHECKING:
    from benchmarks.job import Job
    from benchmarks.results import Results

NAME: Final = "small-runs"
ROWS: Final = 1_000
WATCHED: Final = 5
"""The number of runs at the start, and at the end, whose medians are compared."""
FIRST, LAST, OTHERS = "first", "last", "other runs"
PIPELINE: Final = """\
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
TEXT: Final = (
    "Runs one after the other in one process. In each a file of 1,000 rows comes, or another row of one file of 1,000 rows is corrected. Medians of the first five runs and of the",
    "last five. Promised is at most 1.2.",
)


def later_runs(job: Job) -> None:
    """Runs that correct one row each, then, of another state, runs that bring a file each. Raises SystemExit where the last sums are not DuckDB's."""
    runs = int(job.size)
    for name, change in CHANGES.items():
        folder = job.folder()
        (folder / "data").mkdir()
        file = folder / "pipeline.yaml"
        file.write_text(PIPELINE, encoding="utf-8")
        for number in range(1, runs + 1):
            change(folder / "data", number)
            job.run(part(name, FIRST if number <= WATCHED else LAST if number > runs - WATCHED else OTHERS), file)
        check(folder)


def part(change: str, which: str) -> str:
    """The name of the first or last runs of a kind."""
    return f"{change}, {which}"


def correct_one_row(data: Path, number: int) -> None:
    """Write the file of all rows with another price in one of them."""
    write(data / "all.csv", range(ROWS), {number % ROWS: number})


def add_a_file(data: Path, number: int) -> None:
    """Write a file of new rows."""
    write(data / f"{number:04}.csv", range(ROWS * number, ROWS * (number + 1)), {})


CHANGES: Final[Mapping[str, Callable[[Path, int], None]]] = {"one row corrected": correct_one_row, "a file of 1,000 rows added": add_a_file}
"""The changes of the data folder before a run of some number."""


def write(path: Path, ids: range, prices: Mapping[int, int]) -> None:
    """Write one record for each number, with the same price each time but for those given."""
    chance = random.Random(ids.start)
    lines = [f"{at},account {at % 50},{prices.get(at, chance.randrange(800) / 8)}" for at in ids]
    path.write_text("id,account,price\n" + "\n".join(lines) + "\n", encoding="utf-8")


def check(folder: Path) -> None:
    """Raise SystemExit where the sums are not DuckDB's."""
    import duckdb

    with duckdb.connect() as connection:
        sums = connection.read_csv(str(folder / "data/*.csv"), header=True).aggregate("account, sum(price * 1.2::DOUBLE) AS total", "account").order("account")
        sums.write_csv(str(folder / "expected.csv"), header=True)
        expected = Answer(folder / "expected.csv", tuple(map(str, sums.types)))
    if differs := difference(folder / "sums.csv", expected, ordered=False):
        raise SystemExit(f"{folder}: {differs}")


def write_nothing(folder: Path, _: str, __: float) -> Path:
    """The program writes its input itself."""
    return folder


def show(results: Results) -> Iterator[str]:
    """The last runs beside the first."""
    yield from section("After many runs", TEXT)
    measured = results.among([NAME])
    rows = []
    for one in measured:
        for change in CHANGES:
            first, last = (one.part(part(change, which)) for which in (FIRST, LAST))
            rows.append((rows_of(one.size), one.engine, change, seconds(first), seconds(last), ratio(last, first)))
    yield from table(("runs", "engine", "in each run", "first five", "last five", "ratio"), rows, measured)


BENCHMARK: Final = Benchmark(NAME, {NAME: Program(later_runs)}, (500,), write_nothing, show)
