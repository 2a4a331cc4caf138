"""Avro files: what the schema of a file makes of values, blocks, damaged files, and written files as fastavro and Errata read them."""

import re
import zlib
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from uuid import UUID

import fastavro
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import Column, InputError, OptionError, ReadPlan, WritePlan
from storage.formats.avro.codecs import CODECS
from storage.formats.avro.container import encoded, header
from storage.formats.avro.schema import READERS
from storage.values.types import arrow_type
from tests.support.columnar import avro_file
from tests.support.examples import examples
from tests.support.reading import records_of

NOON = datetime(2026, 3, 1, 12, 0, 0, 1500, tzinfo=UTC)
MICROS = int((NOON - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 10**6 + 1500


def raw(schema, blocks, codec=b"null"):
    """The bytes of a file of blocks: records and packed bytes."""
    sync = bytes(range(16))
    return header({"avro.schema": orjson.dumps(schema), "avro.codec": codec}, sync) + b"".join(encoded(count) + encoded(len(text)) + text + sync for count, text in blocks)


def read(data, columns, target=None, **plan):
    declared = tuple(Column(*one.split(":"), required=True) for one in columns.split())
    reader = formats.reader("avro", {}, ReadPlan(declared, **{"on_unmapped": "drop", **plan}))
    reader = reader.with_undeclared(reader.undeclared(data, "f.avro"))
    return [row.data if row.error is None else orjson.loads(row.error) for row in records_of(reader, data, target, "f.avro")]


def logical(kind, logical_type, **more):
    return {"type": kind, "logicalType": logical_type, **more}


FIXED = {"type": "fixed", "name": "F", "size": 2}
CASES = [
    ("int", 7, {"int": 7, "float": 7.0, "string": "7", "decimal(38,2)": Decimal("7.00"), "date": None}),
    ("long", 2**63 - 1, {"int": 2**63 - 1, "string": "9223372036854775807"}),
    ("float", 0.1, {"decimal(38,2)": Decimal("0.10"), "int": None}),
    ("double", 0.1, {"float": 0.1, "decimal(38,1)": Decimal("0.1"), "string": "0.1"}),
    ("boolean", True, {"bool": True, "int": 1, "string": "true"}),
    ("string", "12", {"int": 12, "string": "12"}),
    ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, "b", {"string": "b"}),
    (["null", "int", "string"], "x", {"string": "x", "int": None}),
    (["null", "int", "string"], 3, {"string": "3", "int": 3}),
    (["int", logical("bytes", "decimal", precision=10, scale=2)], Decimal("1.50"), {"decimal(38,2)": Decimal("1.50"), "int": None, "string": "1.50"}),
    (logical("bytes", "decimal", precision=10, scale=3), Decimal("-1.500"), {"decimal(38,2)": Decimal("-1.50"), "float": -1.5, "string": "-1.500"}),
    (logical("bytes", "decimal", precision=60, scale=0), Decimal(10**50), {"decimal(38,0)": None, "string": "1" + "0" * 50}),
    (logical("fixed", "decimal", precision=4, scale=2, name="D", size=4), Decimal("-0.05"), {"decimal(38,2)": Decimal("-0.05")}),
    (logical("int", "date"), date(2026, 3, 1), {"date": date(2026, 3, 1), "date_time": datetime(2026, 3, 1, tzinfo=UTC), "string": "2026-03-01"}),
    (logical("long", "timestamp-millis"), NOON.replace(microsecond=1000), {"date_time": NOON.replace(microsecond=1000), "date": None}),
    (logical("long", "timestamp-micros"), NOON, {"date_time": NOON}),
    (logical("long", "timestamp-nanos"), MICROS * 1000 + 999, {"date_time": NOON}),
    (logical("long", "local-timestamp-nanos"), MICROS * 1000, {"date_time": NOON}),
    (logical("long", "local-timestamp-micros"), NOON.replace(tzinfo=None), {"date_time": NOON}),
    (logical("int", "time-millis"), 45_000_500, {"string": "12:30:00.500000"}),
    (logical("long", "time-micros"), 1, {"string": "00:00:00.000001"}),
    (logical("string", "uuid"), UUID(int=5), {"string": str(UUID(int=5))}),
    (logical("fixed", "duration", name="L", size=12), bytes([1, 0, 0, 0, 2, 0, 0, 0, 0xDC, 5, 0, 0]), {"string": "P1M2DT1.5S"}),
    ("bytes", b"ab", {"string": "ab"}),
    ("bytes", b"\xff\x00", {"string": "ff00"}),
    (FIXED, b"\x00\xff", {"string": "00ff"}),
    ({"type": "array", "items": ["null", "long"]}, [1, None], {"array": "[1,null]", "any": "[1,null]", "int": None}),
    ({"type": "map", "values": logical("bytes", "decimal", precision=5, scale=1)}, {"a": Decimal("1.5")}, {"map": '{"a":1.5}'}),
    ({"type": "map", "values": logical("bytes", "decimal", precision=20, scale=2)}, {"a": Decimal("12345678901234567.89")}, {"map": None, "string": '{"a":12345678901234567.89}'}),
    ({"type": "map", "values": "bytes"}, {"a": b"1e5"}, {"map": '{"a":"1e5"}'}),
    ({"type": "record", "name": "P", "fields": [{"name": "d", "type": logical("int", "date")}]}, {"d": date(2026, 3, 1)}, {"map": '{"d":"2026-03-01"}'}),
]


@pytest.mark.parametrize(("kind", "value", "fits"), CASES)
def test_values_by_the_schema_of_the_file(kind, value, fits):
    data = avro_file({"v": kind}, [{"v": value}])
    for declared, wanted in fits.items():
        [found] = read(data, f"v:{declared}")
        assert found.get("v") == wanted, declared
        assert ("category" in found) == (wanted is None), declared
    branches = [one for one in (kind if isinstance(kind, list) else [kind]) if one != "null"]
    assert read(avro_file({"v": ["null", *branches]}, [{"v": None}]), "v:string") == [{"v": None}]


def test_values_out_of_range_are_bad_cells_of_their_records():
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "t", "type": logical("long", "timestamp-micros")}]}
    rows = encoded(1) + encoded(0) + encoded(2) + encoded(2**62)
    found = read(raw(schema, [(2, rows)]), "id:int t:date_time")
    assert found[0] == {"id": 1, "t": datetime(1970, 1, 1, tzinfo=UTC)}
    assert found[1]["fields"] == {"id": "2", "t": str(2**62)}


def test_members_of_records_have_dotted_names():
    inner = {"type": "record", "name": "A", "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": ["null", "int"]}]}
    data = avro_file({"id": "int", "at": ["null", inner], "again": ["null", "A"]}, [{"id": 1, "at": {"city": "X", "zip": 5}, "again": None}, {"id": 2, "at": None, "again": {"city": "Y", "zip": None}}])
    assert read(data, "id:int at.city:string again.city:string") == [{"id": 1, "at.city": "X", "again.city": None}, {"id": 2, "at.city": None, "again.city": "Y"}]
    assert read(data, "id:int at.city:string", on_unmapped="auto_widen")[0]["at.zip"] == "5"
    with pytest.raises(InputError, match=r"E238: .*'at\.town'"):
        read(data, "id:int at.town:string")


@pytest.mark.parametrize("codec", CODECS)
def test_codecs_and_ranges_of_blocks(codec):
    rows = [{"id": n, "s": "x" * n} for n in range(200)]
    data = written([("id", "int"), ("s", "string")], [(row["id"], row["s"]) for row in rows], {"codec": codec})
    assert read(data, "id:int s:string") == rows
    parts = avro_file({"id": "int", "s": "string"}, rows, interval=500)
    reader = formats.reader("avro", {}, ReadPlan((Column("id", "int"),), on_unmapped="drop"))
    assert len(reader.split(parts, "f", 1000)) > 5
    assert [(row.number, row.data["id"]) for row in records_of(reader, parts, 1000)] == [(n + 1, n) for n in range(200)]


GOOD = avro_file({"id": "int", "s": "string"}, [{"id": n, "s": "abc"} for n in range(5)], codec="deflate")


@pytest.mark.parametrize("end", [*range(8), len(GOOD) // 2, len(GOOD) - 17, len(GOOD) - 1])
def test_files_that_end_early(end):
    with pytest.raises(InputError, match=r"^f\.avro: (line 1, )?byte \d+: E630: ") as caught:
        read(GOOD[:end], "id:int")
    assert caught.value.offset is not None
    assert caught.value.offset <= end


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
@examples(100)
def test_a_changed_byte_gives_records_or_an_input_error(at, change):
    data = bytearray(GOOD)
    data[at] ^= change
    with suppress(InputError):
        read(bytes(data), "id:int")


RECORD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
EMPTY = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "null"}]}
LIST = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "R"]}]}
NOTHING = {"type": "record", "name": "R", "fields": [{"name": "id", "type": {"type": "array", "items": "null"}}]}
DEEP = {"type": "record", "name": "R", "fields": [{"name": "id", "type": orjson.loads('{"type":"array","items":' * 100 + '"int"' + "}" * 100)}]}


@pytest.mark.parametrize(
    ("schema", "blocks", "codec", "message"),
    [
        ("string", [], b"null", "no record"),
        (LIST, [(1, b"\0\2" * 200 + b"\0\0")], b"null", "more than 128 levels"),
        (NOTHING, [(1, encoded(2**40))], b"null", "without any bytes"),
        (DEEP, [], b"null", "more than 64 levels"),
        (EMPTY, [(2**40, b"")], b"null", "fewer bytes than records"),
        (RECORD, [(3, b"\x02")], b"null", "cannot be read"),
        (RECORD, [(1, b"\x02")], b"deflate", "cannot be unpacked"),
        (RECORD, [], b"lz4", "codec 'lz4'"),
        ({**RECORD, "fields": [{"name": "id", "type": "Unknown"}]}, [], b"null", "no type 'Unknown'"),
        ({**RECORD, "fields": [{"name": "id"}]}, [], b"null", "cannot be read as Avro"),
    ],
)
def test_hostile_schemas_and_blocks(schema, blocks, codec, message):
    with pytest.raises(InputError, match=f"E630: .*{re.escape(message)}"):
        read(raw(schema, blocks, codec), "id:any")


def test_members_of_maps_have_dotted_names():
    data = avro_file({"m": {"type": "map", "values": "int"}, "u": ["null", {"type": "map", "values": {"type": "map", "values": "string"}}]}, [{"m": {"k": 1, "j": 2}, "u": {"a": {"b": "x"}}}, {"m": {}, "u": None}])
    assert read(data, "m.k:int u.a.b:string", on_unmapped="auto_widen") == [{"m.k": 1, "u.a.b": "x", "m": '{"k":1,"j":2}', "u": '{"a":{"b":"x"}}'}, {"m.k": None, "u.a.b": None, "m": "{}", "u": None}]


def test_types_that_refer_to_themselves():
    def linked(length):
        return {"id": length, "next": linked(length - 1) if length else None}

    assert read(raw(LIST, [(2, b"\2\2\4\0" + b"\6\0")]), "id:int next:map") == [{"id": 1, "next": '{"id":2,"next":null}'}, {"id": 3, "next": None}]
    (found,) = read(raw(LIST, [(1, b"".join(bytes([2 * n, 2 if n else 0]) for n in range(60, -1, -1)))]), "id:int next:any")
    assert (found["id"], orjson.loads(found["next"])) == (60, linked(59))
    tree = {"type": "record", "name": "N", "fields": [{"name": "v", "type": "int"}, *({"name": side, "type": ["null", "N"]} for side in ("left", "right"))]}
    data = avro_file({"id": "int", "tree": tree}, [{"id": 1, "tree": {"v": 1, "left": {"v": 2}, "right": {"v": 3, "left": {"v": 4}}}}])
    (found,) = read(data, "id:int tree.v:int tree.right.left:map")
    assert (found["tree.v"], orjson.loads(found["tree.right.left"])) == (1, {"v": 4, "left": None, "right": None})


@pytest.mark.parametrize("codec", ["deflate", "snappy"])
def test_bombs(codec):
    text = bytes(100 << 20)
    body = zlib.compress(text, 9)[2:-4] if codec == "deflate" else b"\x80\x80\x80\x80\x08" + bytes(20)
    with pytest.raises(InputError, match="E236"):
        read(raw(RECORD, [(1, body)], codec.encode()), "id:int")


# -- writing

COLUMNS = [("i", "int"), ("f", "float"), ("b", "bool"), ("s", "string"), ("d", "date"), ("t", "date_time"), ("p", "decimal(38,2)"), ("a", "array"), ("x", "any")]
ROWS = [
    (1, 0.1, True, "x", date(2026, 3, 1), NOON, Decimal("-12.50"), '[1,"x"]', '"t"'),
    (None,) * 9,
    (-(2**63), -1e300, False, "", date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), Decimal("999999999999999999999999999999999999.99"), "[]", '{"a":1}'),
]


def written(columns=COLUMNS, rows=ROWS, options=None, cut=None, name="report"):
    columns = tuple(Column(*one) for one in columns)
    session = formats.writer("avro", options or {}, WritePlan(columns, name=name)).open()
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])
    batch = pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    batches = [batch] if cut is None else [batch.slice(0, cut), batch.slice(cut)]
    return session.header() + b"".join(map(session.render, batches)) + session.footer()


def test_a_written_file_as_others_read_it():
    reader = fastavro.reader(BytesIO(written(options={"namespace": "shop.daily"})))
    assert list(reader)[:2] == [dict(zip([one[0] for one in COLUMNS], row, strict=True)) for row in ROWS[:2]]
    schema = reader.writer_schema
    assert (schema["name"], reader.codec) == ("shop.daily.report", "deflate")
    types = {one["name"]: one["type"] for one in schema["fields"]}
    assert all(kind[0] == "null" for kind in types.values())
    assert types["p"][1] == {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
    assert types["a"][1] == types["x"][1] == {"type": "string", "errata": "json"}
    assert (types["i"][1], types["f"][1], types["b"][1], types["s"][1]) == ("long", "double", "boolean", "string")


def test_what_is_written_is_read_back_as_it_was():
    found = read(written(), " ".join(":".join(one) for one in COLUMNS))
    assert found == [dict(zip([one[0] for one in COLUMNS], row, strict=True)) for row in ROWS]


def test_the_same_rows_are_the_same_bytes():
    rows = [(n, str(n) * 50) for n in range(20_000)]
    columns = [("i", "int"), ("s", "string")]
    assert written(columns, rows) == written(columns, rows, cut=7) == written(columns, rows, cut=19_999)
    assert written(columns, rows)[-16:] != written(columns, rows[1:])[-16:]
    assert read(written(columns, []), "i:int s:string") == []


@pytest.mark.parametrize(("name", "wanted"), [("daily-report", "daily_report"), ("1st", "_1st"), ("", "record")])
def test_the_record_has_the_name_of_the_output(name, wanted):
    assert fastavro.reader(BytesIO(written(name=name))).writer_schema["name"] == wanted


@pytest.mark.parametrize(("columns", "options"), [([("a b", "int")], {}), ([("a.b", "int")], {}), ([("é", "int")], {}), ([("a", "int")], {"codec": "lz4"}), ([("a", "int")], {"namespace": "a..b"})])
def test_what_avro_does_not_have(columns, options):
    with pytest.raises(OptionError) as caught:
        written(columns, [], options)
    assert caught.value.code == "E631"


CELLS = st.tuples(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(st.characters(codec="utf-8")), st.dates(), st.decimals(-(10**20), 10**20, places=2),
    st.datetimes().map(lambda one: one.replace(tzinfo=UTC)),
)  # fmt: skip


@given(st.lists(CELLS, max_size=6), st.sampled_from(CODECS))
@examples(16)
def test_there_and_back(rows, codec):
    columns = [("i", "int"), ("f", "float"), ("s", "string"), ("d", "date"), ("p", "decimal(38,2)"), ("t", "date_time")]
    found = read(written(columns, rows, {"codec": codec}), " ".join(":".join(one) for one in columns))
    assert found == [dict(zip("ifsdpt", row, strict=True)) for row in rows]


def test_every_logical_type_of_the_format_has_a_reader():
    assert {key.partition("-")[2] for key in READERS} >= {"date", "decimal", "uuid", "duration", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"}
