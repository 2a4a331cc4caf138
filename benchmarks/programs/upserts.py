"""Upserts of a growing share of the rows into a table: a pipeline that keeps a Delta table, beside MERGE of delta-rs, Sail and Spark, and INSERT OR REPLACE of DuckDB."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, share, table
from benchmarks.data import sales, write_frame, write_sales
from benchmarks.job import WARM, run
from benchmarks.programs.baseline import SCHEMA
from benchmarks.session import session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from benchmarks.job import Job
    from benchmarks.results import Results

ERRATA, DELTA_RS, MERGE, DUCKDB = "upserts", "upserts-delta-rs", "upserts-merge", "upserts-duckdb"
SHARES: Final = {"0.01 %": 0.0001, "0.1 %": 0.001, "1 %": 0.01, "10 %": 0.1, "50 %": 0.5}
"""The changed rows of each step, as a share of the first rows, in this order."""
NEW: Final = 10
"""One changed row of this number is new."""
BASE: Final = "0.csv"
MATCHED: Final = "t.id = s.id"
PIPELINE: Final = """\
pipeline: { name: upserts }
changelog: { persist: boundaries }
nodes:
  - type: source
    name: sales
    config:
      name: sales
      type: csv
      glob: data/*.csv
      merge: { strategy: upsert, primary_key: [id] }
      schema:
        - { name: id, type: int }
        - { name: account, type: string }
        - { name: quantity, type: int }
        - { name: price, type: float }
        - { name: day, type: date }
  - type: output
    name: result
    input: sales
    config: { name: result, type: delta, path: table, options: { mode: upsert } }
"""
TEXT: Final = (
    "A table of sales, then files with changed rows, each larger than the one before: nine of ten rows have other values, one is new, all in random order. Errata reads the files by",
    "`merge: upsert`, keeps its changelog, and keeps a Delta table by `mode: upsert`. delta-rs, Sail and Spark read each file and run MERGE on a Delta table, DuckDB replaces rows in a table of",
    "a database file with a primary key. Polars merges into Delta tables by delta-rs. After each step the table has DuckDB's rows, by their number and the sum of their hashes.",
)


def write(folder: Path, _: str, size: float) -> Path:
    """A folder with the file of the first rows and one file for each share."""
    import numpy as np

    whole, rows = folder / f"upserts-{size:.0f}", int(size)
    if whole.exists():
        return whole
    partial = whole.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    write_sales(partial / BASE, rows)
    for number, part in enumerate(SHARES.values(), 1):
        count = max(int(rows * part), NEW)
        random = np.random.default_rng(number)
        known = random.choice(rows, count - count // NEW, replace=False) + 1
        ids = np.concatenate([known, np.arange(count // NEW) + 1 + rows * (number + 1)])
        write_frame(sales(random.permutation(ids), 100 + number), partial / f"{number}.csv")
    partial.rename(whole)
    return whole


def steps(job: Job, first: Callable[[Path, Path], None], later: Callable[[Path, Path], None], read: Callable[[DuckDBPyConnection, Path], DuckDBPyRelation]) -> None:
    """First runs, then in the last one's folder a step for each share. Raises SystemExit where the table does not have DuckDB's rows.

    Args:
        job: Measures.
        first: Makes the table of a folder from a file.
        later: Brings a file of changes into it.
        read: The rows of the table.
    """
    for name, folder in job.first_runs():
        (folder / "data").mkdir()
        with job.lap(name):
            first(folder, _delivered(job, folder, 0))
    check(folder, read)
    for number, name in enumerate(SHARES, 1):
        file = _delivered(job, folder, number)
        with job.lap(name):
            later(folder, file)
        check(folder, read)


def _delivered(job: Job, folder: Path, number: int) -> Path:
    """Put a link to a file into the data of a folder."""
    file = folder / "data" / f"{number}.csv"
    file.hardlink_to(job.data / file.name)
    return file


def check(folder: Path, read: Callable[[DuckDBPyConnection, Path], DuckDBPyRelation]) -> None:
    """Raise SystemExit where a table has other rows than the last ones of each id in the files."""
    import duckdb

    with duckdb.connect() as connection:
        files = connection.read_csv(str(folder / "data/*.csv"), header=True, filename=True).set_alias("files")
        last = files.project("*, row_number() OVER (PARTITION BY id ORDER BY filename DESC) AS place").filter("place = 1")
        found, expected = fingerprint(read(connection, folder)), fingerprint(last)
    if found != expected:
        raise SystemExit(f"{folder}: rows and hash are {found}, not {expected}")


def fingerprint(rows: DuckDBPyRelation) -> tuple[int, int]:
    """The number of sales and the sum of their hashes."""
    hashes = rows.aggregate("count(*), sum(hash(id::BIGINT, account::VARCHAR, quantity::BIGINT, price::DOUBLE, day::DATE)::HUGEINT)")
    number, total = hashes.fetchall()[0]
    return int(number), int(total)


def of_delta(connection: DuckDBPyConnection, folder: Path) -> DuckDBPyRelation:
    """The rows of the Delta table of a folder."""
    from deltalake import DeltaTable

    return connection.from_arrow(DeltaTable(folder / "table").to_pyarrow_dataset())


def with_errata(job: Job) -> None:
    """The pipeline over one file more at a time."""
    def once(folder: Path, _: Path) -> None:
        (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")
        run(folder / "pipeline.yaml", job.engine)

    steps(job, once, once, of_delta)


def by_delta_rs(job: Job) -> None:
    """MERGE of delta-rs."""
    import polars as pl
    from deltalake import DeltaTable

    def first(folder: Path, file: Path) -> None:
        pl.read_csv(file, try_parse_dates=True).write_delta(folder / "table")

    def later(folder: Path, file: Path) -> None:
        changes = pl.read_csv(file, try_parse_dates=True)
        merged = DeltaTable(folder / "table").merge(changes, MATCHED, source_alias="s", target_alias="t")
        merged.when_matched_update_all().when_not_matched_insert_all().execute()

    steps(job, first, later, of_delta)


def by_engine(job: Job) -> None:
    """MERGE of Spark, or of Sail."""
    with session(job) as spark:

        def first(folder: Path, file: Path) -> None:
            spark.read.csv(str(file), schema=SCHEMA, header=True).write.format("delta").save(str(folder / "table"))

        def later(folder: Path, file: Path) -> None:
            spark.read.csv(str(file), schema=SCHEMA, header=True).createOrReplaceTempView("s")
            spark.sql(f"MERGE INTO delta.`{folder / 'table'}` AS t USING s ON {MATCHED} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *").collect()

        steps(job, first, later, of_delta)


def by_duckdb(job: Job) -> None:
    """INSERT OR REPLACE of DuckDB."""
    import duckdb

    def rows(connection: DuckDBPyConnection, folder: Path) -> DuckDBPyRelation:
        connection.execute("ATTACH $1 AS kept (READ_ONLY)", [str(folder / "table.duckdb")])
        return connection.table("kept.sales")

    def first(folder: Path, file: Path) -> None:
        with duckdb.connect(folder / "table.duckdb") as connection:
            connection.read_csv(str(file), header=True).create("sales")
            connection.execute("ALTER TABLE sales ADD PRIMARY KEY (id)")

    def later(folder: Path, file: Path) -> None:
        with duckdb.connect(folder / "table.duckdb") as connection:
            connection.read_csv(str(file), header=True).create_view("s")
            connection.execute("INSERT OR REPLACE INTO sales FROM s")

    steps(job, first, later, rows)


def show(results: Results) -> Iterator[str]:
    """The cost of each share, next to the first run and to the other programs."""
    yield from section("Upserts", TEXT)
    measured = results.among([ERRATA])
    rows = []
    for one in measured:
        for part in (WARM, *SHARES):
            others = [results.part(program, engine, one.size, part) for program, engine in OTHERS]
            spent = one.part(part)
            cells = (seconds(spent), share(spent, one.part(WARM)), *map(seconds, others), *(ratio(spent, other) for other in others))
            rows.append((rows_of(one.size), one.engine, part, *cells))
    heads = ("Errata", "of the first run", *OTHERS.values(), *(f"/ {name}" for name in OTHERS.values()))
    yield from table(("rows", "engine", "changed", *heads), rows, measured)


OTHERS: Final = {(DELTA_RS, "delta-rs"): "delta-rs", (MERGE, "sail"): "MERGE of Sail", (MERGE, "spark"): "MERGE of Spark", (DUCKDB, "duckdb"): "DuckDB"}
"""The programs that the pipeline is compared with, their engines, and their names in the table."""
PROGRAMS: Final = {
    DUCKDB: Program(by_duckdb, ("duckdb",)),
    DELTA_RS: Program(by_delta_rs, ("delta-rs",)),
    MERGE: Program(by_engine, always=True),
    ERRATA: Program(with_errata),
}
BENCHMARK: Final = Benchmark("upserts", PROGRAMS, (10_000_000,), write, show)
