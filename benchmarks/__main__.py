"""`python -m benchmarks`: measure what was not measured yet, a program after the other, and write README.md after each."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.all import BENCHMARKS
from benchmarks.benchmark import ENGINES, SCRATCH, Benchmark
from benchmarks.cells import rows_of
from benchmarks.machine import description, load
from benchmarks.page import page
from benchmarks.process import ProgramFailedError, measure
from benchmarks.results import Result, Results
from storage.engines.spark.java import find_java

PAGE: Final = Path(__file__).parent / "README.md"
LONGEST: Final = 1800
"""Seconds after which a program is ended."""


def planned(options: argparse.Namespace, results: Results) -> Iterator[tuple[Benchmark, str, str, float]]:
    """Benchmark, program, engine and size of all that is to be measured. Spark is left out where there is no Java."""
    for name in options.benchmark or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        for program, engine, size in benchmark.planned(tuple(options.size or ()), tuple(options.engine or ())):
            wanted = not options.program or program in options.program
            known = results.of(program, engine, size) is not None and not options.again
            if wanted and not known and (engine != "spark" or find_java() is not None):
                yield benchmark, program, engine, size


def measured(options: argparse.Namespace, results: Results) -> Results:
    """Measure what is planned, and keep each result at once. A program that fails is named, and the others follow."""
    ends = time.monotonic() + options.minutes * 60
    for benchmark, program, engine, size in planned(options, results):
        if time.monotonic() > ends:
            print(f"{options.minutes:g} minutes are over; the same command goes on from here")
            break
        print(f"{program} on {engine}, {rows_of(size)}", flush=True)
        try:
            found = measure(program, engine, size, benchmark.write(SCRATCH, program, size), scratch=SCRATCH, longest=options.longest)
        except ProgramFailedError as failed:
            print(f"    {failed}", file=sys.stderr, flush=True)
            continue
        print("   ", ", ".join(f"{part}: {figure:.2f}" for part, figure in found.parts.items()), flush=True)
        machine = " ".join(filter(None, (description(), options.note)))
        results = results.with_one(Result(program, engine, size, machine, load(), round(found.peak_mb, 1), found.parts))
        results.save()
        PAGE.write_text(page(results), encoding="utf-8")
    return results


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("benchmark", nargs="*", metavar="BENCHMARK", help=f"only these: {', '.join(BENCHMARKS)}")
    parser.add_argument("--size", type=float, action="append", help="only this number of rows, or this scale (may be given again)")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="only this engine (may be given again)")
    parser.add_argument("--program", action="append", help="only this program, such as tpch-q01-polars (may be given again)")
    parser.add_argument("--again", action="store_true", help="measure anew what was measured")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing more after so many minutes")
    parser.add_argument("--longest", type=float, default=LONGEST, help=f"seconds after which a program is ended [default: {LONGEST}]")
    parser.add_argument("--note", help="a sentence beside the machine, such as `The machine was shared.`")
    parser.add_argument("--list", action="store_true", help="say what would be measured")
    parser.add_argument("--page", action="store_true", help="write the page only")
    options = parser.parse_args(arguments)
    if unknown := set(options.benchmark) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    return options


def main() -> None:
    """The command."""
    options, results = parsed(), Results.load()
    SCRATCH.mkdir(exist_ok=True)
    if options.list:
        for _, program, engine, size in planned(options, results):
            print(f"{program} on {engine}, {rows_of(size)}")
    elif options.page:
        PAGE.write_text(page(results), encoding="utf-8")
    else:
        measured(options, results)


if __name__ == "__main__":
    main()
