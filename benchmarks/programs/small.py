"""A small pipeline as a command, beside the least that a PySpark program does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, table
from benchmarks.programs import baseline, with_errata
from benchmarks.programs.sales import write

if TYPE_CHECKING:
    from benchmarks.results import Results

BARE, ERRATA = "bare", "errata-six-nodes"
TEXT: Final = (
    "A pipeline of six nodes over 10,000 rows, the whole of the command's time; the bare script opens a session, appends one Delta table and reads it back.",
)


def show(results: Results) -> Iterator[str]:
    """The command beside the bare script."""
    yield from section("Small input", TEXT)
    measured = results.among([ERRATA])
    rows = []
    for one in measured:
        new, least = one.part("small, new process"), results.part(BARE, one.engine, one.size, "small, new process")
        rows.append((rows_of(one.size), one.engine, seconds(new), seconds(least), ratio(new, least), seconds(one.part("small"))))
    yield from table(("rows", "engine", "Errata, new process", "bare script", "ratio", "Errata, warm"), rows, measured)


BENCHMARK: Final = Benchmark("small", {BARE: Program(baseline.bare_script), ERRATA: Program(with_errata.six_nodes)}, (10_000,), write, show)
