"""JSON reading against the standard library's parser, its shapes, arrays, rejects and errors; JSON writing."""

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage import formats
from storage.formats import DOCUMENT, ERROR, ROW, ArrayPath, Column, InputError, OptionError, ReadPlan, Section
from storage.formats.json.array_bounds import located
from tests.support.examples import examples
from tests.support.reading import records_of
from tests.support.writing import written

SCALAR = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
)
VALUE = st.recursive(
    SCALAR, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)), max_leaves=6
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c d", "é"]), VALUE, max_size=4), max_size=6)


def json_reader(columns, options=None, **plan):
    return formats.reader("json", options or {}, ReadPlan(tuple(Column(*column) for column in columns), **plan))


@given(records=RECORDS, shape=st.sampled_from(["array", "ndjson", "object"]), indent=st.sampled_from([None, 1]))
@examples(200)
def test_any_values_equal_the_standard_library_s(records, shape, indent):
    options = {"format": shape, "record_path": "x.y" if shape == "object" else None}
    text = {
        "array": lambda: json.dumps(records, indent=indent),
        "ndjson": lambda: "\n".join(json.dumps(record, ensure_ascii=indent is None) for record in records),
        "object": lambda: json.dumps({"x": {"y": records}, "z": 1}, indent=indent),
    }[shape]()
    reader = json_reader([("a", "any")], options)
    reader = reader.with_undeclared(reader.undeclared(text.encode(), "f.json"))
    rows = records_of(reader, text.encode())
    assert [row.number for row in rows] == list(range(1, len(records) + 1))
    for row, record in zip(rows, records, strict=True):
        found = {name: json.loads(value) for name, value in row.data.items() if value is not None}
        assert found == {name: value for name, value in record.items() if value is not None or name != "a"}  # an undeclared field may be null
    seen = list(dict.fromkeys(name for record in records for name in record if name != "a"))
    assert [column.name for column in reader.plan.undeclared] == seen


@given(records=RECORDS, target=st.integers(1, 60), blanks=st.lists(st.sampled_from(["", " ", "\t\r", "\r"]), min_size=7, max_size=7), mark=st.sampled_from(["", "\ufeff"]))
@example(records=[{"a": 1}, {"a": 2}], target=1, blanks=[" "] * 7, mark="\ufeff")
@examples(150)
def test_ranges_of_lines_have_the_records_of_the_whole(records, target, blanks, mark):
    lines = [line for record, blank in zip(records, blanks, strict=False) for line in (blank, json.dumps(record))]
    data = (mark + "\n".join(lines)).encode()
    reader = json_reader([("a", "any"), ("b", "string")], {"format": "ndjson"})
    assert records_of(reader, data, target) == records_of(reader, data)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('[{"n": 1}, {"n": 2}]', [1, 2]),
        (' \n [ {"n": 1} ]', [1]),
        ('{"n": 1}\n{"n": 2}\n', [1, 2]),
        ('\ufeff{"n": 1}', [1]),
        ('{\n "n": 1\n}', [1]),
        ("[]", []),
        ("", []),
    ],
)
def test_the_shape_is_seen_from_the_content(text, values):
    assert [row.data["n"] for row in records_of(json_reader([("n", "int")]), text.encode())] == values


TYPED = [
    ("int", [("7", 7), (7, 7), (3.0, 3), (True, 1), ("", None), (None, None)], [3.7, "x", [1], 2**63, {"a": 1}]),
    ("float", [(1, 1.0), ("1e3", 1000.0), (False, 0.0)], ["x", [], {}]),
    ("bool", [(True, True), ("yes", True), (2, True), (0, False)], ["x", 1.0, []]),
    ("string", [("x", "x"), (7, "7"), (1.50, "1.5"), (10.0, "10"), (True, "true"), ([1, "a"], '[1,"a"]'), (None, None)], []),
    ("any", [("x", '"x"'), (7, "7"), (7.0, "7.0"), ({"b": 1, "a": [None]}, '{"b":1,"a":[null]}'), (2**64, "1.8446744073709552e+19")], []),
]


@pytest.mark.parametrize(("declared", "good", "bad"), TYPED)
def test_values_of_declared_types(declared, good, bad):
    data = "\n".join(json.dumps({"v": value}) for value in [*(value for value, _ in good), *bad]).encode()
    rows = records_of(json_reader([("v", declared)], {"format": "ndjson"}), data)
    assert [row.data["v"] for row in rows[: len(good)]] == [expected for _, expected in good]
    assert [row.error is not None for row in rows] == [False] * len(good) + [True] * len(bad)


def test_a_dotted_column_takes_the_value_at_its_path():
    reader = json_reader([("address.city", "string"), ("address.geo.lat", "float")])
    data = b'[{"address": {"city": "Graz", "geo": {"lat": 47}}}, {"address": 1}, {"address.city": "Bern"}]'
    reader = reader.with_undeclared(reader.undeclared(data, "f"))
    assert [list(row.data.values()) for row in records_of(reader, data)] == [["Graz", 47.0, None], [None, None, "1"], ["Bern", None, None]]


PARTLY = (
    '{"id": 1, "m": {"q": 1, "r": 2, "s": {"t": 3}}}', '{"m": {"r": null, "in": {"deep": 4, "other": [5]}}, "m.q": 6}', '{"m": null, "x": {"y": 1}}', '{"id": 2, "m": {"in": 7}}', '{"m": 8}',
)  # fmt: skip


@pytest.mark.parametrize("lines", [PARTLY, PARTLY[:3]])
@pytest.mark.parametrize("form", ["array", "ndjson", "ndjson, line by line"])
def test_members_beside_declared_ones_are_undeclared_fields(lines, form, monkeypatch):
    """Undeclared members are fields. A value in the place of an object is one too."""
    if form == "ndjson, line by line":
        monkeypatch.setattr("storage.formats.json.read.records_with_all_members", lambda *_: None)
    data = (f"[{','.join(lines)}]" if form == "array" else "\n".join(lines)).encode()
    reader = json_reader([("id", "int"), ("m.q", "int"), ("m.in.deep", "int")], {"format": form.partition(",")[0]})
    reader = reader.with_undeclared(reader.undeclared(data, "f"))
    expected = [
        {"id": 1, "m.q": 1, "m.in.deep": None, "m.r": "2", "m.s": '{"t":3}'}, {"id": None, "m.q": 6, "m.in.deep": 4, "m.r": "null", "m.in.other": "[5]"},
        {"id": None, "m.q": None, "m.in.deep": None, "x": '{"y":1}'}, {"id": 2, "m.q": None, "m.in.deep": None, "m.in": "7"}, {"id": None, "m.q": None, "m.in.deep": None, "m": "8"},
    ]  # fmt: skip
    found = [{name: value for name, value in row.data.items() if value is not None or name in ("id", "m.q", "m.in.deep")} for row in records_of(reader, data)]
    assert found == expected[: len(lines)]
    with pytest.raises(InputError, match=r"undeclared field 'm\.r' in record 1"):
        json_reader([("id", "int"), ("m.q", "int")], {"format": form.partition(",")[0]}, on_unmapped="reject").undeclared(data, "f")


ARRAYS = [
    ([("$.items", "explode")], '{"id": 1, "items": [{"s": "a"}, {"s": "b"}]}', [{"id": 1, "s": "a"}, {"id": 1, "s": "b"}]),
    ([("items", "explode")], '{"id": 1, "items": [5, 6]}', [{"id": 1, "items": 5}, {"id": 1, "items": 6}]),
    ([("items", "explode")], '{"id": 1, "items": []}', []),
    ([("items", "explode")], '{"id": 1}', [{"id": 1}]),
    ([("a.b", "explode")], '{"id": 1, "a": {"b": [{"s": 1}], "c": 2}}', [{"id": 1, "a": {"c": 2}, "s": 1}]),
    ([("a.b", "explode")], '{"id": 1, "a": {"b": [{"s": 1}, {"s": 2}]}}', [{"id": 1, "s": 1}, {"id": 1, "s": 2}]),
    ([("a.b.c", "explode")], '{"a": {"b": {"c": [{"s": 1}]}, "d": {}}}', [{"a": {"d": {}}, "s": 1}]),
    ([("tags", "join")], '{"tags": ["x", 1, true, null]}', [{"tags": "x,1,true,"}]),
    ([("i", "explode"), ("t", "join")], '{"i": [1, 2], "t": []}', [{"i": 1, "t": ""}, {"i": 2, "t": ""}]),
]


@pytest.mark.parametrize(("paths", "record", "expected"), ARRAYS)
def test_array_paths(paths, record, expected):
    plan = {"array_paths": tuple(ArrayPath(*path) for path in paths)}
    reader = json_reader([], {"format": "ndjson"}, **plan)
    reader = reader.with_undeclared(reader.undeclared(record.encode(), "f"))
    found = [
        {name: json.loads(value) for name, value in row.data.items() if value is not None} for row in records_of(reader, record.encode())
    ]
    assert found == expected


MISFITS = [
    ('{"id": 1, "items": "none"}', "column 'items': cannot read 'none' as array"),
    ('{"id": 1, "items": {"s": 1}}', """column 'items': cannot read '{"s":1}' as array"""),
    ('{"id": 1, "items": false}', "column 'items': cannot read 'false' as array"),
    ('{"id": 1, "cust": "Bob"}', "column 'cust': cannot read 'Bob' as map"),
    ('{"id": 1, "cust": {"at": 7}}', "column 'cust.at': cannot read '7' as map"),
    ('{"id": 1, "cust": [], "items": null}', "column 'cust': cannot read '[]' as map"),
    ('{"id": 1, "cust": null, "items": null}', None),
    ('{"id": 1, "cust": {"at": null}}', None),
    ('{"id": 1, "cust": "Bob", "cust.name": "a", "cust.at.zip": "b"}', None),
]


@pytest.mark.parametrize("form", ["ndjson", "array"])
@pytest.mark.parametrize(("record", "detail"), MISFITS)
def test_another_value_in_the_place_of_an_array_or_object_rejects_the_record(record, detail, form):
    columns = [("id", "int"), ("cust.name", "string"), ("cust.at.zip", "string")]
    reader = json_reader(columns, {"format": form}, array_paths=(ArrayPath("items"),), on_unmapped="drop")
    (row,) = records_of(reader, (record if form == "ndjson" else f"[{record}]").encode())
    error = None if row.error is None else json.loads(row.error) if isinstance(row.error, str) else row.error
    assert (error and error["category"], error and error["detail"]) == (detail and "type_coercion_failure", detail)
    assert detail is None or error["fields"]["id"] == "1"


@pytest.mark.parametrize(("items", "made"), [('[{"s": 1}]', [(1, 1)]), ("[]", []), ("null", [(1, None)]), ('"oops"', None), ("{}", None)])
def test_elements_of_an_array_that_have_another_one_are_judged_too(items, made):
    data = f'{{"id": 1, "orders": [{{"o": 1, "items": [{{"s": 1}}]}}, {{"o": 2, "items": {items}}}]}}'.encode()
    reader = json_reader([("o", "int"), ("s", "int")], {"format": "ndjson"}, array_paths=(ArrayPath("orders"), ArrayPath("items")), on_unmapped="drop")
    rows = records_of(reader, data)
    if made is None:
        (row,) = rows
        error = json.loads(row.error)
        assert (error["category"], error["detail"].partition(":")[0]) == ("type_coercion_failure", "column 'items'")
        assert json.loads(error["raw"])["id"] == 1
    else:
        assert [(row.data["o"], row.data["s"]) for row in rows] == [(1, 1), *((2, s) for _, s in made)]


ITEMS = st.none() | st.lists(st.fixed_dictionaries({"s": st.integers(0, 9)}, optional={"inner": st.lists(st.fixed_dictionaries({"k": st.integers(0, 3)}), max_size=2)}), max_size=3)


@examples(100)
@given(st.lists(st.fixed_dictionaries({"id": st.integers(0, 9), "note": st.sampled_from(["x", '"items": []', "\\"])}, optional={"items": ITEMS}), max_size=8),
       st.sampled_from(["ndjson", "array"]), st.sampled_from([None, 1]), st.booleans())  # fmt: skip
def test_empty_arrays_are_counted_where_no_record_is_made_of_them(records, shape, indent, escape):
    inner = [one["inner"] for record in records for one in record.get("items") or () if "inner" in one]
    expected = {"items": sum(record.get("items") == [] for record in records), "inner": sum(one == [] for one in inner)}
    data = "\n".join(map(json.dumps, records)) if shape == "ndjson" else json.dumps(records, indent=indent)
    data = (data.replace('"items": [', '"\\u0069tems" : [ ') if escape else data).encode()
    made = json_reader([("id", "int"), ("s", "int"), ("k", "int")], {"format": shape}, array_paths=(ArrayPath("items"), ArrayPath("inner")), on_unmapped="drop")
    remarks = made.left_out(data, "f.json")
    assert remarks == [f"{count:,} empty array{'s' if count > 1 else ''} '{path}', of which no record is made" for path, count in expected.items() if count]


@examples(100)
@given(name=st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="."), min_size=1, max_size=6), escaped=st.booleans(), indent=st.sampled_from([None, 1]))
@example(name='b"', escaped=True, indent=None)
def test_empty_arrays_are_counted_however_their_member_is_spelled(name, escaped, indent):
    spelled = (f"\\u{ord(name[0]):04x}" if escaped else json.dumps(name[0])[1:-1]) + json.dumps(name[1:])[1:-1]
    data = json.dumps([{"id": 1, "THE MEMBER": []}], indent=indent).replace("THE MEMBER", spelled).encode()
    assert json.loads(data) == [{"id": 1, name: []}]
    assert len(json_reader([("id", "int")], array_paths=(ArrayPath(name),), on_unmapped="drop").left_out(data, "f.json")) == 1


@pytest.mark.parametrize("escape", ["\\u00e9", '\\"', "\\\\"])
def test_empty_arrays_are_counted_beside_a_long_text_of_escapes(escape):
    data = f'{{"id": 1, "note": "{escape * 300_000}", "items": [{{"s": 5}}]}}\n{{"id": 2, "items": []}}\n'.encode()
    made = json_reader([("id", "int"), ("s", "int")], {"format": "ndjson"}, array_paths=(ArrayPath("items"),), on_unmapped="drop")
    began = time.monotonic()
    assert made.left_out(data, "f.json") == ["1 empty array 'items', of which no record is made"]
    assert time.monotonic() - began < 30  # a search that takes quadratic time needs minutes


def test_what_is_not_exploded_is_not_counted():
    plain, joined = json_reader([("id", "int")]), json_reader([("id", "int")], array_paths=(ArrayPath("items", "join"),))
    assert not plain.tells
    assert not joined.tells
    assert json_reader([("id", "int")], array_paths=(ArrayPath("items"),)).tells


def test_under_ndjson_the_record_path_leads_to_the_records_of_each_line():
    reader = json_reader([("n", "int")], {"format": "ndjson", "record_path": "$.d.r"})
    data = b'{"d": {"r": [{"n": 1}, {"n": 2, "m": 0}]}}\n{"d": {"r": []}}\n{"d": []}\n{"d": {"r": [7, {"n": 3}]}}\n{\n'
    assert [column.name for column in reader.undeclared(data, "f")] == ["m"]
    for target in (None, 10):
        rows = records_of(reader, data, target)
        assert [(row.number, row.data["n"]) for row in rows] == [(1, 1), (2, 2), (3, None), (4, None), (5, 3), (6, None)]
        assert [json.loads(row.error)["raw"] for row in rows if row.error] == ['{"d":[]}', "7", "{"]


def test_an_array_has_nothing_at_a_path_of_keys():
    with pytest.raises(InputError, match="f: the document is an array, in which record_path 'd' leads nowhere"):
        records_of(json_reader([], {"record_path": "d"}), b'[{"d": [{"n": 1}]}]', name="f")


def test_bad_lines_are_rejects_with_their_text():
    rows = records_of(json_reader([("n", "int")], {"format": "ndjson"}), b'{"n": 1}\n{"n": }\r\n[1]\n\n{"n": "x", "m": 2}\n')
    assert [row.number for row in rows] == [1, 2, 3, 4]
    errors = [json.loads(row.error) for row in rows[1:]]
    assert [(error["category"], error["raw"]) for error in errors] == [
        ("malformed_record", '{"n": }'), ("malformed_record", "[1]"), ("type_coercion_failure", None),
    ]  # fmt: skip
    assert errors[2]["fields"] == {"n": "x"}
    assert errors[1]["detail"] == "not a JSON object"


ERRORS = [
    ({"format": "array"}, b"{}", "f: the document is no array, as format 'array' has it"),
    ({"format": "array"}, b"", "f: the file is empty where a JSON document is expected"),
    ({"format": "object", "record_path": "a"}, b"[]", "f: the document is no object, as format 'object' or record_path have it"),
    ({"record_path": "$.a.b"}, b'{"a": {"b": 1}}', "f: record_path '$.a.b' leads to no array"),
    ({"format": "ndjson"}, b'{"a": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "f: line 1: nested deeper than 1000 levels"),
    ({"format": "array"}, b"[" * 20_000, "f: nested deeper than 1000 levels"),
]


@pytest.mark.parametrize(("options", "data", "message"), ERRORS)
def test_a_broken_document_is_an_input_error(options, data, message):
    with pytest.raises(InputError) as caught:
        records_of(json_reader([("a", "any")], options), data, name="f")
    assert str(caught.value) == message


def test_a_broken_array_names_its_line():
    with pytest.raises(InputError, match=r"^f: line 2: not valid JSON: "):
        records_of(json_reader([("a", "any")]), b'[{"a": 1},\n{"a" 2}]', name="f")


NOT_UTF_8 = [
    ({}, b'[{"a": 1},\n {"a": "\xff"}]', "f: byte 19: not valid UTF-8, as JSON is: invalid start byte"),
    ({"record_path": "d"}, b'{"d": [{"a": 1}], "e": "caf\xe9"}', "f: byte 27: not valid UTF-8, as JSON is: invalid continuation byte"),
    ({"format": "object"}, b'\n{"a": "\xff"}', "f: byte 8: not valid UTF-8, as JSON is: invalid start byte"),
]


@pytest.mark.parametrize(("options", "data", "message"), NOT_UTF_8)
def test_a_bad_byte_of_a_document_is_reported_with_its_place(options, data, message):
    with pytest.raises(InputError) as caught:
        records_of(json_reader([("a", "any")], options), data, name="f")
    assert str(caught.value) == message


def test_a_bad_byte_of_a_line_is_reported_with_its_place_in_it():
    rows = records_of(json_reader([("a", "any")], {"format": "ndjson"}), b'{"a": 1}\n{"a": "\xff"}\n')
    assert json.loads(rows[1].error)["detail"] == "not valid JSON: not UTF-8: invalid start byte, byte 7 of the line"


def test_deep_but_allowed_nesting_is_read():
    deep = "[" * 600 + "]" * 600
    (row,) = records_of(json_reader([("a", "any")], {"format": "ndjson"}), b'{"a": ' + deep.encode() + b"}")
    assert row.data["a"] == deep


def test_reject_names_the_first_undeclared_member():
    reader = json_reader([("a",)], {"format": "ndjson"}, on_unmapped="reject")
    with pytest.raises(InputError, match="undeclared field 'b' in record 2"):
        reader.undeclared(b'{"a": 1}\n{"b": 1}', "f")


def section(pointer, kind="json_pointer", **fields):
    return Section("head", kind, pointer, tuple(Column(name, declared) for name, declared in fields.items()))


def test_envelope_sections():
    data = b'{"h/1": {"id": "7", "day": "2024-01-05", "none": ""}, "r": []}'
    reader = json_reader([], {"record_path": "r"}, sections=(section("/h~11", id="int", day="date", none="int", gone="int"),))
    found = reader.envelope(data, "f")["head"]
    assert (found["id"], str(found["day"]), found["none"], found["gone"]) == (7, "2024-01-05", None, None)
    assert json_reader([], sections=(section("/nowhere", a="int"),)).envelope(data, "f") == {}
    with pytest.raises(InputError, match=r"f: envelope section 'head', field 'id': cannot read 'x' as int"):
        json_reader([], sections=(section("/h", id="int"),)).envelope(b'{"h": {"id": "x"}}', "f")
    with pytest.raises(OptionError, match="a JSON source takes json_pointer, not xml_path"):
        json_reader([], sections=(section("/h", "xml_path"),))


def test_the_document_column():
    data = b'{"h": {"id": 7}, "r": [{"a": 1}]}'
    reader = json_reader([("a", "int")], {"record_path": "r"}, sections=(section("/h", id="int"),), document=True)
    (batch,) = reader.read(data, "f")
    assert batch.schema.equals(reader.schema())
    assert batch.to_pylist() == [{"a": 1, ROW: 1, ERROR: None, DOCUMENT: '{"head":{"id":7}}'}]


@given(
    rows=st.lists(
        st.tuples(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), st.floats(), st.text(max_size=5), st.booleans()), max_size=5
    ),
    shape=st.sampled_from(["array", "ndjson"]),
    pretty=st.booleans(),
    preserve=st.booleans(),
)
@examples(150)
def test_written_json_is_what_the_standard_library_reads(rows, shape, pretty, preserve):
    columns = [("i", "int"), ("f", "float"), ("s", "string"), ("b", "bool")]
    text = written("json", columns, rows, {"format": shape, "pretty": pretty}, preserve_nulls=preserve)
    found = json.loads(text) if shape == "array" else [json.loads(line) for line in text.split("\n") if line]
    found = [{**record, "f": float(record["f"]) if isinstance(record["f"], int) else record["f"]} for record in found]
    null = None if preserve else ""
    finite = [value if value == value and abs(value) != float("inf") else None for _, value, _, _ in rows]  # noqa: PLR0124
    expected = [{"i": null if i is None else i, "f": f, "s": s, "b": b} for (i, _, s, b), f in zip(rows, finite, strict=True)]
    assert found == expected


def test_layout_of_written_json():
    columns = [("a", "int"), ("f", "float"), ("j", "any")]
    assert written("json", columns, []) == "[\n]\n"
    assert written("json", columns, [(1, 10.0, '{"x":[1]}'), (None, 1e21, None)]) == (
        '[\n{"a":1,"f":10,"j":{"x":[1]}},\n{"a":"","f":1000000000000000000000,"j":""}\n]\n'
    )
    assert written("json", columns[:1], [(1,), (2,)], {"format": "ndjson"}) == '{"a":1}\n{"a":2}\n'
    assert written("json", columns[:1], [(1,)], {"pretty": True}) == '[\n{\n  "a": 1\n}\n]\n'


@pytest.mark.parametrize(
    ("options", "form", "around"),
    [({"format": "ndjson"}, '{{"a": {}}}', 1), ({"format": "array"}, '[{{"a": {}}}, {{"a": "[[[["}}]', 2), ({"format": "object"}, '{{"a": {}}}', 1), ({"record_path": "x"}, '{{"x": [{{"a": {}}}]}}', 3)],
)
def test_a_thousand_levels_are_read_and_no_more(options, form, around):
    """As in XML, the document itself is the first level."""
    deep, deeper = (form.format("[" * levels + "]" * levels).encode() for levels in (1000 - around, 1001 - around))
    assert records_of(json_reader([("a", "any")], options), deep, name="f")
    with pytest.raises(InputError, match="nested deeper than 1000 levels"):
        records_of(json_reader([("a", "any")], options), deeper, name="f")


@pytest.mark.parametrize("target", [None, 50])
def test_the_line_of_a_deep_value_counts_from_the_beginning_of_the_file(target):
    data = b'{"a": 1}\n' * 20 + b'{"a": ' + b"[" * 2000
    with pytest.raises(InputError, match="f: line 21: nested deeper than 1000 levels"):
        records_of(json_reader([("a", "any")], {"format": "ndjson"}), data, target, name="f")


@pytest.mark.parametrize("on_unmapped", ["drop", "reject"])
def test_the_search_for_members_reports_the_line_of_a_deep_value_too(monkeypatch, on_unmapped):
    monkeypatch.setattr("storage.formats.json.read.LINES", 50)
    data = b'{"a": 1}\n' * 20 + b'{"a": ' + b"[" * 2000
    with pytest.raises(InputError, match="f: line 21: nested deeper than 1000 levels"):
        json_reader([("a", "any"), ("absent", "any", False, True)], {"format": "ndjson"}, on_unmapped=on_unmapped).undeclared(data, "f")


# Documents in pieces
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text('ab"\\[]{}:, \né', max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text('a"\\:{', max_size=3), inner, max_size=3)),
    max_leaves=6,
)
RECORD = st.dictionaries(st.sampled_from(["a", "b", 'c"', "\\d"]), VALUE, max_size=3)


@given(
    records=st.lists(st.one_of(RECORD, VALUE), max_size=8),
    around=st.dictionaries(st.sampled_from(["x", "data", 'q"', "é"]), VALUE, max_size=3),
    path=st.sampled_from([(), ("r",), ("p", "r"), ("p", "é", "r")]),
    indent=st.sampled_from([None, 2]),
    target=st.integers(1, 60),
    block=st.integers(1, 40),
    escape=st.booleans(),
)
@examples(300)
def test_an_array_in_pieces_has_the_records_of_the_whole(*, records, around, path, indent, target, block, escape):
    document = records
    for step in reversed(path):
        document = {**around, step: document, "z": around}
    data = json.dumps(document, indent=indent, ensure_ascii=escape).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.formats.json.array_bounds._BLOCK", block)
        found = located(data, path, target, "f")
        reader = json_reader([("a", "any")], {"record_path": ".".join(path)} if path else {"format": "array"}, on_unmapped="drop")
        whole, cut = records_of(reader, data), records_of(reader, data, target)
    assert json.loads(found.skeleton(data)) == json.loads(json.dumps(document).replace(json.dumps(records), "[]", 1)) or not records
    assert [value for piece in found.pieces for value in json.loads(b"[" + data[piece.start : piece.end] + b"]")] == records
    assert [(row.number, row.data, row.error) for row in cut] == [(row.number, row.data, row.error) for row in whole]
    assert len(whole) == len(records)


def test_of_keys_that_come_twice_the_last_counts():
    reader = json_reader([("a", "int")], {"record_path": "r", "duplicate_keys": "last"})
    assert [row.data for row in records_of(reader, b'{"r": [{"a": 1}], "r": [{"a": 2}, {"a": 3}]}')] == [{"a": 2}, {"a": 3}]


@pytest.mark.parametrize("text", ["[1,]", "[,1]", '[{"a":1},,{"a":2}]', '[{"a":1]}', '[{"a":1}] x', '[{"a":1}', '[{"a":"x]}', "[1 2]", '["\\"]'])
@pytest.mark.parametrize("target", [1, 5, 1000])
def test_what_is_no_json_is_none_in_pieces_either(text, target):
    with pytest.raises(InputError, match="not valid JSON"):
        records_of(json_reader([("a", "any")], {"format": "array"}), text.encode(), target)


def test_a_range_has_the_sections_of_its_document():
    data = b'{"h": {"id": 7}, "r": [{"a": 1}, {"a": 2}]}'
    reader = json_reader([("a", "int")], {"record_path": "r"}, sections=(section("/h", id="int"),), document=True)
    rows = [row for part in reader.split(data, "f", 1) for batch in reader.read(data[part.start : part.end], "f", part) for row in batch.to_pylist()]
    assert [(row["a"], row[ROW], row[DOCUMENT]) for row in rows] == [(1, 1, '{"head":{"id":7}}'), (2, 2, '{"head":{"id":7}}')]


def test_lines_are_no_document_with_sections():
    reader = json_reader([], {"format": "ndjson"}, sections=(section("/h", id="int"),))
    assert reader.envelope(b'{"h": {"id": 7}}\n{"h": {"id": 8}}\n', "f") == {}


def test_values_of_another_kind_than_array_or_map_are_rejects():
    reader = formats.reader("json", {}, ReadPlan((Column("a", "array"), Column("m", "map"))))
    rows = records_of(reader, b'[{"a":[1],"m":{"k":[]}},{"a":null},{"a":"[2]","m":"{}"},{"a":"x"},{"a":{}},{"m":[1]},{"m":3}]')
    assert [(row.data["a"], row.data["m"], row.error is None) for row in rows] == [
        ("[1]", '{"k":[]}', True), (None, None, True), ("[2]", "{}", True), *[(None, None, False)] * 4,
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["data.rows", "$.data.rows", "$.data.rows[*]"])
def test_a_path_is_written_with_or_without_the_marks_of_jsonpath(path):
    reader = formats.reader("json", {"record_path": path}, ReadPlan((Column("a", "int"),)))
    assert [row.data for row in records_of(reader, b'{"data":{"rows":[{"a":1},{"a":2}]}}')] == [{"a": 1}, {"a": 2}]
