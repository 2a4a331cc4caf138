"""Nested values in files: maps in XML, dotted names in JSON and XML, what flat formats refuse."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.files.errors import OutputError
from storage.formats import Column, WritePlan
from storage.formats.nested_names import clash, steps_of
from tests.support.writing import written

# the value of a column m, as JSON | its element, or the words of the error
MAPS = r"""
{}                                             | <m/>
null                                           | <m/>
{"a":null,"b":{},"c":"","d":[]}                | <m><a/><b/><c/></m>
{"@k":"v\"<","city":"LA & NY"}                 | <m k="v&quot;&lt;"><city>LA &amp; NY</city></m>
{"@k":1.5,"@gone":null,"#text":9.5}            | <m k="1.5">9.5</m>
{"a":[1,null,{"b":[true,2.0]},"x"]}            | <m><a>1</a><a/><a><b>true</b><b>2</b></a><a>x</a></m>
{"a":1e21,"b":1e999,"c":9007199254740993}      | <m><a>1000000000000000000000</a><b>inf</b><c>9007199254740993</c></m>
{"a":{"@x":1,"#text":"t","y":{"z":null}}}      | <m><a x="1">t<y><z/></y></a></m>
[1,{"a":2}]                                    | <m>[1,{"a":2}]</m>
"text"                                         | <m>text</m>
{"a":[[1]]}                                    | ! an array directly in an array ('a')
{"a b":1}                                      | ! 'a b' is no name of an XML element
{"@a b":1}                                     | ! 'a b' is no name of an XML element
{"":1}                                         | ! '' is no name of an XML element
{"@a":{"b":1}}                                 | ! holds a map as '@a', which is a text
{"#text":[1]}                                  | ! holds an array as '#text', which is a text
{"a":"\u0001"}                                 | ! the character U+0001
"""


@pytest.mark.parametrize("line", MAPS.strip().splitlines())
@pytest.mark.parametrize("type_", ["any", "map"])
def test_a_map_is_an_element_with_its_members(line, type_):
    value, _, expected = (part.strip() for part in line.partition(" | "))
    cell = None if value == "null" else value
    if expected.startswith("!"):
        with pytest.raises(OutputError) as caught:
            written("xml", [("m", type_)], [(cell,)])
        assert expected.removeprefix("! ") in str(caught.value)
    else:
        assert f"<Record>{expected}</Record>" in written("xml", [("m", type_)], [(cell,)])


@pytest.mark.parametrize("levels", [300, 900])
def test_maps_may_be_as_deep_as_files(levels):
    text = written("xml", [("m", "map")], [('{"a":' * levels + "1" + "}" * levels,)])
    assert text.count("<a>") == levels


def test_a_map_that_is_deeper_is_an_error():
    with pytest.raises(OutputError, match="too deep"):
        written("xml", [("m", "map")], [('{"a":' * 5_000 + "1" + "}" * 5_000,)])


def test_maps_and_other_values_of_a_column_are_beside_each_other():
    text = written("xml", [("m", "any", True), ("n.@k",)], [('{"a":1}', "x"), (None, None), ("2", "y"), ("null", "z"), ("{}", None)])
    assert text.splitlines()[2:-1] == [
        '<Record><m><a>1</a></m><n k="x"/></Record>', "<Record><n/></Record>", '<Record><m>2</m><n k="y"/></Record>', '<Record><m/><n k="z"/></Record>', "<Record><m/><n/></Record>",
    ]  # fmt: skip


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=4)
members = st.sampled_from(["a", "b", "c.d", "é", "_"])
values = st.recursive(scalars, lambda inner: st.dictionaries(members, inner | st.lists(inner.filter(lambda one: not isinstance(one, list)), max_size=3), max_size=3), max_leaves=8)


@given(st.dictionaries(members, values, max_size=3))
def test_written_maps_are_well_formed_and_have_all_members(value):
    text = written("xml", [("m", "map")], [(json.dumps(value),)])
    assert element_of(value) == tree_of(ET.fromstring(text.encode())[0][0])  # noqa: S314 - the text is our own


def element_of(value):
    """The text and the children of the element of a value, by the words of the documents."""
    if not isinstance(value, dict):
        return ("" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)).replace("\r\n", "\n"), []
    return "", [(name, element_of(one)) for name, member in value.items() for one in (member if isinstance(member, list) else [member])]


def tree_of(element):
    return element.text or "", [(child.tag, tree_of(child)) for child in element]


# Dotted names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("a", ["a"]), ("a.b.c", ["a", "b", "c"]), (r"a\.b", ["a.b"]), (r"a\\.b", ["a\\", "b"]), (r"a\\\.b", ["a\\.b"]), (r"a\b", ["a\\b"]), ("a\\", ["a\\"]),
        ("", [""]), (".", ["", ""]), ("a.", ["a", ""]), ("é.@k", ["é", "@k"]),
    ],
)  # fmt: skip
def test_names_are_taken_apart_at_their_points(name, steps):
    assert steps_of(name) == tuple(steps)


@given(st.lists(st.text("ab.\\", max_size=4), min_size=1, max_size=4))
def test_a_name_with_its_signs_escaped_is_one_step(parts):
    escaped = [part.replace("\\", "\\\\").replace(".", "\\.") for part in parts]
    assert steps_of(".".join(escaped)) == tuple(parts)


# columns | object, or the two names that clash
NESTED = r"""
id ship.city total ship.zip    | {"id":1,"ship":{"city":2,"zip":4},"total":3}
a\.b a.c                       | {"a.b":1,"a":{"c":2}}
a.b.c a.b.d a.e                | {"a":{"b":{"c":1,"d":2},"e":3}}
a a\.b                         | {"a":1,"a.b":2}
a a.b                          | ! a, a.b
a.b a                          | ! a.b, a
x.y.z x.y                      | ! x.y.z, x.y
x\.y x.z x\\.y                 | {"x.y":1,"x":{"z":2},"x\\":{"y":3}}
x\y x\\y                       | ! x\y, x\\y
a.@k a                         | ! a.@k, a
"""


@pytest.mark.parametrize("line", NESTED.strip().splitlines())
def test_dotted_names_of_json_nest_when_asked(line):
    names, _, expected = line.partition("|")
    columns = [(name, "int") for name in names.split()]
    row = tuple(range(1, len(columns) + 1))
    flat = written("json", columns, [row], {"format": "ndjson"})
    assert json.loads(flat) == dict(zip(names.split(), row, strict=True))
    if expected.strip().startswith("!"):
        assert clash(names.split()) == tuple(expected.strip(" !").split(", "))
    else:
        assert clash(names.split()) is None
        assert written("json", columns, [row], {"format": "ndjson", "nested": True}) == expected.strip() + "\n"


def test_an_object_without_members_is_left_out_and_nulls_follow_preserve_nulls():
    columns = [("a.b", "any", True), ("a.c", "any", True), ("n", "int")]
    rows = [("1", None, 1), (None, None, None), ("null", "2", 3)]
    options = {"format": "ndjson", "nested": True}
    assert written("json", columns, rows, options).splitlines() == ['{"a":{"b":1},"n":1}', '{"n":""}', '{"a":{"b":"","c":2},"n":3}']
    assert written("json", columns, rows, options, preserve_nulls=True).splitlines()[1:] == ['{"n":null}', '{"a":{"b":null,"c":2},"n":3}']
    assert json.loads(written("json", columns, rows, {"nested": True, "pretty": True})) == [json.loads(line) for line in written("json", columns, rows, options).splitlines()]


def test_names_of_xml_nest_unless_told_otherwise():
    columns = [("a.b",), (r"a\.b",), ("@k",), ("a.@x",)]
    assert '<Record k="3"><a x="4"><b>1</b></a><a.b>2</a.b></Record>' in written("xml", columns, [("1", "2", "3", "4")])
    assert '<Record k="2"><a.b>1</a.b></Record>' in written("xml", [("a.b",), ("@k",)], [("1", "2")], {"nested": False})
    assert clash(["a", "a.@x"], attributes=True) is None
    assert clash(["a.@x", "a"], attributes=True) is None
    assert clash(["a", "a.b.@x"], attributes=True) == ("a", "a.b.@x")
    assert clash(["@x", r"@x"], attributes=True) == ("@x", "@x")


EDI = {"interchange": ["A", "B", "C", "D", "E"], "message_type": "M"}
LAYOUT = {"fields": [{"name": "v", "width": 9}]}


@pytest.mark.parametrize(
    ("form", "options", "plan", "refused"),
    [
        ("csv", {}, {}, {"map"}), ("json", {}, {}, set()), ("xml", {}, {}, set()), ("parquet", {}, {}, set()), ("edifact", EDI, {}, {"map", "array"}),
        ("fixed_width", {}, {"layout": LAYOUT}, {"map"}), ("fixed_width", {}, {"layout": {"fields": [{"name": "w", "width": 9}]}}, set()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("type_", ["map", "nullable(map)", "array", "any", "string"])
def test_flat_formats_refuse_nested_types(form, options, plan, refused, type_):
    writer = formats.writer(form, options, WritePlan((Column("a", "int"), Column("v", type_)), **plan))
    unfit = writer.unfit()
    assert (None if unfit is None else unfit.name) == ("v" if type_.removeprefix("nullable(").rstrip(")") in refused else None)
