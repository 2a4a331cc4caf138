"""The cost of rows, for a plan of larger runs: `python -m benchmarks.scale 5e6 20e6 --engine sail`.

Sales under a primary key are added up by account: a first run, then a thousand corrected prices all over the file. Each size is measured in a process
of its own. Processor seconds are counted over all processes, tasks and JVM included; memory is the most that they hold together.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, cast

from benchmarks.data import correct_prices, write_sales
from benchmarks.programs.baseline import check
from benchmarks.programs.with_errata import FILES, MERGE, PIPELINE, SOURCE, TOTALS, place, scattered
from benchmarks.usage import Memory, processor_seconds
from errata.api.pipeline import load
from errata.core.options import EngineKind, EngineOptions, RunOptions

LINE: Final = "{rows:>12,} {engine} {step:<10} {seconds:8.1f} s {microseconds:8.2f} µs/row {written:8.1f} B/row {files:5} files {commits:4} commits {memory:7,} MB"


def main(words: list[str] | None = None) -> None:
    """Measure each size, and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="+", type=float, help="numbers of rows")
    parser.add_argument("--engine", default="sail", choices=("sail", "spark"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where files lie meanwhile")
    parser.add_argument("--json", action="store_true", help="one JSON object for each run")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    for size in map(int, given.sizes):
        if given.here:
            for found in measured(size, given.engine, given.folder):
                print(json.dumps(found) if given.json else LINE.format(**found), flush=True)
        else:
            more = ["--json"] if given.json else []
            subprocess.run([sys.executable, "-m", "benchmarks.scale", str(size), "--engine", given.engine, "--folder", str(given.folder), "--here", *more], check=True)


def measured(rows: int, engine: str, folder: Path) -> list[dict[str, Any]]:
    """The figures of a first run and of one with corrections."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        here = Path(name)
        data, project = write_sales(here / "sales.csv", rows), here / "project"
        project.mkdir()
        place(data, project, SOURCE.replace(FILES, FILES + MERGE).format(persist="boundaries") + TOTALS.format(input="priced", result="totals"))
        found = [_run(rows, engine, project, "first run")]
        correct_prices(project / "data" / data.name, scattered(rows, 0))
        found.append(_run(rows, engine, project, "corrected"))
        check(project / "totals.csv", project / "data" / data.name)
        return found


def _run(rows: int, engine: str, project: Path, step: str) -> dict[str, Any]:
    before, spent = _state(project), processor_seconds()
    memory = Memory(os.getpid())
    memory.start()
    load(project / PIPELINE).run(RunOptions(engine=EngineOptions(cast("EngineKind", engine))))
    memory.stop()
    spent, after = processor_seconds() - spent, _state(project)
    new = [file for file in after if file not in before]
    written = sum(after[file] for file in new)
    return {
        "rows": rows, "engine": engine, "step": step, "seconds": round(spent, 2), "microseconds": round(spent / rows * 1e6, 3), "written": round(written / rows, 2),
        "files": sum(file.suffix == ".parquet" for file in new), "commits": sum(file.parent.name == "_delta_log" and file.suffix == ".json" for file in new),
        "memory": memory.peak >> 20,
    }  # fmt: skip


def _state(project: Path) -> dict[Path, int]:
    return {file: file.stat().st_size for file in (project / ".errata").rglob("*") if file.is_file()}


if __name__ == "__main__":
    main()
