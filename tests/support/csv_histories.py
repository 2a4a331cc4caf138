"""Random histories of CSV files, run step by step: after each step every output is what a plain Python model says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.pipelines import Folder, jsonl

Row = dict[str, Any]
Version = Mapping[str, Sequence[Row]]
"""Records of each file, by its name."""

Model = Callable[[Version], Mapping[str, Sequence[Row]]]
"""Rows of each output, by its name, from the records of each file."""


@st.composite
def histories(draw: st.DrawFn, records: Mapping[str, st.SearchStrategy[Row]], most: int = 9) -> list[Version]:
    """Versions of one file a record strategy: records come in anywhere, go, change and swap places. `id` numbers them."""
    rows = {name: draw(st.lists(record, max_size=most)) for name, record in records.items()}
    versions = [_numbered(rows)]
    for _ in range(draw(st.integers(1, 2))):
        for _ in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from(sorted(rows)))
            _change(draw, rows[name], records[name])
        versions.append(_numbered(rows))
    return versions


def _change(draw: st.DrawFn, rows: list[Row], record: st.SearchStrategy[Row]) -> None:
    kind = draw(st.sampled_from(["insert", "remove", "correct", "swap"]))
    at = draw(st.integers(0, len(rows)))
    if kind == "insert" or not rows:
        rows.insert(at, draw(record))
        return
    at = min(at, len(rows) - 1)
    if kind == "remove":
        del rows[at]
    elif kind == "correct":
        rows[at] = draw(record)
    else:
        rows[0], rows[at] = rows[at], rows[0]


def _numbered(rows: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    return {name: [dict(row) for row in records] for name, records in rows.items()}


def follow(history: Sequence[Version], pipeline: str, headers: Mapping[str, Sequence[str]], model: Model, engine: str = "sail") -> None:
    """Run each version in turn and compare; at last look for violations of the invariants."""
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place), engine)
        folder.write("pipeline.yaml", pipeline)
        for version in history:
            for name, records in version.items():
                folder.write_csv(f"{name}.csv", headers[name], records)
            folder.run()
            compare(folder, model(version))
        assert folder.violations() == []


def compare(folder: Folder, expected: Mapping[str, Sequence[Row]]) -> None:
    """Each output, an NDJSON file, holds these rows in this order; `rejected` is the dead letter queue in any order."""
    for name, rows in expected.items():
        if name != "rejected":
            assert jsonl(folder.text(f"out/{name}.ndjson")) == list(rows), name
    wanted = sorted(tuple(map(str, row.values())) for row in expected.get("rejected", ()))
    assert queue(folder) == wanted


def queue(folder: Folder) -> list[tuple[str, ...]]:
    """Stage, category and `id` of each rejected record."""
    if not (folder.path / "out/dlq.csv").exists():
        return []
    names = ("_cxl_dlq_stage", "_cxl_dlq_error_category", "id")
    return sorted(tuple(row[name] for name in names) for row in folder.rows("out/dlq.csv"))


def sink(node: str) -> str:
    """An output node that writes all columns that a node emits as NDJSON."""
    return f"""\
  - type: output
    name: {node}_out
    input: {node}
    config: {{ name: {node}_out, type: json, path: out/{node}.ndjson, include_unmapped: false, preserve_nulls: true, options: {{ format: ndjson }} }}
"""


def transform(name: str, source: str, cxl: str, window: str = "") -> str:
    """A transform and its sink."""
    lines = "\n".join(f"        {line.strip()}" for line in cxl.strip().splitlines())
    head = f"      analytic_window: {window}\n" if window else ""
    return f"  - type: transform\n    name: {name}\n    input: {source}\n    config:\n{head}      cxl: |\n{lines}\n{sink(name)}"


def heading(name: str) -> str:
    """The head of a pipeline that goes on after failures."""
    handling = "error_handling:\n  strategy: continue\n  dlq: { path: out/dlq.csv, include_reason: true, include_source_row: true }\n"
    return f"pipeline:\n  name: {name}\n{handling}nodes:\n"


def source(name: str, columns: Mapping[str, str], more: str = "") -> str:
    """A CSV source without a primary key."""
    schema = ", ".join(f"{{ name: {column}, type: {type_} }}" for column, type_ in columns.items())
    return f"  - type: source\n    name: {name}\n    config: {{ name: {name}, type: csv, path: {name}.csv, {more}schema: [{schema}] }}\n"
