"""Sales added up by account: first runs beside hand-written programs, and what later runs cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import megabytes, ratio, rows_of, seconds, section, share, table
from benchmarks.data import write_sales
from benchmarks.job import WARM
from benchmarks.programs import baseline, tables, with_errata

if TYPE_CHECKING:
    from benchmarks.results import Results

PROGRAMS: Final = {
    "duckdb": Program(baseline.duckdb, ("duckdb",)),
    "duckdb-from-files": Program(baseline.duckdb_from_files, ("duckdb",)),
    "polars": Program(baseline.polars, ("polars",)),
    "pyspark": Program(baseline.pyspark),
    "errata": Program(with_errata.all_runs),
    "errata-all": Program(with_errata.first_run_keeping_all),
    "errata-keyed": Program(with_errata.keyed_runs),
    "errata-tables": Program(tables.all_runs),
    "errata-tables-op-rows": Program(tables.op_rows),
}
TITLES: Final = {
    "duckdb": "hand-written DuckDB",
    "duckdb-from-files": "hand-written DuckDB, totals only",
    "polars": "hand-written Polars",
    "pyspark": "hand-written PySpark",
    "errata": "Errata, `persist: boundaries`",
    "errata-all": "Errata, `persist: all`",
    "errata-keyed": "Errata, primary key",
}
LATER: Final = {
    "errata": (with_errata.NOTHING, with_errata.ADDED, with_errata.ONE_CORRECTED, with_errata.CORRECTED, *with_errata.COMMANDS),
    "errata-keyed": (with_errata.ONE_CORRECTED, with_errata.CORRECTED),
    **dict.fromkeys(("errata-tables", "errata-tables-op-rows"), (tables.SCATTERED, tables.NEWEST, tables.ADDED)),
}
SOURCES: Final = TITLES | {"errata-tables": "Errata, from Delta table to Delta table", "errata-tables-op-rows": "Errata, from Delta table to Delta table of op rows"}
FIRST_TEXT: Final = (
    "The work: read a CSV file of sales (36 bytes a row), write the records to a Delta table, derive `total = price * quantity`, compute sum, mean, count and maximum by 1,000",
    "accounts, write a CSV file. The hand-written program does the same on the same engine (DuckDB keeps the records in a database file, Polars in a Parquet file; the totals",
    "alone are one pass over the file); Errata also keeps its changelogs. Warm figures are medians of three runs. Memory is the most that the process and its children (the JVM is",
    "one) held together.",
)
LATER_TEXT: Final = (
    "In the folder of a first run files come or are corrected; a thousand corrected rows are all over the file or table. DuckDB computes the totals anew from the file.",
)


def write(folder: Path, _: str, size: float) -> Path:
    """The file of sales."""
    return write_sales(folder / f"sales-{size:.0f}.csv", int(size))


def show(results: Results) -> Iterator[str]:
    """First runs, then later ones."""
    yield from section("First run", FIRST_TEXT)
    measured = results.among(TITLES)
    rows = []
    for one in measured:
        by_hand = results.of("pyspark", one.engine, one.size)
        cold, warm = one.cold(), one.part(WARM)
        ratios = (ratio(cold, by_hand.cold()), ratio(warm, by_hand.part(WARM))) if by_hand else ("", "")
        rows.append((rows_of(one.size), one.engine, TITLES[one.program], seconds(cold), seconds(warm), *ratios, megabytes(one.peak_mb)))
    yield from table(("rows", "engine", "program", "cold", "warm", "cold / PySpark", "warm / PySpark", "peak memory"), rows, measured)
    yield from section("Later runs", LATER_TEXT)
    measured = results.among(LATER)
    later = []
    for one in measured:
        anew = results.part("duckdb-from-files", "duckdb", one.size, WARM)
        for part in LATER[one.program]:
            spent = one.part(part)
            ratios = ("", "") if part in with_errata.COMMANDS else (share(spent, one.part(WARM)), ratio(spent, anew))
            later.append((rows_of(one.size), one.engine, SOURCES[one.program], part, seconds(spent), *ratios))
    yield from table(("rows", "engine", "source", "what changed", "Errata", "of the first run", "/ DuckDB anew"), later, measured)


BENCHMARK: Final = Benchmark("sales", PROGRAMS, (5_000_000, 20_000_000), write, show)
