"""The other programs of the benchmarks, over few rows: they run, and their own comparisons with DuckDB hold."""

from __future__ import annotations

import pytest

from benchmarks.all import BENCHMARKS
from benchmarks.process import measure
from benchmarks.programs import aims, dbbenchmark, nexmark, tpch

SUITES = {module.SUITE.name for module in (tpch, nexmark, dbbenchmark)}
SIZES = {"small-runs": 12}
FEW = 3_000
QUICK = {"upserts", "upserts-delta-rs", "small-runs", "growth-time-window", "ranges-errata", "polars"}


def programs():
    for benchmark in BENCHMARKS.values():
        if benchmark.name not in SUITES | {aims.BENCHMARK.name}:
            for name, program in benchmark.programs.items():
                marks = [] if name in QUICK else [pytest.mark.deep]
                engine = "sail" if "sail" in program.engines else program.engines[0]
                yield pytest.param((benchmark, name, engine), id=name, marks=marks)


@pytest.mark.parametrize("one", [*programs()])
def test_each_program_measures_its_parts_and_agrees_with_duckdb(tmp_path, one):
    benchmark, program, engine = one
    size = SIZES.get(benchmark.name, FEW)
    found = measure(program, engine, size, benchmark.write(tmp_path, program, size), scratch=tmp_path, longest=100)
    assert found.parts
    assert found.peak_mb > 0
    assert all(figure >= 0 for figure in found.parts.values())
