"""`python -m benchmarks`: measure all programs on both engines and write README.md as they end; with a selection, print the results only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from benchmarks.data import SCRATCH, write_sales
from benchmarks.process import ProgramFailedError, measure
from benchmarks.programs import first_runs, growth, reading, tpch
from benchmarks.results import Result, Results, page
from benchmarks.tpch.tables import LINES_OF_SCALE_1
from storage.engines.spark.java import find_java

HERE = Path(__file__).parent
SIZES = (5_000_000, 1_000_000)
GROWING = (1_000_000, 10_000_000)
SMALL = 10_000
GROUPED = 1_000_000
READ = 1_000_000
SCALE = 0.1
LARGE_PROGRAMS = ("pyspark", "errata", "errata-all", "errata-keyed", "errata-tables", "errata-tables-op-rows")
SMALL_PROGRAMS = ("bare", "errata-six-nodes")


def planned(options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Program, engine and number of rows of all that is to be measured, the programs of one size side by side; what is promised and soon measured comes first."""
    engines, sizes = options.engine or ("sail", "spark"), options.rows or SIZES
    stateful = options.engine or ("sail",)  # on Spark, which is slow with these, where it is asked for
    for engine in engines:
        yield from whole_runs(engine, sizes[0])
        yield from ((program, engine, SMALL) for program in SMALL_PROGRAMS)
        yield "errata-rollback", engine, GROUPED
        yield from ((program, engine, READ) for program in reading.PROGRAMS)
        if engine == "sail":
            yield "small-runs", engine, SMALL
        if engine in stateful:
            yield from ((program, engine, rows) for rows in options.rows or SIZES[:1] for program in first_runs.PROGRAMS)
            yield from ((program, engine, tpch.lines(scale)) for scale in options.scale or [SCALE] for program in tpch.PROGRAMS)
    for engine in stateful:
        yield from ((program, engine, rows) for program in growth.PROGRAMS for rows in options.rows or GROWING)
    for engine in engines:
        yield from (one for rows in sizes[1:] for one in whole_runs(engine, rows))


def whole_runs(engine: str, rows: int) -> Iterator[tuple[str, str, int]]:
    """The hand-written programs and Errata over all rows; DuckDB runs beside Sail."""
    if engine == "sail":
        yield "duckdb", "duckdb", rows
    yield from ((program, engine, rows) for program in LARGE_PROGRAMS)


def measured(options: argparse.Namespace) -> Iterator[Result]:
    """Measure what is planned, one after the other. Spark is left out where there is no Java."""
    for program, engine, rows in planned(options):
        if (options.program and not wanted(program, options.program)) or (engine == "spark" and find_java() is None):
            continue
        data = written(program, rows)
        print(f"{program} on {engine}, {rows:,} rows", flush=True)
        try:
            result = Result(program, engine, rows, measure(program, engine, data, SCRATCH))
        except ProgramFailedError as failed:  # what was measured before it and comes after it is worth as much
            print(f"    {failed}", file=sys.stderr, flush=True)
            continue
        print("   ", ", ".join(f"{part}: {seconds:.2f} s" for part, seconds in result.measured.seconds.items()), flush=True)
        yield result


def wanted(program: str, named: Sequence[str]) -> bool:
    """Whether a program is named; `tpch` names all queries."""
    return program in named or (program in tpch.PROGRAMS and tpch.ALL in named)


def written(program: str, rows: int) -> Path:
    """The input of a program."""
    if program in growth.PROGRAMS or program in first_runs.PROGRAMS:
        shape = first_runs.SKEWED if program.endswith(first_runs.SKEWED) else ""
        return growth.write_rows(SCRATCH / f"rows-{rows}{shape}.csv", rows, skewed=bool(shape))
    if program in tpch.PROGRAMS:
        return tpch.data(rows / LINES_OF_SCALE_1)
    return write_sales(SCRATCH / f"sales-{rows}.csv", rows)


def check_totals(results: Results) -> None:
    """All programs must have come to the same totals. Raises AssertionError with the first account that differs."""
    from polars.testing import assert_frame_equal

    for rows in results.sizes():
        found = [one.measured.totals for one in results if one.rows == rows and one.measured.totals is not None]
        for totals in found[1:]:
            columns = [pl.col("account"), pl.col("total").cast(pl.Float64), pl.col("sales")]
            assert_frame_equal(totals.select(columns), found[0].select(columns), rel_tol=1e-12, abs_tol=0)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, action="append", help="only this number of rows (may be given again)")
    parser.add_argument("--scale", type=float, action="append", help=f"the scale of TPC-H (may be given again) [default: {SCALE}]")
    parser.add_argument("--engine", choices=["sail", "spark"], action="append", help="only this engine")
    programs = "pyspark, duckdb, errata, errata-all, errata-keyed, errata-tables, errata-tables-op-rows, bare, errata-six-nodes, errata-rollback, reading-csv, small-runs, growth-extremes, first-extremes, by-hand-extremes-skewed, tpch, tpch-q01 and the like"
    parser.add_argument("--program", action="append", help=f"only this program: {programs}")
    options = parser.parse_args()
    SCRATCH.mkdir(exist_ok=True)
    whole, results = not (options.rows or options.engine or options.program), Results()
    for result in measured(options):
        results = Results((*results, result))
        check_totals(results)
        if whole:  # each time: what was measured is worth telling, also where the rest is not waited for
            (HERE / "README.md").write_text(page(results), encoding="utf-8")
    if not whole:
        print(page(results))


if __name__ == "__main__":
    main()
