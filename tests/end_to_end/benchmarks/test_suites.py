"""The queries of the benchmarks as pipelines: after every step each answer is DuckDB's; so is that of the hand-written programs."""

from __future__ import annotations

import pytest

from benchmarks.answers import difference
from benchmarks.process import measure
from benchmarks.programs import dbbenchmark, nexmark, tpch
from benchmarks.tpch.tables import generator

SIZES = ((tpch.SUITE, 0.01), (nexmark.SUITE, 20_000), (dbbenchmark.SUITE, 10_000))
SHARE = 50
"""One row of this number changes."""
QUICK = {"tpch-q10", "tpch-q13", "nexmark-q5", "dbbenchmark-g6", "dbbenchmark-j3"}
"""Several joins and the first rows of an order; left joins; windows of time; medians; an outer join."""
HAND_WRITTEN = {"tpch-q11": True, "nexmark-q5": False, "nexmark-q9": False, "dbbenchmark-g6": False, "dbbenchmark-g8": False, "dbbenchmark-g9": False}
"""Queries that each engine says in words of its own, or that have a value of the scale; whether they are quick."""

needs_generator = pytest.mark.skipif(generator() is None, reason="tpchgen-cli, of the extra `bench`, is not installed")


def queries(quick):
    for suite, size in SIZES:
        for query in suite.queries:
            name = suite.program(query)
            marks = [*([] if quick(name) else [pytest.mark.deep]), *([needs_generator] if suite is tpch.SUITE else [])]
            yield pytest.param((suite, query, size), id=name, marks=marks)


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The versions of a suite's tables, written once; a larger share changes than in measurements."""
    folders = {}

    def of(suite, size):
        if suite.name not in folders:
            folders[suite.name] = suite.write(tmp_path_factory.mktemp(suite.name) / "versions", size, SHARE)
        return folders[suite.name]

    return of


@pytest.mark.parametrize("one", [*queries(QUICK.__contains__)])
def test_each_answer_is_that_of_duckdb(written, tmp_path, one):
    suite, query, size = one
    versions = written(suite, size)
    for version, name in enumerate(suite.versions):
        suite.place(query, versions / str(version), tmp_path / "data")
        suite.run(query, tmp_path, size, "sail")
        expected = suite.answer(query, tmp_path, size)
        assert expected.file.read_text(encoding="utf-8").count("\n") > 1, name
        assert difference(tmp_path / "result.csv", expected, ordered=suite.ordered) is None, name


@pytest.mark.parametrize(("kind", "engine"), [("pyspark", "sail"), ("polars", "polars")])
@pytest.mark.parametrize("one", [one for one in queries(lambda name: HAND_WRITTEN.get(name, False)) if one.id in HAND_WRITTEN])
def test_each_hand_written_answer_is_that_of_duckdb(written, tmp_path, one, kind, engine):
    """The program compares its answers itself."""
    suite, query, size = one
    found = measure(suite.program(query, kind), engine, size, written(suite, size), scratch=tmp_path, longest=100)
    assert found.parts["computed"] > 0
