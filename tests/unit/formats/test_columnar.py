"""Parquet and Arrow files: values against declared types, ranges, undeclared columns, and written files read back."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import formats
from storage.formats import ArrayPath, Column, InputError, OptionError, ReadPlan, Section, WritePlan
from storage.formats.typed.columnar import coerce_array
from storage.values.types import arrow_type
from tests.support.columnar import FILES
from tests.support.reading import records_of

NOON = datetime(2024, 1, 5, 12, tzinfo=UTC)
LOST = object()
"""A cell that does not convert."""

LONG = Decimal("12345678901234567.89")
"""A decimal that no float has the digits of."""

CASES = [
    (pa.int16(), 7, {"int": 7, "float": 7.0, "string": "7", "bool": True, "numeric": "7", "any": "7", "date": LOST}),
    (pa.uint64(), 2**63, {"int": LOST, "float": 2.0**63, "string": "9223372036854775808"}),
    (pa.float32(), 0.5, {"float": 0.5, "int": LOST, "string": "0.5", "any": "0.5"}),
    (pa.float64(), 3.0, {"int": 3, "float": 3.0, "string": "3"}),
    (pa.bool_(), True, {"bool": True, "int": 1, "string": "true", "any": "true"}),
    (pa.string(), "2024-01-05", {"string": "2024-01-05", "date": date(2024, 1, 5), "int": LOST, "any": '"2024-01-05"'}),
    (pa.large_string(), "12", {"int": 12, "string": "12"}),
    (pa.dictionary(pa.int8(), pa.string()), "12", {"int": 12, "string": "12"}),
    (pa.binary(), b"12", {"int": 12, "string": "12"}),
    (pa.binary(), b"\xff\x00", {"string": "ff00"}),
    (pa.decimal128(9, 2), Decimal("12.50"), {"float": 12.5, "int": LOST, "string": "12.50", "any": "12.5"}),
    (pa.decimal128(9, 2), Decimal("12.00"), {"int": 12, "float": 12.0}),
    (pa.decimal128(20, 12), Decimal("0.000000000001"), {"string": "0.000000000001", "float": 1e-12}),
    (pa.date32(), date(2024, 1, 5), {"date": date(2024, 1, 5), "date_time": datetime(2024, 1, 5, tzinfo=UTC), "string": "2024-01-05", "any": '"2024-01-05"'}),
    (pa.date64(), date(2024, 1, 5), {"date": date(2024, 1, 5), "string": "2024-01-05"}),
    (pa.timestamp("s"), NOON.replace(tzinfo=None), {"date_time": NOON, "date": LOST, "string": "2024-01-05T12:00:00"}),
    (pa.timestamp("ms", "UTC"), NOON.replace(hour=0), {"date": date(2024, 1, 5), "date_time": NOON.replace(hour=0)}),
    (pa.timestamp("us", "Europe/Paris"), NOON, {"date_time": NOON, "string": "2024-01-05T12:00:00", "any": '"2024-01-05T12:00:00"'}),
    (pa.timestamp("ns"), NOON.replace(tzinfo=None), {"date_time": NOON}),
    (pa.list_(pa.int32()), [1, None], {"array": "[1,null]", "any": "[1,null]", "string": "[1,null]", "int": LOST}),
    (pa.struct({"a": pa.decimal128(5, 1), "b": pa.date32()}), {"a": Decimal("1.5"), "b": date(2024, 1, 5)}, {"map": '{"a":1.5,"b":"2024-01-05"}'}),
    (pa.struct({"a": pa.decimal128(20, 2)}), {"a": LONG}, {"map": LOST, "any": LOST, "string": '{"a":12345678901234567.89}'}),
    (pa.list_(pa.decimal128(38, 0)), [Decimal(10**25 + 1)], {"array": LOST, "any": LOST, "string": "[10000000000000000000000001]"}),
    (pa.list_(pa.decimal128(38, 0)), [Decimal(2**53 + 1), Decimal(10**25)], {"array": "[9007199254740993,1e+25]"}),
    (pa.decimal128(20, 2), LONG, {"any": LOST, "numeric": "1.2345678901234568e+16", "int": LOST, "float": float(LONG), "string": "12345678901234567.89"}),
    (pa.map_(pa.string(), pa.bool_()), [("x", True)], {"map": '{"x":true}'}),
    (pa.json_(), '{"a": [1]}', {"any": '{"a":[1]}', "string": '{"a": [1]}'}),
    (pa.json_(), "{no json", {"any": LOST}),
    (pa.json_(), "1.5", {"numeric": "1.5", "any": "1.5"}),
    (pa.duration("s"), timedelta(seconds=90), {"float": 90.0, "any": "90.0"}),
]


@pytest.mark.parametrize("form", FILES)
def test_columns_of_one_name_are_an_input_error_where_one_is_read(form):
    data = FILES[form](pa.table([[1], [2], [3]], names=["a", "b", "a"]))
    with pytest.raises(InputError, match="f: E224: columns 1 and 3 have one name, 'a'"):
        formats.reader(form, {}, ReadPlan((Column("a", "int"),), on_unmapped="drop")).undeclared(data, "f")
    reader = formats.reader(form, {}, ReadPlan((Column("b", "int"),), on_unmapped="drop"))
    assert reader.undeclared(data, "f") == ()
    assert [row.data for row in records_of(reader, data)] == [{"b": 2}]


@pytest.mark.parametrize(("kind", "value", "wanted"), CASES, ids=[f"{kind}={value}" for kind, value, _ in CASES])
def test_values_as_declared_types(kind, value, wanted):
    given_values = pa.array([value, None], kind) if not isinstance(kind, pa.BaseExtensionType) else pa.ExtensionArray.from_storage(kind, pa.array([value, None], kind.storage_type))
    for declared, expected in wanted.items():
        made = coerce_array(given_values, declared)
        assert made.values.type == arrow_type(declared), declared
        failed = [False, False] if made.failed is None else made.failed.to_pylist()
        found = [LOST if bad else cell for bad, cell in zip(failed, made.values.to_pylist(), strict=True)]
        assert found == [expected, None], declared


def test_the_texts_of_cells_have_all_digits():
    cells = [("s", pa.struct({"a": pa.decimal128(20, 2), "t": pa.string()}), {"a": LONG, "t": "5E0"}, '{"a":12345678901234567.89,"t":"5E0"}'), ("d", pa.decimal128(20, 2), LONG, str(LONG))]
    for name, kind, value, text in cells:
        reader = formats.reader("parquet", {}, ReadPlan((Column(name, "bool"),)))
        [record] = records_of(reader, FILES["parquet"](pa.table({name: pa.array([value], kind)})))
        assert json.loads(str(record.error))["fields"] == {name: text}


def test_digits_below_a_microsecond_fail_and_their_neighbours_do_not():
    made = coerce_array(pa.array([1_000, 1_001, None], pa.timestamp("ns")), "date_time")
    assert made.values.to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None, None]
    assert made.failed.to_pylist() == [False, True, False]


@pytest.mark.parametrize("form", FILES)
def test_a_cell_that_does_not_convert_rejects_its_record_with_the_fields_as_text(form):
    reader = formats.reader(form, {}, ReadPlan((Column("id", "int"), Column("at", "date"))))
    table = pa.table({"id": ["1", "x", "3"], "at": pa.array([date(2024, 1, 5)] * 3)})
    first, second, third = records_of(reader, FILES[form](table))
    assert (first.data, first.error, third.number) == ({"id": 1, "at": date(2024, 1, 5)}, None, 3)
    assert second.error is not None
    assert '"category":"type_coercion_failure"' in second.error
    assert "column 'id': cannot read 'x' as int" in second.error
    assert '"fields":{"id":"x","at":"2024-01-05"}' in second.error


@pytest.mark.parametrize("form", FILES)
def test_ranges_of_groups_together_are_the_file(form):
    table = pa.table({"id": range(1, 1001), "text": pa.array([f"row {number}" for number in range(1, 1001)]).dictionary_encode()})
    data = FILES[form](table, 90)
    reader = formats.reader(form, {}, ReadPlan((Column("id", "int"), Column("text"))))
    assert len(reader.split(data, "f", 3_000)) > 2
    for target in (None, 3_000, 1 << 30):
        found = records_of(reader, data, target)
        assert [(row.number, row.data) for row in found] == [(n, {"id": n, "text": f"row {n}"}) for n in range(1, 1001)]


@pytest.mark.parametrize("form", FILES)
def test_undeclared_columns_are_added_dropped_or_refused(form):
    data = FILES[form](pa.table({"x": [1], "id": [2], "s": [{"deep": {"er": 5}, "k": 1}]}))
    plan = ReadPlan((Column("id", "int"), Column("s.deep.er", "int"), Column("absent", "string")))
    reader = formats.reader(form, {}, plan)
    extra = reader.undeclared(data, "f")
    assert extra == (Column("x", "any"), Column("s.k", "any"))
    (record,) = records_of(reader.with_undeclared(extra), data)
    assert record.data == {"id": 2, "s.deep.er": 5, "absent": None, "x": "1", "s.k": "1"}
    dropping = formats.reader(form, {}, ReadPlan((Column("absent"),), on_unmapped="drop"))
    assert dropping.undeclared(data, "f") == ()
    assert [row.data for row in records_of(dropping, data)] == [{"absent": None}]
    with pytest.raises(InputError, match="f: undeclared field 'x'"):
        formats.reader(form, {}, ReadPlan((Column("id", "int"),), on_unmapped="reject")).undeclared(data, "f")


@pytest.mark.parametrize("form", FILES)
def test_members_of_maps_have_dotted_names(form):
    maps = pa.array([[("k", {"x": 1}), ("j", {"x": 2})], [], None], pa.map_(pa.string(), pa.struct({"x": pa.int64()})))
    numbers = pa.array([[(1, 5)]] * 3, pa.map_(pa.int64(), pa.int64()))
    plan = ReadPlan((Column("m.k.x", "int"), Column("n.k", "int")), on_unmapped="drop")
    found = records_of(formats.reader(form, {}, plan), FILES[form](pa.table({"m": maps, "n": numbers})))
    assert [row.data for row in found] == [{"m.k.x": 1, "n.k": None}, {"m.k.x": None, "n.k": None}, {"m.k.x": None, "n.k": None}]


@pytest.mark.parametrize("form", FILES)
def test_what_is_no_such_file_is_an_input_error(form):
    reader = formats.reader(form, {}, ReadPlan((Column("id", "int"),)))
    for data in (b"", b"id\n1\n", FILES[form](pa.table({"id": [1]}))[:-9]):
        with pytest.raises(InputError, match=r"f\.x: cannot be read as"):
            records_of(reader, data, name="f.x")


@pytest.mark.parametrize("form", FILES)
def test_settings_of_text_formats_are_refused(form):
    with pytest.raises(OptionError, match="array_paths"):
        formats.reader(form, {}, ReadPlan((Column("id"),), array_paths=(ArrayPath("$.a"),)))
    with pytest.raises(OptionError, match="envelope"):
        formats.reader(form, {}, ReadPlan((Column("id"),), sections=(Section("Head", "xml_path", "/a", ()),)))


def test_levels_of_compression_are_checked():
    plan = WritePlan((Column("id", "int"),))
    formats.writer("parquet", {"compression": "zstd", "level": 19}, plan)
    for wrong in ({"compression": "snappy", "level": 1}, {"compression": "gzip", "level": 10}, {"compression": "zip"}):
        with pytest.raises(OptionError, match="compression"):
            formats.writer("parquet", wrong, plan)


COLUMNS = tuple(Column(name, name) for name in ("int", "float", "bool", "string", "date", "date_time", "any", "numeric"))
json_texts = st.sampled_from(['{"a":[1,null]}', '"x"', "1.5", "true", "[]"])
cells = {
    "int": st.integers(-(2**63), 2**63 - 1), "float": st.floats(allow_nan=False), "bool": st.booleans(), "string": st.text(max_size=4), "date": st.dates(),
    "date_time": st.datetimes().map(lambda moment: moment.replace(tzinfo=UTC)), "any": json_texts,
    "numeric": st.sampled_from(["1", "1.5", "-3"]),
}  # fmt: skip
rows = st.lists(st.fixed_dictionaries({name: st.none() | cell for name, cell in cells.items()}), max_size=6)
SCHEMA = pa.schema([(column.name, arrow_type(column.type)) for column in COLUMNS])


def file_of(form, records, cut, options=None):
    """The file of records in two batches."""
    session = formats.writer(form, options or {}, WritePlan(COLUMNS)).open()
    batches = [pa.RecordBatch.from_pylist(part, SCHEMA) for part in (records[:cut], records[cut:])]
    return session.header() + b"".join(session.render(batch) for batch in batches) + session.footer()


@pytest.mark.parametrize("form", FILES)
@given(records=rows, cut=st.integers(0, 6))
@settings(deadline=None)
def test_what_is_written_reads_back_and_its_bytes_do_not_depend_on_batches(form, records, cut):
    data = file_of(form, records, cut)
    assert data == file_of(form, records, 0)
    found = records_of(formats.reader(form, {}, ReadPlan(COLUMNS)), data)
    assert [row.data for row in found] == records
    assert not any(row.error for row in found)


@pytest.mark.parametrize("compression", ["snappy", "gzip", "zstd", "none"])
def test_the_compression_of_an_output(compression):
    data = file_of("parquet", [{"int": 1}], 0, {"compression": compression})
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert metadata.row_group(0).column(0).compression == {"none": "UNCOMPRESSED"}.get(compression, compression.upper())
    assert metadata.schema.column(6).logical_type.type == "JSON"
