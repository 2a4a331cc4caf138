"""A command ends as the contract says, however slow the libraries of its engine are to import, and on whatever thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: {{ name: sums }}
nodes:
  - {{ type: source, name: rows, config: {{ name: rows, type: csv, path: {path}, schema: [{{ name: id, type: int }}, {{ name: v, type: int }}], merge: {{ strategy: snapshot, primary_key: [id] }} }} }}
  - {{ type: aggregate, name: sums, input: rows, config: {{ group_by: [v], cxl: "emit n = count(*)" }} }}
  - {{ type: output, name: out, input: sums, config: {{ name: out, type: csv, path: out.csv }} }}
"""
PROGRAM = """
import random, sys, threading, time
from importlib.abc import MetaPathFinder

class Watching(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in slow:
            time.sleep(slow[name])
        if threading.current_thread().name.startswith("engine-start"):
            print(name, file=sys.stderr)

random.seed(int(sys.argv[1]))
slow = {name: random.uniform(0, 0.3 / 3) for name in random.sample(%r, 3)}
sys.meta_path.insert(0, Watching())
sys.argv[1:] = sys.argv[2:]
from errata.cli import run
run()
"""
SLOW = ["pyspark", "pyspark.errors", "pyspark.sql", "pyspark.sql.types", "pyspark.sql.utils", "pyspark.sql.functions", "pyspark.sql.session",
        "pyspark.sql.connect.session", "pyspark.sql.connect.functions", "pyspark.sql.pandas.types", "pandas", "numpy", "google.protobuf", "grpc", "py4j.protocol"]  # fmt: skip
"""Modules that are looked for late: each start chooses three, which take up to 300 ms together."""
GOOD, BAD = "rows.csv", "rows.csv.gz"


def starts(engine: str, count: int, first: int = 0) -> list[object]:
    """As many cold starts, every other with an input that cannot be read."""
    marks = [pytest.mark.spark] if engine == "spark" else []
    return [pytest.param(engine, (GOOD, BAD)[number % 2], number, marks=marks) for number in range(first, first + count)]


def start(folder: Folder, engine: str, path: str, number: int) -> None:
    folder.write("pipeline.yaml", PIPELINE.format(path=path))
    folder.write(GOOD, "id,v\n1,5\n2,5\n3,6\n")
    folder.write(BAD, "this is no gzip\n")
    words = [sys.executable, "-c", PROGRAM % SLOW, str(number), "run", str(folder.path / "pipeline.yaml"), "--engine", engine, "--quiet"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd=Path(__file__).parents[3])
    if path == GOOD:
        assert (answer.returncode, answer.stderr) == (0, "")
        assert folder.text("out.csv") == "v,n\n5,2\n6,1\n"
    else:
        assert answer.returncode == 4, answer.stderr
        assert answer.stderr.startswith("error: source 'rows'")
        assert answer.stderr.endswith("Nothing was changed.\n")


@pytest.mark.parametrize(("engine", "path", "number"), [*starts("sail", 10), *starts("spark", 2)])
def test_a_cold_start_ends_as_documented(tmp_path: Path, engine: str, path: str, number: int) -> None:
    """The engine's thread imports nothing: what it looked for would stand on standard error."""
    start(Folder(tmp_path), engine, path, number)


@pytest.mark.deep
@pytest.mark.parametrize(("engine", "path", "number"), [*starts("sail", 50, 100), *starts("spark", 50, 100)])
def test_fifty_cold_starts_end_as_documented(tmp_path: Path, engine: str, path: str, number: int) -> None:
    start(Folder(tmp_path), engine, path, number)
