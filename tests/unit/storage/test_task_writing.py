"""Rows written by tasks look in a table like rows written by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from changelog.ops import Op
from changelog.rows import Rows, TaskRows
from storage.delta import task_writer
from storage.delta.changelog_table import ChangelogTable
from storage.engines import Engine

SCHEMA = pa.schema([("_op", pa.int8()), ("_key", pa.binary()), ("_cause", pa.string()), ("a b", pa.int64()), ("_error", pa.string()), ("_row", pa.int64())])
COLUMNS = {"_op": "tinyint", "_key": "binary", "_cause": "string", "_error": "string", "a b": "bigint"}


def rows_of(first: int, count: int) -> pa.Table:
    """Return records from a number on; every fifth is a reject."""
    numbers = range(first, first + count)
    errors = [None if number % 5 else '{"category":"x"}' for number in numbers]
    keys = [number.to_bytes(3, "big") for number in numbers]
    return pa.table([[0] * count, keys, ["ingest"] * count, list(numbers), errors, list(numbers)], schema=SCHEMA)


def rows_made(engine: Engine) -> Rows:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for first, count in zip(batch.column("first").to_pylist(), batch.column("count").to_pylist(), strict=True):
                yield from rows_of(first, count).to_batches(max_chunksize=7)

    seeds = engine.spread(pa.table({"first": [0, 40, 100, 200], "count": [20, 33, 0, 1]}))
    made_by = TaskRows(seeds, work)
    return Rows(engine, frame=made_by.frame(from_arrow_schema(SCHEMA)), made_by=made_by).without("_row")


def facts(table: ChangelogTable) -> tuple[object, ...]:
    rows = table.read_arrow().sort_by([("_epoch", "ascending"), ("_key", "ascending")])
    return rows.to_pylist(), table.statistics.counts(2), table.statistics.rejected_rows(), table.statistics.accepted_counts(1), table.statistics.accepted_counts(2), table.statistics.retractions()


def test_tables_are_alike(engine: Engine, tmp_path: Path) -> None:
    one, other = (ChangelogTable(str(tmp_path / name), COLUMNS) for name in ("tasks", "driver"))
    for table in (one, other):
        ChangelogTable(table.uri, {"before": "text", **COLUMNS}).create()
        table.append(rows_of(900, 4).filter(pa.array([False, True, True, True])).drop_columns(["_row"]), 1)
    rows = rows_made(engine)
    assert rows.content is rows.made_by
    whole = pa.concat_tables([rows_of(0, 20), rows_of(40, 33), rows_of(200, 1)]).drop_columns(["_row"])
    assert one.append(rows.content, 2).rows == other.append(whole, 2).rows == 54
    assert facts(one) == facts(other)
    assert one.statistics.counts(2)[Op.APPEND] == 54
    assert engine.to_arrow(one.read(engine, epochs=(2, 2))).num_rows == 54


MANY = 60_000
"""Rows of a file that is stored as a sample of its rows suggests."""


@pytest.mark.parametrize("rare", [None, "other", ""], ids=["null", "other", "empty"])
@pytest.mark.parametrize("place", [0, 1_000, MANY - 1], ids=["first", "not sampled", "last"])
def test_a_rare_value_among_equal_ones_stays(engine: Engine, tmp_path: Path, rare: str | None, place: int) -> None:
    plain = list(range(MANY))
    texts, ints, errors = ["ingest"] * MANY, [7] * MANY, [None] * MANY
    texts[place], ints[place], errors[place] = rare, 2**62 if rare else None, rare
    keys = [number.to_bytes(3, "big") for number in plain]
    rows = pa.table([[0] * MANY, keys, texts, ints, errors, plain], schema=SCHEMA)
    made_by = TaskRows(engine.spread(pa.table({"seed": [0]})), lambda batches: (batch for _ in batches for batch in rows.to_batches()))
    table = ChangelogTable(str(tmp_path / "rare"), COLUMNS)
    table.create()
    table.append(Rows(engine, frame=made_by.frame(from_arrow_schema(SCHEMA)), made_by=made_by).without("_row").content, 1)
    found = table.read_arrow().sort_by("_key")
    assert {name: found.column(name).to_pylist() for name in ("_cause", "a b", "_error")} == {"_cause": texts, "a b": ints, "_error": errors}


@pytest.mark.parametrize("other", ["", "x"])
def test_empty_texts_come_in_memory_without_bytes(sail: Engine, tmp_path: Path, other: str) -> None:
    """Chunks of texts have a buffer of no bytes, or none at all."""
    buffers = [None, pa.py_buffer(bytes(4 * 21)), pa.py_buffer(b"")]
    empty = pa.Array.from_buffers(pa.string(), 20, buffers)
    given = [rows_of(first, 20).set_column(2, "_cause", causes) for first, causes in ((0, empty), (20, pa.array([other] * 20)))]
    batches = [batch for rows in given for batch in rows.to_batches()]
    made_by = TaskRows(sail.spread(pa.table({"seed": [0]})), lambda seeds: (batch for _ in seeds for batch in batches))
    table = ChangelogTable(str(tmp_path / "empty"), COLUMNS)
    table.append(Rows(sail, frame=made_by.frame(from_arrow_schema(SCHEMA)), made_by=made_by).without("_row").content, 1)
    assert table.read_arrow().sort_by("_key").column("_cause").to_pylist() == [""] * 20 + [other] * 20


def test_a_failing_task_leaves_the_table_as_it_was(engine: Engine, tmp_path: Path) -> None:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from rows_of(0, 3).to_batches()
            if 1 in batch.column("n").to_pylist():
                raise ValueError("no record")

    table = ChangelogTable(str(tmp_path / "t"), COLUMNS)
    table.create()
    rows = TaskRows(engine.spread(pa.table({"n": [0, 1]})), work)
    with pytest.raises(Exception, match="no record"):
        table.append(rows, 1)
    assert (table.version(), table.statistics.rows()) == (0, 0)


def test_no_rows_are_no_version(engine: Engine, tmp_path: Path) -> None:
    table = ChangelogTable(str(tmp_path / "t"), COLUMNS)
    rows = TaskRows(engine.spread(pa.table({"n": [0, 1]})), lambda batches: (rows for _ in batches for rows in rows_of(0, 0).to_batches()))
    assert table.append(rows, 1).rows == 0
    assert table.version() == 0


def test_many_rows_become_several_files(sail: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_writer, "HELD_BYTES", 200)
    table = ChangelogTable(str(tmp_path / "t"), COLUMNS)
    assert table.append(rows_made(sail).content, 1).rows == 54
    assert table.statistics.files() > 4
    assert table.statistics.counts(1)[Op.APPEND] == 54
