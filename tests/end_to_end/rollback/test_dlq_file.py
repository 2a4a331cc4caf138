"""The DLQ's cells: ids that stay, the text forms of values."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxl.types.types import parse_type
from cxl.values.text import scalar_text
from errata.core.uuid7 import uuid7, uuids_of
from errata.rollback.cell_texts import texts
from tests.support.pipelines import Folder, command

KINDS = {
    "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]))), "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), st.floats()), "bool": (pa.bool_(), st.booleans()), "date": (pa.date32(), st.dates()),
    "date_time": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
}  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)


@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)))
def test_typed_values_are_written_as_outputs_write_them(data, kind):
    arrow, values = KINDS[kind]
    drawn = data.draw(st.lists(st.none() | values, max_size=6))
    expected = ["" if one is None else scalar_text(one.replace(tzinfo=None) if isinstance(one, datetime) else one) for one in drawn]
    assert texts(pa.chunked_array([pa.array(drawn, arrow)]), parse_type(kind)).to_list() == expected


@given(values=st.lists(SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=2), SCALARS, max_size=2), max_size=6))
def test_scalars_of_a_dynamic_type_are_written_plain_and_the_others_as_they_are_kept(values):
    kept = [json.dumps(one) for one in values]
    expected = [text if isinstance(one, (list, dict)) else scalar_text(one) for one, text in zip(values, kept, strict=True)]
    assert texts(pa.chunked_array([pa.array(kept, pa.string())]), parse_type("any")).to_list() == expected


@given(st.lists(st.tuples(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)), st.binary(max_size=9)), max_size=4))
def test_ids_are_uuids_of_time_and_hash(rows):
    hashes = [blake2b(key, digest_size=16).digest() for _, key in rows]
    times = [(moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1) for moment, _ in rows]
    for text, milliseconds, digest in zip(uuids_of(pl.Series(times, dtype=pl.Int64), b"".join(hashes)), times, hashes, strict=True):
        found = uuid.UUID(text)
        assert (text, found.version, found.variant) == (str(found), 7, uuid.RFC_4122)
        assert found.bytes[:6] == milliseconds.to_bytes(6, "big")
        free = int.from_bytes(bytes([0x0F, 0xFF, 0x3F, *[0xFF] * 7]), "big")
        assert int.from_bytes(found.bytes[6:], "big") & free == int.from_bytes(digest[6:], "big") & free


@pytest.mark.parametrize("moment", [datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC)])
def test_ids_of_moments_are_different_and_in_order_of_time(moment):
    one, other, later = uuid.UUID(uuid7(moment)), uuid.UUID(uuid7(moment)), uuid.UUID(uuid7(moment + timedelta(milliseconds=1)))
    assert one != other
    assert max(one, other) < later
    assert one.version == 7


SWAPPED = """\
pipeline: { name: swapped }
error_handling: { strategy: continue, dlq: { path: rejected.csv } }
nodes:
  - type: source
    name: s
    config: { name: s, type: csv, path: s.csv, merge: { strategy: snapshot, primary_key: [id] }, schema: [{ name: id, type: int }, { name: v, type: int }] }
  - { type: transform, name: t, input: s, config: { cxl: emit x = 10 / v } }
  - { type: output, name: out, input: t, config: { name: out, type: csv, path: out.csv } }
"""


def test_records_that_only_change_places_are_listed_at_their_rows_now(tmp_path: Path) -> None:
    """After several runs it is the row number in the present file."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SWAPPED)
    for number, rows in enumerate((["1,1", "2,0", "3,5"], ["1,1", "3,5", "2,0"], ["2,0", "1,1", "3,5"]), 1):
        folder.write("s.csv", "\n".join(["id,v", *rows, ""]))
        folder.run()
        (rejected,) = folder.rows("rejected.csv")
        assert rejected["_cxl_dlq_source_row"] == str(rows.index("2,0") + 1)
        assert (folder.load().head_epoch(), folder.violations()) == (number, [])
        folder.write("s.csv", "\n".join(["id,v", *rows]))
        assert not folder.run().committed


def test_records_that_change_places_while_something_else_changes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SWAPPED)
    folder.write("s.csv", "id,v\n1,1\n2,0\n")
    folder.run()
    folder.write("pipeline.yaml", SWAPPED.replace("10 / v", "20 / v"))
    folder.write("s.csv", "id,v\n2,0\n1,1\n")
    folder.run()
    assert [row["_cxl_dlq_source_row"] for row in folder.rows("rejected.csv")] == ["1"]


def test_a_pipeline_without_a_file_of_rejects_knows_their_rows_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SWAPPED.replace(", dlq: { path: rejected.csv }", ""))
    for rows in (["1,1", "2,0"], ["2,0", "1,1"]):
        folder.write("s.csv", "\n".join(["id,v", *rows, ""]))
        folder.run()
        code, stdout, _ = command("dlq", str(tmp_path / "pipeline.yaml"), "list", "--format", "jsonl")
        assert (code, [row["row"] for row in map(json.loads, stdout.splitlines())]) == (0, [rows.index("2,0") + 1])


def with_a_reject(place: Path) -> tuple[Folder, dict[str, str]]:
    """A pipeline that has run, and the one row of its file."""
    folder = Folder(place)
    folder.write("pipeline.yaml", SWAPPED)
    folder.write("s.csv", "id,v\n1,0\n")
    folder.run()
    (row,) = folder.rows("rejected.csv")
    return folder, row


def test_the_file_follows_what_is_asked_of_its_columns(tmp_path: Path) -> None:
    folder, whole = with_a_reject(tmp_path)
    for left_out, gone in (("include_reason", {"_cxl_dlq_error_category", "_cxl_dlq_error_detail"}), ("include_source_row", {"id", "v"})):
        folder.write("pipeline.yaml", SWAPPED.replace("rejected.csv", f"rejected.csv, {left_out}: false"))
        folder.run()
        assert folder.rows("rejected.csv") == [{name: value for name, value in whole.items() if name not in gone}]
        assert not folder.run().committed
    assert folder.violations() == []


def test_the_file_follows_the_columns_of_its_sources(tmp_path: Path) -> None:
    folder, whole = with_a_reject(tmp_path)
    folder.write("pipeline.yaml", SWAPPED.replace("{ name: v, type: int }", "{ name: v, type: int }, { name: z, type: string, optional: true }"))
    folder.run()
    assert folder.rows("rejected.csv") == [whole | {"z": ""}]
    assert not folder.run().committed
    assert folder.violations() == []


BY_GROUP = """\
pipeline: { name: groups }
error_handling: { strategy: continue, dlq: { path: dlq.csv } }
nodes:
  - type: source
    name: lines
    config: { name: lines, type: csv, path: lines.csv, KEY schema: [{ name: id, type: int }, { name: dept, type: string }, { name: v, type: int }] }
  - { type: aggregate, name: counted, input: lines, config: { group_by: [dept], cxl: "emit n = count(*)\\nemit v = max(v)" } }
  - { type: transform, name: shares, input: counted, config: { cxl: "emit share = 1 / (n - 1)" } }
  - { type: output, name: out, input: shares, config: { name: out, type: csv, path: out.csv } }
"""


@pytest.mark.parametrize(("key", "members"), [("", []), ("correlation_key: id,", [("2", "b", "25", "2")])])
def test_a_row_that_many_records_made_has_the_fields_that_it_has(tmp_path: Path, key: str, members: list[tuple[str, ...]]) -> None:
    """Source fields that the row lacks are blank. Rows that were rolled back are gone; the entry keeps their fields."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", BY_GROUP.replace("KEY", key))
    folder.write("lines.csv", "id,dept,v\n1,a,10\n2,b,25\n3,a,40\n")
    for changed in ("", "4,a,50\n"):
        folder.write("lines.csv", "id,dept,v\n1,a,10\n2,b,25\n3,a,40\n" + changed)
        assert folder.run().exit_code == 2
        found = [(row["id"], row["dept"], row["v"], row["_cxl_dlq_source_row"]) for row in folder.rows("dlq.csv")]
        assert found == [*members, ("", "b", "25", "")]
    folder.write("pipeline.yaml", BY_GROUP.replace("KEY", key).replace("max(v)", "max(v) + 1"))
    folder.run()
    assert folder.rows("dlq.csv")[-1]["v"] == "26"
