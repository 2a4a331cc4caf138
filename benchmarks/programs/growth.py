"""Stateful nodes: the cost of 1,000 changes to each, over different numbers of live rows.

Each node has a pipeline of its own, without an output, whose file would be written anew as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.answers import Answer, difference
from benchmarks.benchmark import Benchmark, Program
from benchmarks.cells import ratio, rows_of, seconds, section, table
from benchmarks.job import WARM

if TYPE_CHECKING:
    import numpy as np
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    from benchmarks.job import Job
    from benchmarks.results import Results

PIPELINE: Final = "pipeline.yaml"
ROWS_A_KEY = 20
CHANGED = 1_000
TURNS = 3
CHECKED = 1_000_000
"""Up to this number of rows the node's rows are compared with DuckDB's."""
ADDED, REPLACED, ADDED_LATER = "1,000 added", "1,000 replaced", "1,000 added after that"
"""The changes between two runs, in this order and each as often: a file comes, one of those has other values, another file comes."""
SOURCES = """\
pipeline: { name: growth }
nodes:
  - type: source
    name: rows
    config:
      name: rows
      type: csv
      glob: rows/*.csv
      watermark: { column: day }
      schema: [{ name: id, type: int }, { name: k, type: int }, { name: v, type: float }, { name: day, type: date }, { name: note, type: string }]
  - type: source
    name: items
    config: { name: items, type: csv, glob: items/*.csv, schema: [{ name: k, type: int }, { name: label, type: string }] }
"""
SUMS_BY_DUCKDB = "SELECT k, sum(v) AS total, avg(v) AS mean FROM rows GROUP BY k"
SUMS = """\
  - { type: aggregate, name: node, input: rows, config: { group_by: [k], cxl: "emit total = sum(v)\\nemit mean = avg(v)" } }
"""
EXTREMES_BY_DUCKDB = "SELECT k, min(v) AS low, max(v) AS high FROM rows GROUP BY k"
EXTREMES = """\
  - { type: aggregate, name: node, input: rows, config: { group_by: [k], cxl: "emit low = min(v)\\nemit high = max(v)" } }
"""
DISTINCT_BY_DUCKDB = "SELECT * FROM rows QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1"
DISTINCT = """\
  - { type: transform, name: node, input: rows, config: { cxl: "distinct by k" } }
"""
ANALYTIC_WINDOW_BY_DUCKDB = "SELECT *, sum(v) OVER (PARTITION BY k ORDER BY id) AS so_far FROM rows"
ANALYTIC_WINDOW = """\
  - type: transform
    name: node
    input: rows
    config: { analytic_window: { partition_by: [k], sort_by: [id] }, cxl: "emit so_far = $window.sum(v)" }
"""
TIME_WINDOW_BY_DUCKDB = "SELECT k, count(*) AS n, day::TIMESTAMP AS day FROM rows GROUP BY day, k"
TIME_WINDOW = """\
  - type: aggregate
    name: node
    input: rows
    config: { group_by: [k], time_window: { tumbling: { size: 1d } }, allowed_lateness: 31d, cxl: "emit n = count(*)\\nemit day = $window.start" }
"""
COMBINE_BY_DUCKDB = "SELECT id, label FROM rows LEFT JOIN items USING (k)"
COMBINE = """\
  - type: combine
    name: node
    input: { r: rows, i: items }
    config: { where: "r.k == i.k", match: first, propagate_ck: driver, cxl: "emit id = r.id\\nemit label = i.label" }
"""


@dataclass(frozen=True, slots=True)
class Stateful:
    """A node that is measured: its YAML, the same in DuckDB, and the source that changes."""

    text: str
    statement: str
    changes: str = "rows"


PREFIX: Final = "growth-"
NODES: Final = {
    "growth-sums": Stateful(SUMS, SUMS_BY_DUCKDB),
    "growth-extremes": Stateful(EXTREMES, EXTREMES_BY_DUCKDB),
    "growth-distinct": Stateful(DISTINCT, DISTINCT_BY_DUCKDB),
    "growth-analytic-window": Stateful(ANALYTIC_WINDOW, ANALYTIC_WINDOW_BY_DUCKDB),
    "growth-time-window": Stateful(TIME_WINDOW, TIME_WINDOW_BY_DUCKDB),
    "growth-combine": Stateful(COMBINE, COMBINE_BY_DUCKDB),
    "growth-combine-build": Stateful(COMBINE, COMBINE_BY_DUCKDB, changes="items"),
}
"""The programs by name."""


def later_runs(node: Stateful, job: Job) -> None:
    """A first run over the data, then runs over 1,000 changes each."""
    folder = job.folder()
    rows = lay_out(node, job.data, folder)
    spare = spare_keys(rows)
    job.run(WARM, folder / PIPELINE)
    for part, files in ((ADDED, range(1, TURNS + 1)), (REPLACED, range(1, TURNS + 1)), (ADDED_LATER, range(TURNS + 1, 2 * TURNS + 1))):
        for number in files:
            if node.changes == "rows":
                write_changes(folder / f"rows/{number}.csv", rows, number, seed=number + (100 if part == REPLACED else 0))
            else:
                write_items(folder / f"items/{number}.csv", spare[(number - 1) * CHANGED : number * CHANGED], part.replace(",", ""))
            job.run(part, folder / PIPELINE)
    if rows <= CHECKED:
        check(node, folder)


def check(node: Stateful, folder: Path) -> None:
    """Raise SystemExit where a node's live rows are not DuckDB's rows over the same files."""
    import duckdb
    import polars as pl

    import errata

    found = pl.DataFrame(errata.load(folder / PIPELINE).live("node").toArrow())
    found.write_csv(folder / "found.csv", datetime_format="%Y-%m-%d %H:%M:%S%.6f")
    with duckdb.connect() as connection:
        load(connection, folder)
        rows = connection.sql(node.statement).project(", ".join(found.columns))
        rows.write_csv(str(folder / "expected.csv"), header=True)
        expected = Answer(folder / "expected.csv", tuple(map(str, rows.types)))
    if differs := difference(folder / "found.csv", expected, ordered=False):
        raise SystemExit(f"{folder}: {differs}")


def load(connection: DuckDBPyConnection, folder: Path) -> None:
    """Read the rows and the items of a folder into tables of DuckDB."""
    for name in ("rows", "items"):
        connection.read_csv(str(folder / name / "*.csv"), header=True).create(name)


def lay_out(node: Stateful, data: Path, folder: Path) -> int:
    """Put a node's pipeline and its inputs (the rows a link) into a folder; how many rows there are."""
    for name in ("rows", "items"):
        (folder / name).mkdir()
    (folder / PIPELINE).write_text(SOURCES + node.text, encoding="utf-8")
    (folder / "rows/0.csv").hardlink_to(data)
    rows = sum(1 for _ in data.open("rb")) - 1
    write_items(folder / "items/0.csv", sorted({*range(keys_of(rows))} - set(spare_keys(rows))), "label")
    return rows


def keys_of(rows: int) -> int:
    """The number of keys of `rows` rows."""
    return max(rows // ROWS_A_KEY, 1)


def spare_keys(rows: int) -> range:
    """Keys of rows for which there are no items at first."""
    keys = keys_of(rows)
    return range(0, keys, max(keys // (2 * TURNS * CHANGED), 1))


def write_items(path: Path, keys: Iterable[int], label: str) -> None:
    """Write an item for each of some keys."""
    path.write_text("k,label\n" + "".join(f"{key},{label} {key}\n" for key in keys), encoding="utf-8")


def write_rows(path: Path, rows: int, *, skewed: bool = False) -> Path:
    """Write a record for each number up to `rows`, of keys by chance, in the order of their days; a file that is there already is kept.

    `skewed`: every other record has key 0.
    """
    if not path.exists():
        import numpy as np

        keys = np.random.default_rng(7).integers(0, keys_of(rows), rows)
        if skewed:
            keys[::2] = 0
        partly = path.with_suffix(".partial")
        write_records(partly, 0, keys, seed=7)
        partly.rename(path)
    return path


def write_changes(path: Path, rows: int, number: int, *, seed: int) -> None:
    """Write 1,000 more records, every other one of a key that is new with this file; `seed` decides their values."""
    import numpy as np

    keys = np.random.default_rng(number).integers(0, keys_of(rows), CHANGED)
    keys[::2] = keys_of(rows) + number * CHANGED + np.arange(0, CHANGED, 2)
    write_records(path, rows + number * CHANGED, keys, seed=seed)


def write_records(path: Path, first: int, keys: NDArray[np.int64], *, seed: int) -> None:
    """Write records of some keys, their `id` from `first` on, over four weeks."""
    import numpy as np
    import polars as pl

    count = len(keys)
    numbers = np.arange(count)
    frame = pl.DataFrame({"id": numbers + first, "k": keys, "v": np.random.default_rng(seed).integers(0, 1000, count) / 8, "days": 28 * numbers // count})
    day = pl.lit("2026-03-01").str.to_date() + pl.duration(days="days")
    frame.select("id", "k", "v", day.alias("day"), pl.format("note of record {}", "id").alias("note")).write_csv(path)


SKEWED: Final = "-skewed"
TEXT: Final = (
    "A source, one stateful node over 20 rows a key, no output: a first run, then three runs each in which 1,000 rows come, in which these are replaced,",
    "and in which 1,000 more come. Promised is that a change costs at most 1.4 times as much where ten times as many rows stand.",
)


def write(folder: Path, program: str, size: float) -> Path:
    """The rows; of some programs every other one has the same key."""
    shape = SKEWED if program.endswith(SKEWED) else ""
    return write_rows(folder / f"rows-{size:.0f}{shape}.csv", int(size), skewed=bool(shape))


def show(results: Results) -> Iterator[str]:
    """The cost of a change at a stateful node with ten times as many rows."""
    yield from section("Growth", TEXT)
    measured = results.among(NODES)
    sizes = sorted({one.size for one in measured})
    rows = []
    for program, engine in dict.fromkeys((one.program, one.engine) for one in measured):
        for part in (WARM, ADDED, REPLACED, ADDED_LATER):
            found = [results.part(program, engine, size, part) for size in sizes]
            grown = ratio(found[-1], found[0]) if len(sizes) > 1 else ""
            rows.append((engine, program.removeprefix(PREFIX), part, *map(seconds, found), grown))
    yield from table(("engine", "node", "change", *(f"{rows_of(size)} rows" for size in sizes), "ratio"), rows, measured)


PROGRAMS: Final = {name: Program(partial(later_runs, node)) for name, node in NODES.items()}
BENCHMARK: Final = Benchmark("growth", PROGRAMS, (1_000_000, 10_000_000), write, show)
