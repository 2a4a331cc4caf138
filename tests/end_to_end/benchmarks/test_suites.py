"""The queries of the benchmarks as pipelines: after every step each answer is DuckDB's; so is that of the hand-written programs."""

from __future__ import annotations

import pytest

from benchmarks.answers import difference
from benchmarks.process import measure
from benchmarks.programs import tpch
from benchmarks.tpch.tables import generator

SIZES = ((tpch.SUITE, 0.01),)
SHARE = 50
"""One row of this number changes."""
QUICK = {"tpch-q10", "tpch-q13", "tpch-q21"}
"""TPC-H: several joins and the first rows of an order; left joins; `exists` and `not exists`."""
HAND_WRITTEN = ((tpch.SUITE, "q11", 0.01),)

needs_generator = pytest.mark.skipif(generator() is None, reason="tpchgen-cli, of the extra `bench`, is not installed")


def queries():
    for suite, size in SIZES:
        for query in suite.queries:
            name = suite.program(query)
            marks = [*([] if name in QUICK else [pytest.mark.deep]), *([needs_generator] if suite is tpch.SUITE else [])]
            yield pytest.param(suite, query, size, id=name, marks=marks)


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The versions of a suite's tables, written once; a larger share changes than in measurements."""
    folders = {}

    def of(suite, size):
        if suite.name not in folders:
            folders[suite.name] = suite.write(tmp_path_factory.mktemp(suite.name) / "versions", size, SHARE)
        return folders[suite.name]

    return of


@pytest.mark.parametrize(("suite", "query", "size"), [*queries()])
def test_each_answer_is_that_of_duckdb(written, tmp_path, suite, query, size):
    versions = written(suite, size)
    for version, name in enumerate(suite.versions):
        suite.place(query, versions / str(version), tmp_path / "data")
        suite.run(query, tmp_path, size, "sail")
        expected = suite.answer(query, tmp_path, size)
        assert expected.file.read_text(encoding="utf-8").count("\n") > 1, name
        assert difference(tmp_path / "result.csv", expected, ordered=suite.ordered) is None, name


@pytest.mark.parametrize(("kind", "engine"), [("pyspark", "sail"), ("polars", "polars")])
@pytest.mark.parametrize("one", [pytest.param(one, id=one[0].program(one[1])) for one in HAND_WRITTEN])
@needs_generator
def test_each_hand_written_answer_is_that_of_duckdb(written, tmp_path, one, kind, engine):
    """The program compares its answers itself."""
    suite, query, size = one
    found = measure(suite.program(query, kind), engine, size, written(suite, size), scratch=tmp_path, longest=100)
    assert found.parts["computed"] > 0
