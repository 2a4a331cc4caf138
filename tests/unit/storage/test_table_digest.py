"""The digest of a table: of its values and columns alone."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from storage.values import table_digest as digests
from storage.values.table_digest import table_digest
from tests.support.examples import examples

PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
COLUMNS = {
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float64(), st.floats()),
    "b": (pa.bool_(), st.booleans()),
    "s": (pa.string(), st.text(max_size=5)),
    "y": (pa.binary(), st.binary(max_size=5)),
    "d": (pa.date32(), st.dates()),
    "t": (pa.timestamp("us", "UTC"), st.integers(-(10**15), 10**15)),
    "n": (pa.decimal128(10, 2), st.integers(-(10**8), 10**8).map(lambda cents: Decimal(cents) / 100)),
    "l": (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=3), max_size=3)),
    "p": (PAIR, st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": st.none() | st.text(max_size=3)})),
    "m": (pa.map_(pa.string(), pa.int64()), st.dictionaries(st.text(max_size=2), st.none() | st.integers(0, 9), max_size=3).map(lambda found: list(found.items()))),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()}), max_size=12)


def cut(table: pa.Table, sizes: list[int]) -> pa.Table:
    """The same rows in other chunks, which are slices with bytes of other rows around them."""
    parts, start = [], 0
    for size in [*sizes, table.num_rows]:
        parts.append(table.slice(start, size))
        start += size
    return pa.concat_tables(parts)


def through_parquet(table: pa.Table, **options: Any) -> pa.Table:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return pq.read_table(io.BytesIO(file.getvalue()))


def through_ipc(table: pa.Table, size: int) -> pa.Table:
    file = io.BytesIO()
    with ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=size)
    return ipc.open_stream(io.BytesIO(file.getvalue())).read_all()


@examples(40)
@given(rows=ROWS, sizes=st.lists(st.integers(0, 4), max_size=5), group=st.integers(1, 5), chunk=st.integers(1, 4))
def test_chunks_row_groups_and_libraries_do_not_count(rows: list[dict[str, Any]], sizes: list[int], group: int, chunk: int) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    wanted = table_digest(table)
    with pytest.MonkeyPatch.context() as patch:
        assert table_digest(cut(table, sizes)) == wanted
        assert table_digest(through_parquet(table, row_group_size=group, use_dictionary=bool(group % 2), version="2.4", compression="gzip")) == wanted
        assert table_digest(through_ipc(table, group)) == wanted
        patch.setattr(digests, "_CHUNK", chunk)
        pieces = table_digest(table)
        assert table_digest(cut(table, sizes)) == pieces


@examples(40)
@given(one=ROWS, other=ROWS)
def test_tables_with_other_rows_have_other_digests(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    first, second = (pa.Table.from_pylist(rows, SCHEMA) for rows in (one, other))
    same = pl.from_arrow(first.drop_columns(["m"])).equals(pl.from_arrow(second.drop_columns(["m"]))) and first["m"].to_pylist() == second["m"].to_pylist()
    assert (table_digest(first) == table_digest(second)) == same


def test_how_values_lie_in_memory_does_not_count() -> None:
    texts = ["a", None, "", "bb"]
    wanted = table_digest(pa.table({"s": texts}))
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert table_digest(pa.table({"s": pa.array(texts).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(texts).dictionary_encode()})) == wanted
    assert table_digest(pl.DataFrame({"s": texts}).to_arrow()) == wanted
    lists = pa.table({"l": [[1], None, []]})
    assert table_digest(lists.cast(pa.schema([("l", pa.large_list(pa.int64()))]))) == table_digest(lists)
    assert table_digest(pa.table({"f": [-0.0, float("nan")]})) == table_digest(pa.table({"f": [0.0, -float("nan")]}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.table({"a": ["x"]}), pa.table({"b": ["x"]})),
        (pa.table({"a": [1]}), pa.table({"a": ["1"]})),
        (pa.table({"a": [1]}), pa.table({"a": pa.array([1], pa.int32())})),
        (pa.table({"a": ["ab", "c"]}), pa.table({"a": ["a", "bc"]})),
        (pa.table({"a": ["", None]}), pa.table({"a": [None, ""]})),
        (pa.table({"a": [[1], []]}), pa.table({"a": [[], [1]]})),
        (pa.table({"a": [1], "b": [2]}), pa.table({"a": [1]})),
        (pa.table({"a": pa.array([], pa.int64())}), pa.table({"a": pa.nulls(1, pa.int64())})),
        (pa.table({"a": pa.nulls(1)}), pa.table({"a": pa.nulls(2)})),
    ],
)
def test_what_counts(one: pa.Table, other: pa.Table) -> None:
    assert table_digest(one) != table_digest(other)


def test_a_digest_stays_the_same() -> None:
    """The ledger has it: another digest would take equal rows for a new delivery."""
    rows = [{"i": 7, "f": 1.5, "b": True, "s": "ä", "y": b"x", "n": Decimal("1.50"), "l": ["x", None], "p": {"a": 1, "b": None}, "m": [("k", 1)]}, {}]
    assert table_digest(pa.Table.from_pylist(rows, SCHEMA)) == "6e3895b4062aed70ee33fe183392efc2"
