"""The results page: what was measured, as a table and as ratios, with the promise beside each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from benchmarks.job import COLD, WARM
from benchmarks.machine import description
from benchmarks.process import Measured
from benchmarks.programs import reading, tables, tpch
from benchmarks.programs.first_runs import BASELINE, ERRATA, SKEWED
from benchmarks.programs.first_runs import PROGRAMS as FIRST_RUNS
from benchmarks.programs.growth import ADDED, ADDED_LATER, NODES, PREFIX, REPLACED
from benchmarks.programs.small_runs import CHANGES, WATCHED
from benchmarks.tpch.tables import FIRST, LINES_OF_SCALE_1, VERSIONS

PARTS_OF_ERRATA = {
    "errata": ("nothing changed", "1,000 rows added", "one row corrected", "1,000 rows corrected", "nothing changed, new process", "errata --help"),
    "errata-keyed": ("one row corrected", "1,000 rows corrected"),
    **dict.fromkeys(("errata-tables", "errata-tables-op-rows"), (tables.SCATTERED, tables.NEWEST, tables.ADDED)),
}
TITLES = {
    "errata": "Errata, `persist: boundaries`",
    "errata-all": "Errata, `persist: all`",
    "errata-keyed": "Errata, primary key",
    "pyspark": "hand-written PySpark",
    "duckdb": "hand-written DuckDB",
}
SOURCES = TITLES | {"errata-tables": "Errata, from Delta table to Delta table", "errata-tables-op-rows": "Errata, from Delta table to Delta table of op rows"}


@dataclass(frozen=True, slots=True)
class Result:
    """One program on one engine and one number of rows."""

    program: str
    engine: str
    rows: int
    measured: Measured

    def seconds(self, part: str) -> float | None:
        """Median seconds of a part, None where the program has no such part."""
        return self.measured.seconds.get(part)

    def seconds_cold(self) -> float | None:
        """The first run of a process, with the engine's start. A hand-written program reports the start separately."""
        cold = self.seconds(COLD)
        return None if cold is None else cold + (self.seconds("session") or 0.0)


class Results(tuple[Result, ...]):
    """All results of one benchmark."""

    __slots__ = ()

    def of(self, program: str, engine: str, rows: int) -> Result | None:
        """The result of a program, None where it was not measured."""
        return next((one for one in self if (one.program, one.engine, one.rows) == (program, engine, rows)), None)

    def sizes(self) -> list[int]:
        """The numbers of rows of the large programs, ascending."""
        return sorted({one.rows for one in self if one.program in TITLES})


def page(results: Results) -> str:
    """The whole page as Markdown."""
    return "\n".join([*INTRODUCTION, description(), "", *first_runs(results), *later_runs(results), *small_runs(results), *many_runs(results), *rollbacks(results), *readings(results), *nodes_and_baseline(results), *growths(results), *tpch_queries(results)]) + "\n"


INTRODUCTION = (
    "# Benchmarks",
    "",
    "`make bench` writes this page. The work: read a CSV file of sales (36 bytes a row), write the records to a Delta table, derive",
    "`total = price * quantity`, add up by 1,000 accounts, write a CSV file. The hand-written program does the same on the same engine",
    "(DuckDB keeps the records in a database file); Errata also keeps its changelogs. Every program runs in a process of its own,",
    "and all must come to the same totals to 12 digits. Warm figures are medians of three runs. Memory is the most that the process",
    "and its children (the JVM is one) held together.",
    "",
)


def first_runs(results: Results) -> Iterator[str]:
    """First runs: cold with the engine's start, and warm, beside the hand-written program."""
    yield "## First run"
    yield ""
    rows = []
    for one in results:
        if one.program in TITLES:
            baseline = results.of("pyspark", one.engine, one.rows)
            cold, warm = one.seconds_cold(), one.seconds(WARM)
            ratios = ("", "") if baseline is None else (ratio(cold, baseline.seconds_cold()), ratio(warm, baseline.seconds(WARM)))
            figures = (seconds(cold), seconds(warm), *ratios, f"{one.measured.peak_mb:,.0f} MB")
            rows.append((f"{one.rows:,}", one.engine, TITLES[one.program], *figures))
    yield from table(("rows", "engine", "program", "cold", "warm", "cold / baseline", "warm / baseline", "peak memory"), rows)


def later_runs(results: Results) -> Iterator[str]:
    """What a run costs when little or nothing has changed, as a share of its own warm first run; a thousand corrected rows are all over the file or table."""
    yield "## Later runs of Errata"
    yield ""
    rows = []
    for one in results:
        if one.program in PARTS_OF_ERRATA:
            shares = [
                (f"{one.rows:,}", one.engine, SOURCES[one.program], part, seconds(one.seconds(part)), share(one.seconds(part), one.seconds(WARM)))
                for part in PARTS_OF_ERRATA[one.program]
            ]
            rows.extend(shares)
    yield from table(("rows", "engine", "source", "what changed", "seconds", "of the first run"), rows)


def small_runs(results: Results) -> Iterator[str]:
    """A small pipeline beside the least that a PySpark program does."""
    yield "## Small input"
    yield ""
    yield "A pipeline of six nodes over 10,000 rows, the whole of the command's time; the bare script opens a session, appends one Delta table and reads it back."
    yield ""
    rows = []
    for one in results:
        if one.program == "errata-six-nodes":
            bare = results.of("bare", one.engine, one.rows)
            new, least = one.seconds("small, new process"), None if bare is None else bare.seconds("small, new process")
            rows.append((one.engine, seconds(new), seconds(least), ratio(new, least), seconds(one.seconds("small"))))
    yield from table(("engine", "Errata, new process", "bare script", "ratio", "Errata, warm"), rows)


def many_runs(results: Results) -> Iterator[str]:
    """Whether a run is still as quick after two hundred; the promise is 1.3 of the tenth."""
    yield "## After 200 small runs"
    yield ""
    yield "Runs over 1,000 rows that change a little, one after the other in one process: medians of runs 8 to 12 and 196 to 200. Promised is at most 1.3."
    yield ""
    rows = []
    for one in results:
        if one.program == "small-runs":
            for change in CHANGES:
                tenth, last = (one.seconds(f"{change}, {part}") for part in WATCHED)
                rows.append((one.engine, change, seconds(tenth), seconds(last), ratio(last, tenth)))
    yield from table(("engine", "each run", "tenth", "two hundredth", "ratio"), rows)


def rollbacks(results: Results) -> Iterator[str]:
    """What rolling back costs: over a plain run of the same pipeline, and of it where groups are repaired."""
    yield "## Rollback"
    yield ""
    yield "Lines of 10,000 sales in ten files, a correlation key, a transform and a relaxed aggregate, `persist: all`. One sale in a hundred has a line that"
    yield "fails, so its lines are rolled back and listed in the DLQ; then ten sales of one file are repaired."
    yield ""
    rows = []
    for one in results:
        if one.program == "errata-rollback":
            plain, back, repair = (one.seconds(part) for part in (WARM, "1 % rolled back", "ten groups repaired"))
            more = None if back is None or plain is None else back - plain
            rows.append((f"{one.rows:,}", one.engine, seconds(plain), seconds(back), share(more, plain), seconds(repair), share(repair, plain)))
    yield from table(("rows", "engine", "plain", "1 % rolled back", "more", "ten groups repaired", "of the plain run"), rows)


def readings(results: Results) -> Iterator[str]:
    """Readers of sources beside the engines' readers; the promise is 1.3 of Spark's."""
    yield "## Reading"
    yield ""
    yield "A file of sales is read, and its records are written to a Delta table, by the reader of a source and by the engine's own (`spark.read` with the same columns and"
    yield "types): cutting the file, reading it and writing the table, nothing else of a run. Warm; promised is at most 1.3 times as much as Spark's reader takes."
    yield ""
    rows = []
    for one in results:
        if one.program in reading.PROGRAMS and not one.program.endswith("-baseline"):
            baseline = results.of(f"{one.program}-baseline", one.engine, one.rows)
            own = None if baseline is None else baseline.seconds(WARM)
            rows.append((f"{one.rows:,}", one.engine, one.program.removeprefix("reading-"), seconds(one.seconds(WARM)), seconds(own), ratio(one.seconds(WARM), own)))
    yield from table(("rows", "engine", "format", "Errata's reader", "the engine's own", "ratio"), rows)


def nodes_and_baseline(results: Results) -> Iterator[str]:
    """The first run of a stateful node beside a program that does the same work."""
    yield "## Stateful nodes"
    yield ""
    yield "First runs, warm, of a source and one stateful node: 20 rows a key, or every other row of one key (skewed). The hand-written program: read the rows, write them to a Delta"
    yield "table, compute the node, write its rows to a Delta table. Promised is at most 1.5 times as much."
    yield ""
    rows = []
    for one in results:
        if one.program in FIRST_RUNS and one.program.startswith(ERRATA):
            node = one.program.removeprefix(ERRATA)
            baseline = results.of(BASELINE + node, one.engine, one.rows)
            least = None if baseline is None else baseline.seconds(WARM)
            keys = "skewed" if node.endswith(SKEWED) else "uniform"
            figures = (seconds(one.seconds(WARM)), seconds(least), ratio(one.seconds(WARM), least))
            rows.append((f"{one.rows:,}", one.engine, node.removesuffix(SKEWED), keys, *figures))
    yield from table(("rows", "engine", "node", "keys", "Errata", "baseline", "ratio"), rows)


def growths(results: Results) -> Iterator[str]:
    """What a change costs a stateful node where ten times as many rows stand."""
    yield "## Growth"
    yield ""
    yield "A source, one stateful node over 20 rows a key, no output: a first run, then three runs each in which 1,000 rows come, in which these are replaced,"
    yield "and in which 1,000 more come. Promised is that a change costs at most 1.3 times as much where ten times as many rows stand."
    yield ""
    sizes = sorted({one.rows for one in results if one.program in NODES})
    rows = []
    for program, engine in dict.fromkeys((one.program, one.engine) for one in results if one.program in NODES):
        for part in (WARM, ADDED, REPLACED, ADDED_LATER):
            found = [one.seconds(part) if (one := results.of(program, engine, size)) else None for size in sizes]
            grown = ratio(found[-1], found[0]) if len(sizes) > 1 else ""
            rows.append((engine, program.removeprefix(PREFIX), part, *map(seconds, found), grown))
    yield from table(("engine", "node", "change", *(f"{size:,} rows" for size in sizes), "ratio"), rows)


TPCH = (
    "## TPC-H",
    "",
    "All 22 queries as pipelines (`benchmarks/tpch`), over keyed snapshots of CSV files by `tpchgen-cli`; money is Decimal. A first run, then a thousandth of the orders comes (RF1),",
    "another thousandth goes (RF2), and a thousandth of the prices in `lineitem`, `orders` and `partsupp` changes. After each step the answer equals DuckDB's over the same files:",
    "decimals, counts and texts by every digit, floats by twelve. Figures are processor seconds, the process warm. DuckDB reads the same columns of the same files and computes everything.",
    "A step has its share of the first run, and how many times DuckDB's full computation it takes: above 1, DuckDB computes everything anew in less time. Queries 2, 11 and 16 read",
    "no orders, so nothing changes for them in two steps. `python -m benchmarks --program tpch --scale 0.01` measures another scale. Each figure was measured once; means are geometric.",
    "",
)


def tpch_queries(results: Results) -> Iterator[str]:
    """The queries of TPC-H: first runs, and what each change costs beside them and beside DuckDB. Last come the geometric means."""
    yield from TPCH
    rows, all_ratios = [], []
    for one in results:
        if one.program in tpch.PROGRAMS:
            ratios = [figure for version in VERSIONS for figure in ratios_of(one, version)]
            all_ratios.append(ratios)
            first, duckdb = one.seconds(FIRST), one.seconds(f"{FIRST}, {tpch.BY_DUCKDB}")
            scale = f"{one.rows / LINES_OF_SCALE_1:g}"
            rows.append((scale, one.engine, one.program.removeprefix(f"{tpch.ALL}-"), seconds(first), seconds(duckdb), *steps(ratios)))
    if rows:
        yield description()
        yield ""
        rows.append(("", "", "mean", "", "", *steps([geometric_mean(column) for column in zip(*all_ratios, strict=True)])))
    heads = (f"{version}: {of}" for version in VERSIONS[1:] for of in ("of the first run", "/ DuckDB"))
    yield from table(("scale", "engine", "query", "first run", "DuckDB", "first run / DuckDB", *heads), rows)


def ratios_of(one: Result, version: str) -> tuple[float, float]:
    """Processor seconds of a step, divided by the first run's and by DuckDB's for the same step."""
    spent, first, duckdb = (one.measured.seconds[part] for part in (version, FIRST, f"{version}, {tpch.BY_DUCKDB}"))
    return spent / first, spent / duckdb


def steps(ratios: Sequence[float]) -> Iterator[str]:
    """The cells of a query: the first run over DuckDB's, then share and multiple of each later step."""
    _, multiple, *later = ratios
    yield f"{multiple:.1f}"
    for number, value in enumerate(later):
        yield f"{value:.1f}" if number % 2 else f"{value:.0%}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A Markdown table and the empty line after it; without rows the word that nothing was measured."""
    head, rows = tuple(head), list(rows)
    if not rows:
        yield from ("Not measured here.", "")
        return
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def seconds(value: float | None) -> str:
    """Seconds with two decimals."""
    return "" if value is None else f"{value:.2f} s"


def ratio(value: float | None, base: float | None) -> str:
    """How many times the base."""
    return f"{value / base:.2f}" if value and base else ""


def share(value: float | None, base: float | None) -> str:
    """Percent of the base."""
    return f"{value / base:.1%}" if value and base else ""
