"""The memory of the work on sales: first runs and corrections, each a command of its own, with and without a limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import megabytes, rows_of, seconds, section, table
from benchmarks.data import correct_one_price, correct_prices
from benchmarks.job import WARM, peak_of
from benchmarks.programs.baseline import check
from benchmarks.programs.sales import write
from benchmarks.programs.with_errata import CORRECTED, ONE_CORRECTED, PIPELINE, SOURCE, TOTALS, place, scattered

if TYPE_CHECKING:
    from benchmarks.job import Job
    from benchmarks.results import Results

PREFIX: Final = "memory"
LIMITS: Final = {PREFIX: None, f"{PREFIX}-1500M": "1500M", f"{PREFIX}-1G": "1G"}
"""The value of `--memory-limit` in each program."""
PARTS: Final = (WARM, ONE_CORRECTED, CORRECTED)
TEXT: Final = (
    "The work on sales (`persist: boundaries`), each run a command in a process of its own: the most resident memory that the process and its children held together, sampled",
    "twenty times a second. Promised, on Sail and 20 million rows: a first run within 1,500 MB, a correction within 1,000 MB.",
)


def commands(job: Job, limit: str | None) -> None:
    """A first run, one row corrected, a thousand corrected."""
    folder = job.folder()
    place(job.data, folder, SOURCE.format(persist="boundaries") + TOTALS.format(input="priced", result="totals"))
    file = folder / "data" / job.data.name
    words = ["run", str(folder / PIPELINE), "--engine", job.engine, "--quiet", *(("--memory-limit", limit) if limit else ())]
    job.command(WARM, *words)
    correct_one_price(file, int(job.size) // 2)
    job.command(ONE_CORRECTED, *words)
    correct_prices(file, scattered(job.size, 0))
    job.command(CORRECTED, *words)
    check(folder / "totals.csv", file)


def show(results: Results) -> Iterator[str]:
    """The peaks, and the processor time that a limit costs."""
    yield from section("Memory", TEXT)
    measured = results.among(LIMITS)
    rows = []
    for one in measured:
        figures = (cell for part in PARTS for cell in (megabytes(one.part(peak_of(part))), seconds(one.part(part))))
        rows.append((rows_of(one.size), one.engine, LIMITS[one.program] or "none", *figures))
    yield from table(("rows", "engine", "`--memory-limit`", *(head for part in PARTS for head in (part, "time"))), rows, measured)


BENCHMARK: Final = Benchmark("memory", {name: Program(partial(commands, limit=limit)) for name, limit in LIMITS.items()}, (20_000_000,), write, show)
