"""A range join: each sale's price band out of 10,000, hand-written in two ways and as a combine of a pipeline.

Read the sales, write them to a Delta table, find the band that holds the price, write one CSV file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.answers import Answer, difference
from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, share, table
from benchmarks.job import WARM
from benchmarks.programs.baseline import SCHEMA
from benchmarks.programs.sales import write
from benchmarks.programs.with_errata import PIPELINE, SOURCE, place
from benchmarks.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from benchmarks.job import Job
    from benchmarks.results import Results

ERRATA, BY_HAND, DUCKDB = "ranges-errata", "ranges-baseline", "ranges-duckdb"
EACH, BUCKETS, CORRECTED = "each with each", "explicit buckets", "one band corrected"
BANDS = 10_000
LOWEST, HIGHEST = 100, 100_000
"""Prices in cents; the bands lie side by side, the last one without end in sight."""
COMBINE = """\
  - type: source
    name: bands
    config:
      name: bands
      type: csv
      path: bands.csv
      schema: [{ name: band, type: int }, { name: low, type: float }, { name: high, type: float }]
  - type: combine
    name: banded
    input: { s: sales, b: bands }
    config:
      where: "b.low <= s.price and s.price < b.high"
      match: all
      propagate_ck: driver
      cxl: |
        emit id = s.id
        emit band = b.band
  - type: output
    name: result
    input: banded
    config: { name: result, type: csv, path: banded.csv }
"""


def write_bands(path: Path) -> Path:
    """Write the bands: `band`, `low`, `high`."""
    step = (HIGHEST - LOWEST) / BANDS
    ends = [round(LOWEST + step * at) / 100 for at in range(BANDS)] + [1e9]
    path.write_text("band,low,high\n" + "".join(f"{at},{ends[at]},{ends[at + 1]}\n" for at in range(BANDS)), encoding="utf-8")
    return path


def baseline(job: Job) -> None:
    """PySpark: the plain condition, and explicit buckets of one euro; each in a first run of a warm session."""
    with session(job) as spark:
        for name, join in (("session warmed", in_buckets), (EACH, each_with_each), (BUCKETS, in_buckets)):
            folder = job.folder()
            bands = write_bands(folder / "bands.csv")
            with job.lap(name):
                records = spark.read.csv(str(job.data), schema=SCHEMA, header=True)
                records.write.format("delta").save(str(folder / "records"))
                stored = spark.read.format("delta").load(str(folder / "records"))
                found = join(stored, spark.read.csv(str(bands), schema="band BIGINT, low DOUBLE, high DOUBLE", header=True))
                found.select("id", "band").orderBy("id").coalesce(1).write.csv(str(folder / "banded"), header=True)
            check(folder / "banded", job.data, bands)


def each_with_each(records: DataFrame, bands: DataFrame) -> DataFrame:
    """The plain condition."""
    return records.join(bands, (bands["low"] <= records["price"]) & (records["price"] < bands["high"]), "left")


def in_buckets(records: DataFrame, bands: DataFrame) -> DataFrame:
    """An equality of whole euros, then the condition."""
    from pyspark.sql import functions as F

    last = F.least(F.floor("high"), F.lit(HIGHEST // 100))
    spread = bands.withColumn("euro", F.explode(F.sequence(F.floor("low"), last)))
    marked = records.withColumn("euro", F.floor("price"))
    return marked.join(spread, (marked["euro"] == spread["euro"]) & (spread["low"] <= marked["price"]) & (marked["price"] < spread["high"]), "left")


def with_errata(job: Job) -> None:
    """The pipeline's first runs, then one in which a band gets another name."""
    for name, folder in job.first_runs():
        write_bands(folder / "bands.csv")
        place(job.data, folder, SOURCE.format(persist="boundaries").split("  - type: transform")[0] + COMBINE)
        job.run(name, folder / PIPELINE)
    bands = folder / "bands.csv"
    bands.write_text(bands.read_text(encoding="utf-8").replace("\n17,", "\n17000,", 1), encoding="utf-8")
    job.run(CORRECTED, folder / PIPELINE)
    check(folder / "banded.csv", job.data, bands)


def in_duckdb(job: Job) -> None:
    """The plain condition in DuckDB, over the files."""
    for name, folder in job.first_runs():
        bands = write_bands(folder / "bands.csv")
        with job.lap(name):
            banded(job.data, bands, folder / "banded.csv")


def banded(sales: Path, bands: Path, place: Path) -> Answer:
    """Each sale's band, by DuckDB."""
    import duckdb

    with duckdb.connect() as connection:
        left, right = (connection.read_csv(str(file), header=True).set_alias(name) for file, name in ((sales, "s"), (bands, "b")))
        found = left.join(right, "b.low <= s.price AND s.price < b.high", "left").project("s.id, b.band").order("id")
        found.write_csv(str(place), header=True)
        return Answer(place, tuple(map(str, found.types)))


def check(found: Path, sales: Path, bands: Path) -> None:
    """Raise SystemExit where the bands are not DuckDB's."""
    if differs := difference(found, banded(sales, bands, bands.with_name("expected.csv")), ordered=False):
        raise SystemExit(f"{found}: {differs}")


TEXT: Final = ("Each sale's price band out of 10,000 bands, by `low <= price < high`; then one band gets another name. PySpark: the plain condition, and buckets of one euro.",)


def show(results: Results) -> Iterator[str]:
    """The pipeline beside the hand-written programs."""
    yield from section("Joins by ranges", TEXT)
    measured = results.among([ERRATA])
    rows = []
    for one in measured:
        by_hand = [results.part(BY_HAND, one.engine, one.size, part) for part in (EACH, BUCKETS)]
        duckdb, first, later = results.part(DUCKDB, "duckdb", one.size, WARM), one.part(WARM), one.part(CORRECTED)
        figures = (seconds(first), *map(seconds, by_hand), seconds(duckdb), ratio(first, by_hand[1]), ratio(first, duckdb), share(later, first), ratio(later, duckdb))
        rows.append((rows_of(one.size), one.engine, *figures))
    heads = ("Errata", f"PySpark, {EACH}", f"PySpark, {BUCKETS}", "DuckDB", f"/ {BUCKETS}", "/ DuckDB", f"{CORRECTED}, of the first run", "/ DuckDB")
    yield from table(("rows", "engine", *heads), rows, measured)


PROGRAMS: Final = {DUCKDB: Program(in_duckdb, ("duckdb",)), BY_HAND: Program(baseline), ERRATA: Program(with_errata)}
BENCHMARK: Final = Benchmark("ranges", PROGRAMS, (200_000,), write, show)
