"""`python -m benchmarks.language`: a CXL program of twenty statements over five million rows beside hand-written columns, on one engine."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cxl import spark
from cxl.compiler import compile_program
from cxl.types.types import FLOAT, INT, STRING, Schema
from storage.engines import EngineChoice, engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROGRAM = """\
emit t = p * q
emit t2 = t + 1.5
emit d = p - 3.0
emit r = t2 / 2.0
emit big = t > 1000.0
emit size = if t > 1000.0 then "large" else "small"
emit u = s.trim()
emit up = u.upper()
emit lo = u.lower()
emit n = u.length()
emit st = u.starts_with("Name-1")
emit q2 = q * 2
emit q3 = q2 + id
emit m = q3 % 7
emit k = if m == 0 then "zero" else "more"
emit c = u.concat("-", k)
emit z = s ?? "none"
emit a = q.abs()
emit w = c.length()
emit last = t + d
"""
SCHEMA = Schema({"id": INT, "q": INT, "p": FLOAT, "s": STRING}.items())


def rows(session: SparkSession, count: int) -> DataFrame:
    """Records of an id, a small int, a float and a short text."""
    from pyspark.sql import functions as F

    number = F.col("id")
    text = F.concat(F.lit(" Name-"), (number % 1000).cast("string"))
    return session.range(count).select(number, (number % 97).alias("q"), (number * 0.37).alias("p"), text.alias("s"))


def by_program(frame: DataFrame) -> DataFrame:
    """The program's columns; records that fail are left out."""
    from pyspark.sql import functions as F

    applied = spark.apply(frame, compile_program(PROGRAM, SCHEMA))
    good = applied.frame.where(F.col(spark.PASS) & ~F.col(spark.FAILED)) if applied.can_fail else applied.frame
    return good.select("id", *(value.alias(name) for name, value in applied.values.items()))


def baseline(frame: DataFrame) -> DataFrame:
    """The same columns, without a look at overflow or failures."""
    from pyspark.sql import functions as F

    total, text, twice = F.col("p") * F.col("q"), F.trim("s"), F.col("q") * 2
    rest, less = (twice + F.col("id")) % 7, F.col("p") - 3.0
    kind = F.when(rest == 0, "zero").otherwise("more")
    joined = F.concat(text, F.lit("-"), kind)
    made = {
        "t": total, "t2": total + 1.5, "d": less, "r": (total + 1.5) / 2.0, "big": total > 1000.0, "size": F.when(total > 1000.0, "large").otherwise("small"),
        "u": text, "up": F.upper(text), "lo": F.lower(text), "n": F.length(text), "st": text.startswith("Name-1"), "q2": twice, "q3": twice + F.col("id"),
        "m": rest, "k": kind, "c": joined, "z": F.coalesce("s", F.lit("none")), "a": F.abs("q"), "w": F.length(joined), "last": total + less,
    }  # fmt: skip
    return frame.select("id", *(value.alias(name) for name, value in made.items()))


def seconds(frame: DataFrame, place: Path) -> float:
    """How long it takes to write a frame as Parquet."""
    began = time.perf_counter()
    frame.write.mode("overwrite").parquet(str(place))
    return time.perf_counter() - began


def main() -> None:
    """The command: prints the seconds of both and their ratio, three times, after one run of each that does not count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language", description=__doc__)
    parser.add_argument("--engine", choices=["sail", "spark"], default="sail")
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    session = engine(EngineChoice(options.engine)).session
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        seconds(rows(session, options.rows), place / "in")
        source = session.read.parquet(str(place / "in"))
        for turn in range(4):
            hand, program = seconds(baseline(source), place / "out"), seconds(by_program(source), place / "out")
            if turn:
                print(f"hand-written {hand:.2f} s, program {program:.2f} s, ratio {program / hand:.2f}", flush=True)


if __name__ == "__main__":
    main()
