"""A range join: each sale's price band out of 10,000, hand-written in two ways and as a combine of a pipeline.

Read the sales, write them to a Delta table, find the band that holds the price, write one CSV file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.programs.baseline import SCHEMA, session
from benchmarks.programs.with_errata import SOURCE, place, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from benchmarks.job import Job

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
        for name, join in (("session warmed", in_buckets), ("first run, each with each", each_with_each), ("first run, explicit buckets", in_buckets)):
            folder = job.folder()
            bands = write_bands(folder / "bands.csv")
            with job.lap(name):
                records = spark.read.csv(str(job.data), schema=SCHEMA, header=True)
                records.write.format("delta").save(str(folder / "records"))
                stored = spark.read.format("delta").load(str(folder / "records"))
                found = join(stored, spark.read.csv(str(bands), schema="band BIGINT, low DOUBLE, high DOUBLE", header=True))
                found.select("id", "band").orderBy("id").coalesce(1).write.csv(str(folder / "banded"), header=True)


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
        run(job, name, folder)
    bands = (folder / "bands.csv").read_text(encoding="utf-8")
    (folder / "bands.csv").write_text(bands.replace("\n17,", "\n17000,", 1), encoding="utf-8")
    run(job, "one band corrected", folder)
