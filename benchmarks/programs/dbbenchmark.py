"""The questions of db-benchmark: group-by and join, then a correction of one row in a thousand."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.dbbenchmark import tables
from benchmarks.suite import Suite

TEXT: Final = (
    "The questions of [db-benchmark](https://duckdblabs.github.io/db-benchmark/): ten of group-by over `G1_1e7_1e2_0_0` and five joins over `J1_1e7_NA_0_0`, generated here by its scripts'",
    "description (`benchmarks/dbbenchmark`). Rows have no keys; results are written to a CSV file, which the published benchmark does not do. Question g6 asks for the variance instead of its",
    "root, which CXL does not have. After the first run a thousandth of the rows of `x`, or of `lhs` and `big`, is corrected in place.",
)
SUITE: Final = Suite(
    name="dbbenchmark",
    title="db-benchmark",
    text=TEXT,
    folder=Path(tables.__file__).parent,
    queries=[*(f"g{number}" for number in range(1, 11)), *(f"j{number}" for number in range(1, 6))],
    tables=tables.TABLES,
    files="{}.csv",
    versions=tables.VERSIONS,
    write=tables.write_versions,
    sizes=(10_000_000,),
    warming=10_000,
    words={engine: {"variance": word} for engine, word in (("duckdb", "var_samp"), ("pyspark", "var_samp"), ("polars", "variance"))},
)
BENCHMARK: Final = SUITE.benchmark()
