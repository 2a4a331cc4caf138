"""Column names of any spelling are stored under names that all readers accept."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from storage.delta.columns import REFUSED, declared, escaped, logical, new_fields, place

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
TYPES = st.sampled_from(["string", "bigint", "double", "boolean", "date", "timestamp", "binary", "tinyint"])
SCHEMAS = st.dictionaries(NAMES, TYPES, min_size=1, max_size=6)


@given(SCHEMAS)
def test_every_schema_can_be_stored_and_is_found_again(schema: dict[str, str]) -> None:
    columns = declared(schema)
    stored = new_fields(columns).fields
    assert [logical(field) for field in stored] == columns
    assert not any(where.missing for where in place(stored, columns))


@given(SCHEMAS)
def test_stored_names_differ_in_more_than_case_and_have_no_refused_character(schema: dict[str, str]) -> None:
    names = [field.name for field in new_fields(declared(schema)).fields]
    assert len({name.lower() for name in names}) == len(names)
    assert not REFUSED & set("".join(names)).difference("~")


@given(SCHEMAS, SCHEMAS)
def test_a_later_schema_keeps_the_columns_that_it_shares(before: dict[str, str], after: dict[str, str]) -> None:
    stored = list(new_fields(declared(before)).fields)
    placements = place(stored, declared(after))
    for where in placements:
        same = before.get(where.column.name) == after[where.column.name]
        assert where.missing != same
    names = [field.name.lower() for field in stored] + [where.stored.name.lower() for where in placements if where.missing]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("pair", [("text", "json"), ("json", "text")])
def test_texts_and_the_json_of_dynamic_values_have_columns_of_their_own(pair: tuple[str, str]) -> None:
    stored = new_fields(declared({"v": pair[0]})).fields
    (same,) = place(stored, declared({"v": pair[0]}))
    (other,) = place(stored, declared({"v": pair[1]}))
    assert not same.missing
    assert other.missing
    assert other.older == tuple(stored)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("amount", "amount"),
        ("Order ID", "Order~20~ID"),
        ("a.b", "a~2e~b"),
        ("größe", "größe"),
        ("a\tb", "a~9~b"),
        ("~", "~7e~"),
        ("", "~~"),
    ],
)
def test_escaped(name: str, stored: str) -> None:
    assert escaped(name) == stored


def test_delta_takes_the_awkward_ones(tmp_path) -> None:
    awkward = {
        "Amount": "double",
        "amount": "string",
        "AMOUNT": "date",
        "x (EUR);": "bigint",
        "a=b": "string",
        "\n": "string",
        "a`b.c": "string",
    }
    DeltaTable.create(str(tmp_path / "t"), new_fields(declared(awkward)))
    fields = DeltaTable(str(tmp_path / "t")).schema().fields
    assert {column.name for column in map(logical, fields)} == set(awkward)


def test_struct_members_are_named_as_freely() -> None:
    columns = declared(pa.schema([("_ck", pa.struct([("customer id", pa.string()), ("Customer ID", pa.int64())]))]))
    (stored,) = new_fields(columns).fields
    assert [member.name for member in stored.type.fields] == ["customer~20~id", "Customer~20~ID~2"]
    assert logical(stored) == columns[0]
