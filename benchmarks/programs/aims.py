"""The aims for the speed of Errata, and how the results of all benchmarks meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import ENGINES, Benchmark
from benchmarks.cells import rows_of, section, table
from benchmarks.job import WARM, peak_of
from benchmarks.programs import databases, first_runs, growth, memory, small_runs, with_errata
from benchmarks.programs.tpch import SUITE
from benchmarks.suite import by_duckdb

if TYPE_CHECKING:
    from benchmarks.results import Results

Found = Callable[["Results", str, float], Iterable[float | None]]
"""The figures of an aim on an engine and a size; none where it was not measured."""
TEXT: Final = ("Each aim is that of two cores, on Sail unless it says otherwise; the table has the largest size that was measured. With several figures: their geometric mean, and the worst.",)
ORDERS: Final = SUITE.versions[1:3]


@dataclass(frozen=True, slots=True)
class Aim:
    """A promise.

    Args:
        what: In words.
        programs: Programs that are measured for it. Their largest size counts.
        found: The figures.
        most: The promise, by engine.
        form: How a figure is written.
    """

    what: str
    programs: Iterable[str]
    found: Found
    most: dict[str, float]
    form: str = "{:.2f}"


def _of(program: str, part: str, other: str, base: str, engine: str | None = None) -> Found:
    """A part of a program, divided by a part of another one; the other one's engine where it has one of its own."""

    def found(results: Results, on: str, size: float) -> Iterator[float | None]:
        value, least = results.part(program, on, size, part), results.part(other, engine or on, size, base)
        yield value / least if value and least else None

    return found


def _figure(program: str, part: str) -> Found:
    """A figure itself."""

    def found(results: Results, on: str, size: float) -> Iterator[float | None]:
        yield results.part(program, on, size, part)

    return found


def _stateful(results: Results, engine: str, size: float) -> Iterator[float | None]:
    for node in growth.NODES:
        name = node.removeprefix(growth.PREFIX)
        yield from _of(f"{first_runs.ERRATA}{name}", WARM, f"{first_runs.DUCKDB}{name}", WARM, "duckdb")(results, engine, size)


def _grown(results: Results, engine: str, size: float) -> Iterator[float | None]:
    for node in growth.NODES:
        for part in (growth.ADDED, growth.REPLACED, growth.ADDED_LATER):
            many, few = (results.part(node, engine, rows, part) for rows in (size, size / 10))
            yield many / few if many and few else None


def _orders(results: Results, engine: str, size: float) -> Iterator[float | None]:
    ratios = []
    for query in SUITE.queries:
        one = results.of(SUITE.program(query), engine, size)
        if one is not None:
            ratios.append(sum(one.parts[step] for step in ORDERS) / sum(one.parts[by_duckdb(step)] for step in ORDERS))
    yield median(ratios) if ratios else None


def _many_runs(results: Results, engine: str, size: float) -> Iterator[float | None]:
    for change in small_runs.CHANGES:
        last, first = (small_runs.part(change, which) for which in (small_runs.LAST, small_runs.FIRST))
        yield from _of(small_runs.NAME, last, small_runs.NAME, first)(results, engine, size)


def _peak(*parts: str) -> Found:
    def found(results: Results, engine: str, size: float) -> Iterator[float | None]:
        yield from (results.part(memory.PREFIX, engine, size, peak_of(part)) for part in parts)

    return found


ANEW: Final = ("duckdb-from-files", WARM, "duckdb")
AIMS: Final = (
    Aim("first run, `boundaries`, of hand-written PySpark", ["errata"], _of("errata", WARM, "pyspark", WARM), {"sail": 1.4, "spark": 1.2}),
    Aim("1,000 rows added, with `max`, of the first run", ["errata"], _of("errata", with_errata.ADDED, "errata", WARM), {"sail": 0.06}, "{:.1%}"),
    Aim("1,000 scattered corrections, of DuckDB's full recompute", ["errata"], _of("errata", with_errata.CORRECTED, *ANEW), {"sail": 0.9}),
    Aim("one row corrected, of DuckDB's full recompute", ["errata"], _of("errata", with_errata.ONE_CORRECTED, *ANEW), {"sail": 0.3}),
    Aim("stateful first runs, of DuckDB on a file", [f"{first_runs.ERRATA}sums"], _stateful, {"sail": 1.3}),
    Aim("1,000 changes at ten times the rows", list(growth.NODES), _grown, {"sail": 1.4}),
    Aim("TPC-H, orders inserted and deleted, median query, of DuckDB's full recompute", [SUITE.program(query) for query in SUITE.queries], _orders, {"sail": 0.5}),
    Aim("500 runs of 1,000 rows, the last five of the first five", [small_runs.NAME], _many_runs, {"sail": 1.2}),
    Aim("first mirror of rows in PostgreSQL, of COPY", [databases.NAME], _of(databases.NAME, databases.MIRROR, databases.NAME, databases.COPY), {"sail": 1.5}),
    Aim("rows read from PostgreSQL, of the driver alone", [databases.NAME], _of(databases.NAME, databases.SOURCE, databases.NAME, databases.DRIVER), {"sail": 1.5}),
    Aim("1,000 changes mirrored into PostgreSQL", [databases.NAME], _figure(databases.NAME, databases.CHANGES), {"sail": 0.5}, "{:.2f} s"),
    Aim("memory of a first run of 20 million rows", [memory.PREFIX], _peak(WARM), {"sail": 1500}, "{:,.0f} MB"),
    Aim("memory of a correction in 20 million rows", [memory.PREFIX], _peak(with_errata.ONE_CORRECTED, with_errata.CORRECTED), {"sail": 1000}, "{:,.0f} MB"),
)


def show(results: Results) -> Iterator[str]:
    """Each aim with what was measured."""
    yield from section("Aims", TEXT)
    rows = []
    for aim in AIMS:
        for engine in (engine for engine in ENGINES if engine in aim.most):
            size = max((one.size for one in results.among(aim.programs) if one.engine == engine), default=None)
            figures = [] if size is None else [value for value in aim.found(results, engine, size) if value is not None]
            if figures and size is not None:
                worst, most = max(figures), aim.most[engine]
                several = [aim.form.format(geometric_mean(figures)), *([aim.form.format(worst)] if len(figures) > 1 else [])]
                rows.append((aim.what, engine, rows_of(size), ", ".join(several), aim.form.format(most), "yes" if worst <= most else "no"))
    yield from table(("what", "engine", "size", "measured", "aim", "reached"), rows, ())


def write(folder: Path, _: str, __: float) -> Path:
    """Nothing is measured for this table alone."""
    return folder


BENCHMARK: Final = Benchmark("aims", {}, (), write, show)
