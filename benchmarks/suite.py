"""Queries over tables of CSV files that change: as pipelines, in DuckDB, and hand-written in PySpark and Polars.

A suite is data: a folder with `<query>.yaml` and `<query>.sql` for each query, the types of its tables, and what writes their versions.
The text of a query is the same for DuckDB, Spark, Sail and Polars, but for a few words (`$name`) that each of them says in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import geometric_mean, median
from string import Template
from typing import TYPE_CHECKING, Final

import yaml

from benchmarks.answers import ROUGH, Answer, difference
from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, share, table
from benchmarks.job import run
from benchmarks.session import session

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import SparkSession

    from benchmarks.job import Job
    from benchmarks.results import Result, Results

PYSPARK, POLARS = "pyspark", "polars"
SHARE: Final = 1000
"""With each step one row of this number changes."""
COMPUTED: Final = "computed"
"""The part of a hand-written program: a query computed over one version."""


def by_duckdb(version: str) -> str:
    """The part in which DuckDB computes a version."""
    return f"{version}, by DuckDB"


@dataclass(frozen=True, slots=True)
class Suite:
    """Queries over one set of tables.

    Args:
        name: What the command line calls it; programs are `<name>-<query>`, and `<name>-<query>-pyspark` and the like.
        title: The heading of its table.
        text: The lines below the heading.
        folder: Has the pipeline and the text of each query.
        queries: Their names.
        tables: The columns of each table with their types in DuckDB, in the order of the files.
        files: The pattern of a table's files, `{}` for its name.
        versions: Names of the steps: a first run, and what changes after it.
        write: Writes a folder with the versions of a size, `0` and up, where it is not there yet; with each step one row of some number changes.
        sizes: What `make bench` measures.
        warming: The size over which a process computes a query before it is measured, so that engines have started.
        unit: What a size counts.
        variables: What a size has the pipelines know: values of `$vars`, which the texts know too.
        words: What an engine says for `$name` in a text.
        ordered: Whether the order of the rows is a part of the answer.
    """

    name: str
    title: str
    text: Sequence[str]
    folder: Path
    queries: Sequence[str]
    tables: Mapping[str, Mapping[str, str]]
    files: str
    versions: Sequence[str]
    write: Callable[[Path, float, int], Path]
    sizes: tuple[float, ...]
    warming: float
    unit: str = "rows"
    variables: Callable[[float], Mapping[str, str]] = field(default=lambda _: {})
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ordered: bool = False

    def pipeline(self, query: str) -> Path:
        """The pipeline file of a query."""
        return self.folder / f"{query}.yaml"

    def statement(self, query: str, engine: str, size: float) -> str:
        """The text of a query as an engine takes it."""
        text = Template((self.folder / f"{query}.sql").read_text(encoding="utf-8"))
        return text.substitute(self.words.get(engine, {}), **self.variables(size))

    def inputs(self, query: str) -> Mapping[str, Sequence[str]]:
        """The columns that the sources of a query's pipeline declare, by table."""
        nodes = yaml.safe_load(self.pipeline(query).read_text(encoding="utf-8"))["nodes"]
        return {node["name"]: [column["name"] for column in node["config"]["schema"]] for node in nodes if node["type"] == "source"}

    def data(self, folder: Path, size: float) -> Path:
        """The versions of a size in a folder of their own, written where they are not there yet."""
        return self.write(folder / f"{self.name}-{rows_of(size).replace(',', '')}", size, SHARE)

    def place(self, query: str, version: Path, folder: Path) -> None:
        """Put links to the tables that a query reads into a folder, and replace what differs."""
        folder.mkdir(exist_ok=True)
        found = {source.name: source for name in self.inputs(query) for source in version.glob(self.files.format(name))}
        for name, source in found.items():
            target = folder / name
            if not (target.exists() and target.samefile(source)):
                target.unlink(missing_ok=True)
                target.hardlink_to(source)

    def run(self, query: str, folder: Path, size: float, engine: str) -> None:
        """One run of a query in a folder that has its tables in `data`."""
        file = folder / "pipeline.yaml"
        text = self.pipeline(query).read_text(encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        known = [f"vars.{name}={value}" for name, value in self.variables(size).items() if f"$vars.{name}" in text]
        options = [word for value in known for word in ("--var", value)]
        run(file, engine, *options)

    def answer(self, query: str, folder: Path, size: float) -> Answer:
        """DuckDB reads the columns that the pipeline reads, computes the query and writes a CSV file. Returns the file with the types of its columns."""
        import duckdb

        file = folder / "expected.csv"
        with duckdb.connect() as connection:
            for name, columns in self.inputs(query).items():
                files = str(folder / "data" / self.files.format(name))
                found = connection.read_csv(files, header=True, delimiter=",", quotechar='"', columns=dict(self.tables[name]))
                found.project(", ".join(columns)).create(name)
            rows = connection.sql(self.statement(query, "duckdb", size))
            rows.write_csv(str(file), header=True)
            return Answer(file, tuple(map(str, rows.types)))

    def with_errata(self, job: Job, query: str) -> None:
        """Run a query over each version, and have DuckDB compute each. Raises SystemExit where an answer is not DuckDB's."""
        warm, folder = job.folder(), job.folder()
        self.place(query, self.data(job.data.parent, self.warming) / "0", warm / "data")
        self.run(query, warm, self.warming, job.engine)
        self.answer(query, warm, self.warming)
        for version, name in enumerate(self.versions):
            self.place(query, job.data / str(version), folder / "data")
            with job.lap(name):
                self.run(query, folder, job.size, job.engine)
            with job.lap(by_duckdb(name)):
                expected = self.answer(query, folder, job.size)
            if differs := difference(folder / "result.csv", expected, ordered=self.ordered):
                raise SystemExit(f"{query}, {name}: {differs}")

    def hand_written(self, job: Job, query: str, compute: Callable[[Suite, str, Path, float], Path]) -> None:
        """Compute a query over each version by another program. Raises SystemExit where its answer is not DuckDB's, to the digits that its means have."""
        warm = job.folder()
        self.place(query, self.data(job.data.parent, self.warming) / "0", warm / "data")
        compute(self, query, warm, self.warming)
        for version, name in enumerate(self.versions):
            folder = job.folder()
            self.place(query, job.data / str(version), folder / "data")
            with job.lap(COMPUTED):
                found = compute(self, query, folder, job.size)
            if differs := difference(found, self.answer(query, folder, job.size), ROUGH, ordered=False):  # Sail puts parts together in any order
                raise SystemExit(f"{query}, {name}, by {job.engine}: {differs}")

    def in_pyspark(self, job: Job, query: str) -> None:
        """The query as a hand-written PySpark program."""
        with session(job) as spark:
            self.hand_written(job, query, partial(pyspark, spark))

    def in_polars(self, job: Job, query: str) -> None:
        """The query as a hand-written Polars program."""
        self.hand_written(job, query, polars)

    def program(self, query: str, kind: str = "") -> str:
        """The name of a query's program."""
        return "-".join(filter(None, (self.name, query, kind)))

    def programs(self) -> Iterator[tuple[str, Program]]:
        """All programs. The programs of a query are side by side."""
        for query in self.queries:
            yield self.program(query), Program(partial(self.with_errata, query=query))
            yield self.program(query, PYSPARK), Program(partial(self.in_pyspark, query=query))
            yield self.program(query, POLARS), Program(partial(self.in_polars, query=query), (POLARS,))

    def benchmark(self) -> Benchmark:
        """The benchmark of all queries."""

        def write(folder: Path, _: str, size: float) -> Path:
            return self.data(folder, size)

        return Benchmark(self.name, dict(self.programs()), self.sizes, write, self.show)

    def show(self, results: Results) -> Iterator[str]:
        """First runs beside hand-written programs, and what each change costs beside the first run and beside DuckDB; last come the means."""
        yield from section(self.title, self.text)
        measured = [one for query in self.queries for one in results.among([self.program(query)])]
        measured.sort(key=lambda one: (one.size, one.engine))
        steps = self.versions[1:]
        heads = (f"{version}{of}" for version in steps for of in (", of the first run", " / DuckDB"))
        head = (self.unit, "engine", "query", "Errata, first run", "DuckDB", "PySpark", "Polars", "first run / DuckDB", "/ PySpark", "/ Polars", *heads)
        rows = [self._row(one, results) for one in measured]
        for size, engine in dict.fromkeys((one.size, one.engine) for one in measured):
            rows.append(self._means([one for one in measured if (one.size, one.engine) == (size, engine)], results))
        yield from table(head, rows, measured)

    def _row(self, one: Result, results: Results) -> Sequence[str]:
        query = one.program.removeprefix(f"{self.name}-")
        first, hand_written = one.part(self.versions[0]), self._hand_written(one, results)
        steps = []
        for version in self.versions[1:]:
            spent = one.part(version)
            steps += [share(spent, first), ratio(spent, one.part(by_duckdb(version)))]
        return (rows_of(one.size), one.engine, query, seconds(first), *map(seconds, hand_written), *(ratio(first, other) for other in hand_written), *steps)

    def _hand_written(self, one: Result, results: Results) -> Sequence[float | None]:
        duckdb = [figure for version in self.versions if (figure := one.part(by_duckdb(version))) is not None]
        spark = results.part(f"{one.program}-{PYSPARK}", one.engine, one.size, COMPUTED)
        return (median(duckdb), spark, results.part(f"{one.program}-{POLARS}", POLARS, one.size, COMPUTED))

    def _means(self, measured: Sequence[Result], results: Results) -> Sequence[str]:
        """Geometric means of the ratios."""
        firsts = [one.parts[self.versions[0]] for one in measured]
        others = zip(*(self._hand_written(one, results) for one in measured), strict=True)
        cells = [_mean(firsts, column) for column in others]
        for version in self.versions[1:]:
            spent = [one.part(version) for one in measured]
            cells += [_mean(spent, firsts, "{:.0%}"), _mean(spent, [one.part(by_duckdb(version)) for one in measured])]
        return (rows_of(measured[0].size), measured[0].engine, "mean", "", "", "", "", *cells)


def _mean(values: Sequence[float | None], bases: Sequence[float | None], form: str = "{:.2f}") -> str:
    found = [value / base for value, base in zip(values, bases, strict=True) if value and base]
    return form.format(geometric_mean(found)) if found else ""


def pyspark(spark: SparkSession, suite: Suite, query: str, folder: Path, size: float) -> Path:
    """Compute a query over the files of a folder in PySpark. Returns the folder with its CSV file."""
    for name, columns in suite.inputs(query).items():
        schema = ", ".join(f"{column} {spark_type(kind)}" for column, kind in suite.tables[name].items())
        frame = spark.read.csv(str(folder / "data" / suite.files.format(name)), schema=schema, header=True)
        frame.select(*columns).createOrReplaceTempView(name)
    found = folder / "result"
    spark.sql(suite.statement(query, PYSPARK, size)).coalesce(1).write.csv(str(found), header=True)
    return found


def spark_type(duckdb_type: str) -> str:
    """The name in Spark of a type of DuckDB."""
    return "STRING" if duckdb_type == "VARCHAR" else duckdb_type


def polars(suite: Suite, query: str, folder: Path, size: float) -> Path:
    """Compute a query over the files of a folder in Polars. Returns its CSV file."""
    import polars as pl

    tables = pl.SQLContext()
    for name, columns in suite.inputs(query).items():
        types = {column: polars_type(kind) for column, kind in suite.tables[name].items()}
        tables.register(name, pl.scan_csv(str(folder / "data" / suite.files.format(name)), schema=types).select(columns))
    found = folder / "result.csv"
    tables.execute(suite.statement(query, POLARS, size)).collect().write_csv(found)
    return found


def polars_type(duckdb_type: str) -> pl.DataType:
    """The type in Polars of a type of DuckDB."""
    import polars as pl

    types = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "VARCHAR": pl.String(), "DATE": pl.Date(), "TIMESTAMP": pl.Datetime("us"), "DECIMAL(15,2)": pl.Decimal(15, 2)}
    return types[duckdb_type]
