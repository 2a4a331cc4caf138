"""CSV writing: the bytes of Python's writer, the text of values, written files read back."""

import csv
import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import Column, OutputError, ReadPlan, WritePlan
from storage.values.text import float_text, plain_numbers
from tests.support.examples import examples
from tests.support.reading import records_of

CELL = st.text(alphabet=st.one_of(st.sampled_from("a,\"\n\r;' é😀"), st.characters(exclude_categories=["Cs"])), max_size=6)


def written(columns, rows, options=None, **plan):
    columns = tuple(Column(*column) for column in columns)
    writer = formats.writer("csv", options or {}, WritePlan(columns, **plan))
    types = [pa.field(column.name, formats.reader("csv", {}, ReadPlan((column,))).schema().field(0).type) for column in columns]
    batch = pa.RecordBatch.from_pylist([dict(zip([c.name for c in columns], row, strict=True)) for row in rows], pa.schema(types))
    text = writer.render(batch)
    assert b"".join(writer.rows(batch)) == text
    return (writer.header() + text + writer.footer()).decode()


@given(
    table=st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=5)),
    delimiter=st.sampled_from(",;|\t"),
)
@examples(300)
def test_the_bytes_of_pythons_writer(table, delimiter):
    width = len(table[0]) if table else 1
    expected = io.StringIO(newline="")
    csv.writer(expected, delimiter=delimiter, lineterminator="\r\n").writerows([[f"c{i}" for i in range(width)], *table])
    columns = [(f"c{i}",) for i in range(width)]
    got = written(columns, table, {"delimiter": delimiter})
    assert list(csv.reader(io.StringIO(got, newline=""), delimiter=delimiter)) == [[f"c{i}" for i in range(width)], *table]
    if not any("\r" in cell or "\n" in cell for row in table for cell in row):
        assert got == expected.getvalue().replace("\r\n", "\n")


TREES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | CELL | st.sampled_from(["1.0", '2e5"', "[3.0]"]),
                     lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CELL, inner, max_size=3))  # fmt: skip


def plain(value):
    """JSON text by Python, with each float as `float_text` writes it."""
    if isinstance(value, float):
        return float_text(pa.array([value]))[0].as_py()
    if isinstance(value, list):
        return f"[{','.join(map(plain, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{plain(member)}" for key, member in value.items()) + "}"
    return json.dumps(value)


@given(st.lists(st.none() | TREES, max_size=4))
def test_floats_within_arrays_and_maps_are_written_as_all_floats(values):
    texts = pa.array([None if value is None else json.dumps(value, separators=(",", ":")) for value in values], pa.string())
    assert plain_numbers(texts).to_pylist() == [None if value is None else plain(value) for value in values]


@given(value=st.floats())
@examples(500)
def test_floats_are_short_plain_and_read_back(value):
    text = float_text(pa.array([value]))[0].as_py()
    if math.isfinite(value):
        assert "e" not in text
        assert not text.endswith(".0")
        assert float(text) == value
        assert len(text.replace("-", "").replace(".", "").strip("0")) <= len(Decimal(repr(value)).as_tuple().digits)
    else:
        assert text in ("NaN", "inf", "-inf")


def test_value_texts():
    rows = [
        (-5, 0.1, True, date(2024, 1, 5), datetime(2024, 1, 5, 7, 8, 9, tzinfo=UTC)),
        (0, 15000.0, False, date(1, 1, 1), datetime(2000, 1, 1, 0, 0, 0, 250000, tzinfo=UTC)),
        (None, None, None, None, None),
    ]
    columns = [("i", "int"), ("f", "float"), ("b", "bool"), ("d", "date"), ("t", "date_time")]
    assert written(columns, rows) == (
        "i,f,b,d,t\n-5,0.1,true,2024-01-05,2024-01-05T07:08:09\n0,15000,false,0001-01-01,2000-01-01T00:00:00.25\n,,,,\n"
    )


def test_null_and_empty_text_are_empty_cells_and_a_lone_empty_cell_is_quoted():
    assert written([("a",), ("b",)], [("", None), (None, "x")]) == "a,b\n,\n,x\n"
    assert written([("a",)], [("",), ("x",)]) == 'a\n""\nx\n'


def test_dynamic_values():
    rows = [('"a,b"', "[1,2]"), ("2.0", "null"), ("true", None)]
    assert written([("v", "any"), ("w", "array")], rows) == 'v,w\n"a,b","[1,2]"\n2,\ntrue,\n'
    with pytest.raises(OutputError, match=r"column 'v' holds a map, which csv cannot hold: .*UnserializableMapValue"):
        written([("v", "any")], [('{"a":1}',)])


def test_header_can_be_left_out_and_its_names_are_quoted():
    assert written([("a,b",), ('"',)], []) == '"a,b",""""\n'
    assert written([("a",)], [("1",)], include_header=False) == "1\n"


def test_formula_guard():
    assert written([("a",), ("n", "int")], [("=1+1", -5), ("x", 1)], {"formula_guard": True}) == "a,n\n'=1+1,-5\nx,1\n"
    assert written([("v", "any")], [('"=1+1"',), ("-5",)], {"formula_guard": True}) == "v\n'=1+1\n-5\n"


@pytest.mark.parametrize(
    ("type", "cell", "found"),
    [
        *(("string", f"{sign}cmd", True) for sign in "=+-@"),
        *(("string", text, False) for text in ("-5", "+1.5e3", "-1,234.50", "a=1", "", None, "'=1", "é")),
        ("int", -5, False),
        ("float", -0.5, False),
        ("any", "-5", False),
    ],
)
def test_what_is_taken_for_a_formula(type, cell, found):
    """A number with a sign is no formula, whatever its column's type."""
    columns = (Column("a", type), Column("b", "string"))
    plain = {"int": pa.int64(), "float": pa.float64()}.get(type, pa.string())
    batch = pa.record_batch({"a": pa.array([cell, None], plain), "b": pa.array(["x", "y"])})
    assert formats.writer("csv", {}, WritePlan(columns)).has_formulas(batch) is found


@given(
    rows=st.lists(
        st.tuples(CELL, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans(), st.dates()), min_size=1, max_size=6
    )
)
@examples(100)
def test_what_is_written_reads_back(rows):
    columns = [("s", "string"), ("i", "int"), ("f", "float"), ("b", "bool"), ("d", "date")]
    reader = formats.reader("csv", {}, ReadPlan(tuple(Column(*column) for column in columns)))
    back = records_of(reader, written(columns, rows).encode())
    assert [tuple(row.data.values()) for row in back] == rows
    assert all(row.error is None for row in back)
