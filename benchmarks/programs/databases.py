"""Rows to and from PostgreSQL: a mirror beside COPY, a source beside the driver alone, and what changes and a run without changes take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, table
from benchmarks.job import REPEATS
from benchmarks.usage import processor_seconds, seconds_of

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.job import Job
    from benchmarks.results import Results
    from tests.support.databases import Database

NAME: Final = "databases"
COPY, MIRROR, DRIVER, SOURCE = "COPY", "mirror", "the driver", "source"
CHANGES, UNCHANGED = "1,000 changes", "unchanged"
WALL: Final = ", wall"
COLUMNS: Final = {
    "id": "int", "account": "string", "quantity": "int", "price": "float", "day": "date",
    "city": "string", "active": "bool", "note": "string", "score": "float", "stock": "int",
}  # fmt: skip
TYPES: Final = {"int": "bigint", "string": "text", "float": "double precision", "date": "date", "bool": "boolean"}
ASKED_FIRST: Final = "SELECT count(*) FROM copied"
PIPELINE: Final = """\
pipeline: {{ name: {name} }}
nodes:
  - {{ type: source, name: rows, config: {{ name: rows, {source}, merge: {{ strategy: snapshot, primary_key: [id] }}, schema: [{schema}] }} }}
  - {{ type: output, name: result, input: rows, config: {{ name: result, {output} }} }}
"""
TEXT: Final = (
    "A PostgreSQL of this machine, without fsync; rows of ten columns with a primary key. Seconds are processor seconds of this process and of the server together. COPY is the driver's",
    "(`adbc_ingest` of the same rows in Arrow, into a table made with the key); the mirror is a run that finds its table gone, and makes it anew from the state. The driver reads the rows into",
    "Arrow; the source is a run that asks for all rows, hashes them and finds them unchanged. Changes are a run that brings the op rows of an epoch, which another one committed, to the",
    "table; unchanged is a run over an unchanged table with a `change_token`.",
)


def program(job: Job) -> None:
    """Each part three times, a part of Errata behind the one of the driver."""
    from tests.support.databases import Database

    database = Database.new("postgresql", job.work)
    rows = _rows(int(job.size))
    mirror, source, token = (_pipeline(job.work, database, name) for name in ("mirror", "source", "token"))
    _write(job.work, rows)
    job.run("first run", mirror)
    for number in range(REPEATS):
        with _both(job, COPY):
            _copied(database, rows)
        database.do("DROP TABLE result")
        database.do("DELETE FROM _errata_outputs")
        with _both(job, MIRROR):
            _run(job, mirror)
        _write(job.work, _changed(rows, number))
        _run(job, mirror, until="sql:begin")
        with _both(job, CHANGES):
            _run(job, mirror)
    assert database.ask("SELECT count(*), sum(stock)::text FROM result") == database.ask("SELECT count(*), sum(stock)::text FROM copied")
    for pipeline in (source, token):
        _run(job, pipeline)
    for _ in range(REPEATS):
        with _both(job, DRIVER):
            _read(database)
        with _both(job, SOURCE):
            _run(job, source)
        with _both(job, UNCHANGED):
            _run(job, token)


def _rows(size: int) -> pa.Table:
    import polars as pl

    numbers = pl.int_range(size, dtype=pl.Int64)
    made = pl.select(
        id=numbers, account=pl.format("account-{}", numbers % 1000), quantity=numbers * 7919 % 100, price=(numbers * 104_729 % 10_000) / 100, day=pl.date(2016, 1, 1) + pl.duration(days=numbers % 3000),
        city=pl.format("city {}", numbers % 97), active=numbers % 3 == 0, note=pl.format("note of row {}", numbers), score=(numbers * 15_485_863 % 1_000_003) / 1_000_003, stock=numbers * 32_452_843 % 1_000_000_007,
    )  # fmt: skip
    return made.to_arrow().cast(_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    types = {"int": pa.int64(), "string": pa.string(), "float": pa.float64(), "date": pa.date32(), "bool": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])


def _changed(rows: pa.Table, number: int) -> pa.Table:
    """The rows with another quantity in 1,000 of them, or in one of two where there are few."""
    import polars as pl

    step = max(2, math.ceil(rows.num_rows / 1000))
    found = pl.DataFrame(rows).with_columns(pl.when(pl.col("id") % step == 1).then(pl.col("quantity") + number + 1).otherwise(pl.col("quantity")).alias("quantity"))
    return found.to_arrow().cast(_schema())


def _write(folder: Path, rows: pa.Table) -> None:
    from pyarrow import csv

    csv.write_csv(rows, folder / "rows.csv")


def _pipeline(folder: Path, database: Database, name: str) -> Path:
    asked = "type: sql, connection: shop, table: copied"
    source = {"mirror": "type: csv, path: rows.csv", "source": asked, "token": f"{asked}, change_token: {ASKED_FIRST}"}[name]
    output = "type: sql, connection: shop, table: result, primary_key: [id]" if name == "mirror" else f"type: parquet, path: {name}.parquet"
    schema = ", ".join(f"{{ name: {column}, type: {kind} }}" for column, kind in COLUMNS.items())
    file = folder / f"{name}.yaml"
    file.write_text(PIPELINE.format(name=name, source=source, output=output, schema=schema), encoding="utf-8")
    return file


class _StoppedError(Exception):
    """A run ends here."""


def _run(job: Job, pipeline: Path, *, until: str = "") -> None:
    """A run in this process, to its end or to a durable step, which it then does not take."""
    from benchmarks.job import run
    from storage import durable

    def probe(moment: durable.Moment) -> None:
        if moment.name == until:
            raise _StoppedError

    with durable.probing(probe):
        run(pipeline, job.engine, code=70 if until else 0)


@contextmanager
def _both(job: Job, part: str) -> Iterator[None]:
    """Measure the processor seconds of this process and of the server, and the elapsed ones beside them."""
    from tests.support.databases import postgres

    def used() -> float:
        return processor_seconds() + seconds_of(postgres().process)

    began, clock = used(), time.perf_counter()
    yield
    job.report(part + WALL, time.perf_counter() - clock)
    job.report(part, used() - began)


def _with_driver(database: Database, work: Callable[[Any], object]) -> None:
    """Work with a cursor of the driver, in one transaction."""
    import adbc_driver_postgresql.dbapi as driver

    from tests.support.databases import postgres

    with closing(driver.connect(postgres().address(database.name))) as connection:
        with closing(connection.cursor()) as cursor:
            work(cursor)
        connection.commit()


def _copied(database: Database, rows: pa.Table) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in COLUMNS.items())

    def copy(cursor: Any) -> None:
        cursor.execute("DROP TABLE IF EXISTS copied")
        cursor.execute(f"CREATE TABLE copied ({columns}, PRIMARY KEY (id))")
        cursor.adbc_ingest("copied", rows, mode="append")

    _with_driver(database, copy)


def _read(database: Database) -> None:
    def read(cursor: Any) -> None:
        cursor.execute("SELECT * FROM copied")
        cursor.fetch_arrow_table()

    _with_driver(database, read)


def write(folder: Path, _: str, __: float) -> Path:
    """The program makes its rows itself."""
    return folder


def show(results: Results) -> Iterator[str]:
    """Mirrors and sources beside the driver."""
    yield from section("PostgreSQL", TEXT)
    measured = results.among([NAME])
    rows = []
    for one in measured:
        pairs = [(one.part(ours), one.part(driver)) for ours, driver in ((MIRROR, COPY), (SOURCE, DRIVER))]
        shown = [text for ours, driver in pairs for text in (seconds(ours), seconds(driver), ratio(ours, driver))]
        rows.append((rows_of(one.size), one.engine, *shown, seconds(one.part(CHANGES)), seconds(one.part(UNCHANGED))))
    head = ("rows", "engine", "mirror", "COPY", "ratio", "source", "the driver", "ratio", "1,000 changes", "unchanged")
    yield from table(head, rows, measured)


BENCHMARK: Final = Benchmark(NAME, {NAME: Program(program, ("sail",))}, (1_000_000,), write, show)
