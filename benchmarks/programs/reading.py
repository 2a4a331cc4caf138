"""Reading text files into a Delta table of their records: Errata's readers beside the engine's own, of the same columns and types, fields without a column left out.

What is measured is what a source does with a large file and nothing else of a run: the file is cut, its ranges are read by the engine's tasks (`mapInArrow`), and the
engine writes the records.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, table
from benchmarks.job import WARM
from benchmarks.programs.baseline import SCHEMA
from benchmarks.programs.sales import write
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.job import Job
    from benchmarks.results import Results

COLUMNS = (("id", "int"), ("account", "string"), ("quantity", "int"), ("price", "float"), ("day", "date"))
FORMATS: Final[dict[str, tuple[str, dict[str, Any]]]] = {"csv": ("csv", {}), "ndjson": ("json", {"format": "ndjson"})}
"""By the name of a format here: its name in a pipeline, and the options of a source."""


def input_of(job: Job, name: str) -> Path:
    """The sales in a format; written beside the CSV file where they are not there yet."""
    if name == "csv":
        return job.data
    path = job.data.with_suffix(f".{name}")
    if not path.exists():
        import polars as pl

        partial_file = path.with_suffix(".partial")
        pl.read_csv(job.data).write_ndjson(partial_file)
        partial_file.rename(path)
    return path


def baseline(name: str, job: Job) -> None:
    """`spark.read` with the columns as its schema, then Delta."""
    path = str(input_of(job, name))
    with session(job) as spark:
        for part, folder in job.first_runs():
            with job.lap(part):
                records = spark.read.csv(path, schema=SCHEMA, header=True) if name == "csv" else spark.read.json(path, schema=SCHEMA)
                records.write.format("delta").save(str(folder / "records"))


def with_errata(name: str, job: Job) -> None:
    """The reader of a source on the engine of a run, the records of both kinds, good ones and rejects, in one table."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from storage import formats
    from storage.engines import EngineChoice, engine
    from storage.formats import Column, ReadPlan
    from storage.formats.tasks import chunk_reader, task_table, tasks_of

    form, options = FORMATS[name]
    path = input_of(job, name)
    chosen = engine(EngineChoice("sail" if job.engine == "sail" else "spark"))
    with job.lap("session"):
        _ = chosen.session
    for part, folder in job.first_runs():
        with job.lap(part):
            reader = formats.reader(form, options, ReadPlan(tuple(Column(*column) for column in COLUMNS), on_unmapped="drop"))
            tasks = tasks_of(reader, path, path.name)
            spread = chosen.from_arrow(task_table(tasks)).repartition(len(tasks))
            records = spread.mapInArrow(chunk_reader(reader), from_arrow_schema(reader.schema()))
            records.write.format("delta").save(str(folder / "records"))


BASELINE: Final = "-baseline"
PROGRAMS: Final = {f"reading-{name}{kind}": Program(partial(program, name)) for name in FORMATS for kind, program in ((BASELINE, baseline), ("", with_errata))}
TEXT: Final = (
    "A file of sales is read, and its records are written to a Delta table, by the reader of a source and by the engine's own (`spark.read` with the same columns and",
    "types): cutting the file, reading it and writing the table, nothing else of a run. Warm; promised is at most 1.3 times as much as Spark's reader takes.",
)


def show(results: Results) -> Iterator[str]:
    """Readers of sources beside the engines' readers."""
    yield from section("Reading", TEXT)
    measured = results.among(program for program in PROGRAMS if not program.endswith(BASELINE))
    rows = []
    for one in measured:
        ours, own = one.part(WARM), results.part(one.program + BASELINE, one.engine, one.size, WARM)
        rows.append((rows_of(one.size), one.engine, one.program.removeprefix("reading-"), seconds(ours), seconds(own), ratio(ours, own)))
    yield from table(("rows", "engine", "format", "Errata's reader", "the engine's own", "ratio"), rows, measured)


BENCHMARK: Final = Benchmark("reading", PROGRAMS, (1_000_000,), write, show)
