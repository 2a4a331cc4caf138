"""One measured process: `python -m benchmarks.worker PROGRAM ENGINE DATA WORK` prints a line of JSON for each part that it measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.job import Job
from benchmarks.programs import baseline, first_runs, growth, ranges, reading, rollback, small_runs, tables, tpch, with_errata

PROGRAMS: dict[str, Callable[[Job], None]] = {
    "pyspark": baseline.pyspark,
    "duckdb": baseline.duckdb,
    "errata": with_errata.all_runs,
    "errata-all": with_errata.first_run_keeping_all,
    "errata-keyed": with_errata.keyed_runs,
    "errata-six-nodes": with_errata.six_nodes,
    "errata-rollback": rollback.all_runs,
    "errata-tables": tables.all_runs,
    "errata-tables-op-rows": tables.op_rows,
    "bare": baseline.bare_script,
    "ranges-baseline": ranges.baseline,
    "ranges-errata": ranges.with_errata,
    "small-runs": small_runs.later_runs,
    **growth.PROGRAMS,
    **reading.PROGRAMS,
    **first_runs.PROGRAMS,
    **tpch.PROGRAMS,
}


def report(part: str, seconds: float) -> None:
    """Write a measured part to standard output at once, so that what was measured survives what comes after it."""
    print(json.dumps({"part": part, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    program, engine, data, work = sys.argv[1:]
    PROGRAMS[program](Job(Path(data), Path(work), engine, report))
