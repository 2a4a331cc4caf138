"""The groundwork of the benchmarks: comparisons see every digit, versions differ where they should, results are kept, and the page is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks import page
from benchmarks.__main__ import parsed, planned
from benchmarks.all import BENCHMARKS, PROGRAMS
from benchmarks.answers import ROUGH, Answer, difference
from benchmarks.nexmark import events
from benchmarks.process import end, medians
from benchmarks.programs import dbbenchmark, nexmark, tpch
from benchmarks.results import Result, Results
from benchmarks.tpch import tables
from benchmarks.usage import Memory, processor_seconds, resident
from benchmarks.versions import write_once

SUITES = [tpch.SUITE, nexmark.SUITE, dbbenchmark.SUITE]
QUERIES = [pytest.param(suite, query, id=suite.program(query)) for suite in SUITES for query in suite.queries]


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        ("12.50", "DECIMAL(15,2)", "12.5"),
        ("12.5", "DOUBLE", "12.50"),
        ("0.050000000001", "DOUBLE", "0.05"),
        ("1e15", "DOUBLE", "1000000000000001"),
        ("", "DOUBLE", ""),
        ("1998-09-02", "DATE", "1998-09-02"),
        ("1998-09-02T10:00:00.250", "TIMESTAMP", "1998-09-02 10:00:00.25"),
        ("1998-09-02T10:00:00.250000Z", "TIMESTAMP", "1998-09-02 10:00:00.25"),
        ("1998-09-02T10:00:00", "TIMESTAMP", "1998-09-02 10:00:00"),
        ("7", "BIGINT", "7"),
        ("a, b", "VARCHAR", "a, b"),
    ],
)
def test_equal_cells(tmp_path, cell, kind, expected):
    assert compared(tmp_path, [[cell]], [[expected]], kind) is None


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        ("12.51", "DECIMAL(15,2)", "12.5"),
        ("12.500000000001", "DECIMAL(15,2)", "12.5"),
        ("", "DECIMAL(15,2)", "0"),
        ("much", "DECIMAL(15,2)", "0"),
        ("12.500001", "DOUBLE", "12.5"),
        ("", "DOUBLE", "0"),
        ("much", "DOUBLE", "0"),
        ("0", "DOUBLE", ""),
        ("1998-09-03", "DATE", "1998-09-02"),
        ("1998-09-02T10:00:00.251", "TIMESTAMP", "1998-09-02 10:00:00.25"),
        ("8", "BIGINT", "7"),
        ("a", "VARCHAR", "b"),
    ],
)
def test_cells_that_differ(tmp_path, cell, kind, expected):
    assert "row 1 of 1 is" in str(compared(tmp_path, [[cell]], [[expected]], kind))


def test_a_missing_row_and_a_missing_column_differ(tmp_path):
    assert compared(tmp_path, [["1"]], [], "BIGINT") == "1 rows of 1 columns, not 0 of 1"
    assert compared(tmp_path, [["1"]], [["1", "2"]], "BIGINT") == "1 rows of 1 columns, not 1 of 2"


def test_rows_in_another_order_differ_where_the_order_counts(tmp_path):
    assert compared(tmp_path, [["2"], ["1"]], [["1"], ["2"]], "BIGINT") is not None
    assert compared(tmp_path, [["2"], ["1"]], [["1"], ["2"]], "BIGINT", ordered=False) is None


def test_means_of_engines_that_cut_them_agree_roughly(tmp_path):
    assert compared(tmp_path, [["25.546684"]], [["25.54668498797664"]], "DOUBLE", digits=ROUGH) is None


def compared(folder, ours, theirs, kind, **how):
    width = max(map(len, theirs), default=1)
    return difference(written(folder / "ours.csv", ours, 1), Answer(written(folder / "theirs.csv", theirs, width), [kind] * width), **how)


def written(file, rows, width):
    lines = [",".join(map(str, range(width))), *(",".join(f'"{cell}"' if cell else "" for cell in row) for row in rows)]
    file.write_text("".join(f"{line or chr(34) * 2}\n" for line in lines), encoding="utf-8")
    return file


@pytest.mark.parametrize(("suite", "query"), QUERIES)
def test_pipelines_read_columns_of_the_tables(suite, query):
    assert all("$" not in suite.statement(query, engine, 1.0) for engine in ("duckdb", "pyspark", "polars"))
    for table, columns in suite.inputs(query).items():
        assert set(columns) <= set(suite.tables[table])


def test_the_fraction_of_query_11_goes_by_the_scale():
    assert [tpch.fraction(scale)["fraction"] for scale in (1.0, 0.1, 0.01)] == ["0.0001", "0.001", "0.01"]


def test_orders_leave_and_come_back_at_the_end():
    data = b"o_orderkey,o_custkey\n1,7\n2,8\n3,9\n"
    assert tables._without(data, frozenset([b"2"])) == b"o_orderkey,o_custkey\n1,7\n3,9\n"
    assert tables._at_the_end(data, frozenset([b"2"])) == b"o_orderkey,o_custkey\n1,7\n3,9\n2,8\n"


def test_one_price_of_a_share_is_halved():
    lines = [b'%d,%d,5,10.01,"a, b"\n' % (part, part) for part in range(20)]
    head, *changed = tables._with_other_prices(b"".join((b"head\n", *lines)), "partsupp", 10).splitlines(keepends=True)
    assert head == b"head\n"
    assert [number for number, line in enumerate(changed) if line != lines[number]] == [1, 11]
    assert changed[1] == b'1,1,5,5.01,"a, b"\n'


def test_events_of_nexmark_have_the_shares_of_its_description():
    found = events.frames(0, 50_000)
    assert {kind: frame.height for kind, frame in found.items()} == {"person": 1000, "auction": 3000, "bid": 46_000}
    bids, auctions, persons = found["bid"], found["auction"], found["person"]
    assert auctions["id"].to_list() == [*range(1000, 4000)]
    assert persons["id"].to_list() == [*range(1000, 2000)]
    assert 0.45 < bids.filter(bids["auction"] % 100 == 0).height / bids.height < 0.55
    assert 0.7 < bids.filter((bids["bidder"] - 1) % 100 == 0).height / bids.height < 0.8
    assert (bids["price"].min(), bids["price"].max()) >= (100, 10**7)
    assert bids["date_time"].is_sorted()
    assert bids["date_time"].is_unique().all()
    assert (auctions["expires"] > auctions["date_time"]).all()


def test_events_are_the_same_each_time_and_go_on_from_file_to_file():
    whole, parts = events.frames(0, 500), [events.frames(0, 250), events.frames(250, 500)]
    assert whole["bid"].equals(events.frames(0, 500)["bid"])
    assert whole["auction"]["id"].to_list() == [number for part in parts for number in part["auction"]["id"]]


def test_versions_are_written_once_and_no_two_files_have_the_same_time(tmp_path):
    def write(folder):
        for version in ("0", "1"):
            (folder / version).mkdir()
            (folder / version / "a.csv").write_text(version, encoding="utf-8")
        (folder / "0" / "b.csv").write_text("b", encoding="utf-8")
        (folder / "1" / "b.csv").hardlink_to(folder / "0" / "b.csv")

    folder = write_once(tmp_path / "versions", write)
    assert write_once(folder, lambda _: pytest.fail("written again")) == folder
    times = {file.relative_to(folder).as_posix(): file.stat().st_mtime_ns for file in folder.rglob("*.csv")}
    assert times["1/a.csv"] > times["0/a.csv"] == times["0/b.csv"] == times["1/b.csv"]


def test_programs_have_names_of_their_own():
    assert len(PROGRAMS) == sum(len(benchmark.programs) for benchmark in BENCHMARKS.values())


def test_what_was_measured_is_not_measured_again_unless_asked(monkeypatch):
    monkeypatch.setattr("benchmarks.__main__.find_java", lambda: None)
    results = Results().with_one(result("upserts-duckdb", {}, engine="duckdb", size=100.0))
    words = ["upserts", "--size", "100"]
    assert [program for _, program, _, _ in planned(parsed(words), results)] == ["upserts-delta-rs", "upserts-merge", "upserts"]
    assert next(program for _, program, _, _ in planned(parsed([*words, "--again"]), results)) == "upserts-duckdb"


def test_the_engines_that_are_asked_for_are_measured_beside_those_of_their_own():
    programs = BENCHMARKS["upserts"].programs
    assert [*BENCHMARKS["upserts"].planned((1.0,), ("spark",))] == [
        ("upserts-duckdb", "duckdb", 1.0), ("upserts-delta-rs", "delta-rs", 1.0), ("upserts-merge", "sail", 1.0), ("upserts-merge", "spark", 1.0), ("upserts", "spark", 1.0)
    ]
    assert programs["upserts"].wanted("sail", ("sail",))
    assert not programs["upserts"].wanted("sail", ("spark",))


def test_a_program_that_takes_too_long_is_ended_with_all_it_started():
    ended = subprocess.Popen([sys.executable, "-c", "import subprocess, sys; print(subprocess.Popen(['sleep', '100']).pid, flush=True); input()"],
                             stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    child = int(ended.stdout.readline())
    end(ended)
    assert ended.returncode < 0
    assert resident(child) == 0


def test_unknown_benchmarks_are_refused(capsys):
    with pytest.raises(SystemExit):
        parsed(["tpcc"])
    assert "no benchmark tpcc" in capsys.readouterr().err


def test_results_are_kept_and_replaced(tmp_path):
    file = tmp_path / "results.jsonl"
    assert Results.load(file) == ()
    first = Results((result("a", {"first run": 2.0}), result("b", {})))
    first.with_one(result("a", {"first run": 3.0}, machine="n")).save(file)
    found = Results.load(file)
    assert [(one.program, one.machine) for one in found] == [("b", "m"), ("a", "n")]
    assert found.part("a", "sail", 1.0, "first run") == 3.0
    assert found.part("a", "spark", 1.0, "first run") is None


def test_the_page_shows_shares_multiples_means_and_what_is_slower_than_in_full():
    size, query = 1000.0, nexmark.SUITE.program("q3")
    parts = {}
    for version, spent in zip(events.VERSIONS, (2.0, 0.5, 4.0), strict=True):
        parts |= {version: spent, f"{version}, by DuckDB": 1.0}
    results = Results((result(query, parts, size=size, load=2.5), result(f"{query}-pyspark", {"computed": 0.5}, size=size)))
    lines = page.page(results).splitlines()
    assert "| 1,000 | sail | q3 | 2.00 s | 1.00 s | 0.50 s |  | 2.00 | 4.00 |  | 25.0% | 0.50 | 200%, slower than in full | 4.00 |" in lines
    assert "| 1,000 | sail | mean |  |  |  |  | 2.00 | 4.00 |  | 25% | 0.50 | 200% | 4.00 |" in lines
    assert lines.count("m Load average 2.5 to 2.5.") == 1


def result(program, parts, *, engine="sail", size=1.0, machine="m", load=1.0):
    return Result(program, engine, size, machine, load, 10.0, parts)


def test_processor_time_and_memory_of_children_count():
    began = processor_seconds()
    work = "import time; data = b'x' * 50_000_000; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('done', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE)
    watched = Memory(os.getpid())
    watched.start()
    assert child.stdout.readline() == b"done\n"
    assert processor_seconds() - began >= 0.29
    child.kill()
    child.communicate()
    watched.stop()
    assert processor_seconds() - began >= 0.29
    assert watched.peak > resident(os.getpid()) + 40_000_000


def test_of_parts_that_are_measured_several_times_the_median_counts():
    lines = [json.dumps({"part": part, "figure": figure}) for part, figure in (("a", 1), ("a", 5), ("a", 2), ("b", 7))]
    assert medians("\n".join(["noise", *lines])) == {"a": 2, "b": 7}
