"""All benchmarks, in the order of the page, and their programs by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.programs import (
    aims,
    databases,
    dbbenchmark,
    first_runs,
    growth,
    histories,
    memory,
    nexmark,
    ranges,
    reading,
    rollback,
    sales,
    small,
    small_runs,
    tpch,
    upserts,
)

MODULES: Final = (aims, sales, memory, small, small_runs, rollback, reading, histories, first_runs, growth, ranges, tpch, nexmark, upserts, databases, dbbenchmark)
BENCHMARKS: Final[Mapping[str, Benchmark]] = {module.BENCHMARK.name: module.BENCHMARK for module in MODULES}
PROGRAMS: Final[Mapping[str, Program]] = {name: program for benchmark in BENCHMARKS.values() for name, program in benchmark.programs.items()}
