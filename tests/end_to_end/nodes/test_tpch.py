"""The queries of TPC-H as pipelines: after orders came, went and were corrected, each answer is DuckDB's."""

from __future__ import annotations

import pytest

from benchmarks.programs.tpch import run
from benchmarks.tpch.answers import QUERIES, answer, difference
from benchmarks.tpch.tables import VERSIONS, generator, place, write_versions

SCALE, SHARE = 0.01, 50
QUICK = (10, 13, 21)
"""Several joins and the first rows of an order; left joins; `exists` and `not exists`."""

pytestmark = pytest.mark.skipif(generator() is None, reason="tpchgen-cli, of the extra `bench`, is not installed")


@pytest.fixture(scope="session")
def versions(tmp_path_factory):
    return write_versions(tmp_path_factory.mktemp("tpch") / "tables", SCALE, SHARE)


@pytest.mark.parametrize("number", [number if number in QUICK else pytest.param(number, marks=pytest.mark.deep) for number in QUERIES])
def test_each_answer_is_that_of_duckdb(versions, tmp_path, number):
    for version, name in enumerate(VERSIONS):
        place(versions / str(version), tmp_path / "data")
        run(number, tmp_path, SCALE, "sail")
        expected = answer(number, tmp_path / "data", SCALE)
        assert expected, name
        assert difference(tmp_path / "result.csv", expected) is None, name
