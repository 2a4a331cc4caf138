"""Combine nodes: after every change of any input, the incremental result is what nested loops over the present files give."""

from __future__ import annotations

import copy
import csv
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.operators.joins import HEADERS, JOINS, gathered, pipeline, with_broken_builds
from tests.pipelines import Folder, jsonl

Tables = dict[str, list[dict[str, Any]]]

small = st.one_of(st.none(), st.integers(0, 4))
RECORDS = {
    "orders": st.fixed_dictionaries({"id": st.integers(1, 99), "k": small, "q": small}),
    "items": st.fixed_dictionaries({"k": st.sampled_from([None, 1.0, 2.0, 2.5, 3.0]), "low": small, "high": small, "v": small}),
    "tags": st.fixed_dictionaries({"v": small, "label": st.sampled_from(["x", "y", ""])}),
}


@st.composite
def histories(draw: st.DrawFn) -> list[Tables]:
    """Versions of the three inputs: records are put in, removed, corrected and moved, on one side or on several at once."""
    tables: Tables = {name: draw(st.lists(record, max_size=6)) for name, record in RECORDS.items()}
    versions = [copy.deepcopy(tables)]
    for _ in range(draw(st.integers(1, 3))):
        for name in draw(st.lists(st.sampled_from(sorted(RECORDS)), min_size=1, max_size=3)):
            _change(draw, tables[name], RECORDS[name])
        versions.append(copy.deepcopy(tables))
    return versions


def _change(draw: st.DrawFn, rows: list[dict[str, Any]], record: st.SearchStrategy[dict[str, Any]]) -> None:
    at = draw(st.integers(0, len(rows)))
    kind = draw(st.sampled_from(["insert", "remove", "correct", "move"]))
    if kind == "insert" or at == len(rows):
        rows.insert(at, draw(record))
    elif kind == "remove":
        del rows[at]
    elif kind == "correct":
        rows[at] = draw(record)
    else:
        rows.insert(0, rows.pop(at))


def write(folder: Folder, tables: Tables) -> None:
    for name, rows in tables.items():
        folder.write_csv(f"{name}.csv", HEADERS[name], rows)


def cells(folder: Folder, name: str) -> list[list[str]]:
    return list(csv.reader(folder.text(f"out/{name}.csv").splitlines()))


def check(folder: Folder, tables: Tables) -> None:
    """Compare every output and the dead letter queue with the model."""
    rejected = []
    for join in JOINS:
        rows, numbers = join.expected(tables)
        assert cells(folder, join.name) == [list(join.columns), *rows], join.name
        rejected += [(join.name, f"{join.inputs[next(iter(join.inputs))]}.csv", str(number)) for number in numbers]
    rows, numbers = with_broken_builds(tables)
    assert cells(folder, "build_fails") == [["id", "v"], *rows]
    rejected += [("build_fails", "items.csv", str(number)) for number in numbers]
    assert jsonl(folder.text("out/gathered.ndjson")) == gathered(tables)
    assert queue(folder) == sorted(rejected)


def queue(folder: Folder) -> list[tuple[str, ...]]:
    if not (folder.path / "out/dlq.csv").exists():
        return []
    columns = ("_cxl_dlq_stage", "_cxl_dlq_source_file", "_cxl_dlq_source_row")
    rows = folder.rows("out/dlq.csv")
    assert {row["_cxl_dlq_error_category"] for row in rows} <= {"combine_output_row"}
    return sorted(tuple(row[name] for name in columns) for row in rows)


@settings(max_examples=max(5, settings().max_examples // 4), suppress_health_check=list(HealthCheck))
@given(histories())
def test_every_step_is_what_nested_loops_give(versions: list[Tables]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(Path(name))
        folder.write("pipeline.yaml", pipeline())
        for tables in versions:
            write(folder, tables)
            result = folder.run()
            check(folder, tables)
            assert result.exit_code == (2 if queue(folder) else 0)
        assert folder.violations() == []
