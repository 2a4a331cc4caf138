"""The queries of TPC-H: a first run, orders inserted, orders deleted, prices corrected; each answer is DuckDB's over the same files."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.data import SCRATCH
from benchmarks.tpch.answers import QUERIES, WITH_FRACTION, answer, difference, fraction, pipeline
from benchmarks.tpch.tables import LINES_OF_SCALE_1, VERSIONS, place, write_versions

if TYPE_CHECKING:
    from benchmarks.job import Job

ALL: Final = "tpch"
WARMING: Final = 0.01
"""The scale over which a process runs the query once, so that the engine has started and the modules are read. With fewer suppliers keys of `partsupp` come twice."""
BY_DUCKDB: Final = "by DuckDB"


def data(scale: float) -> Path:
    """The folder with all versions of the tables, written where it is not there yet."""
    for wanted in (WARMING, scale):
        write_versions(SCRATCH / f"{ALL}-{lines(wanted)}", wanted)
    return SCRATCH / f"{ALL}-{lines(scale)}"


def lines(scale: float) -> int:
    """The number of lines of orders at a scale, more or less."""
    return round(scale * LINES_OF_SCALE_1)


def query(job: Job, number: int) -> None:
    """Run one query over each version of the tables. It reports processor seconds, not seconds of the clock.

    Raises SystemExit where an answer is not DuckDB's.
    """
    scale = int(job.data.name.rpartition("-")[2]) / LINES_OF_SCALE_1
    warm = job.folder()
    place(job.data.with_name(f"{ALL}-{lines(WARMING)}") / "0", warm / "data")
    run(number, warm, WARMING, job.engine)
    answer(number, warm / "data", WARMING)
    folder = job.folder()
    for version, name in enumerate(VERSIONS):
        place(job.data / str(version), folder / "data")
        with processor(job, name):
            run(number, folder, scale, job.engine)
        with processor(job, f"{name}, {BY_DUCKDB}"):
            expected = answer(number, folder / "data", scale)
        if differs := difference(folder / "result.csv", expected):
            raise SystemExit(f"query {number}, {name}: {differs}")


PROGRAMS: Final[Mapping[str, Callable[[Job], None]]] = {f"{ALL}-q{number:02}": partial(query, number=number) for number in QUERIES}


def run(number: int, folder: Path, scale: float, engine: str) -> None:
    """One run of a query in a folder that has its tables in `data`."""
    from errata.cli import main

    file = folder / "pipeline.yaml"
    file.write_text(pipeline(number).read_text(encoding="utf-8"), encoding="utf-8")
    variables = ["--var", f"vars.fraction={fraction(scale):f}"] if number == WITH_FRACTION else []
    code = main(["run", str(file), "--engine", engine, "--quiet", *variables])
    if code:
        raise SystemExit(f"query {number}: errata run ended with {code}")


@contextmanager
def processor(job: Job, name: str) -> Iterator[None]:
    """Report the processor seconds of the body of a `with`, of all threads and of processes that ended in it."""
    began = used()
    yield
    job.report(name, used() - began)


def used() -> float:
    """Processor seconds of this process so far, and of its children that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
