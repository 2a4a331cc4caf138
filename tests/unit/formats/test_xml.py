"""XML reading against ElementTree, paths, names, arrays, hostile input; XML writing that any parser reads back."""

import copy
import json
import math
import time
from xml.etree import ElementTree as ET
from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import DOCUMENT, ROW, ArrayPath, Column, InputError, OptionError, OutputError, ReadPlan, Section
from storage.formats.xml.collector import Collector
from storage.formats.xml.parser import Scan
from tests.support.examples import examples
from tests.support.reading import records_of
from tests.support.writing import written

TEXT = st.text(
    alphabet=st.one_of(st.sampled_from("<>&\"' \n\tab]"), st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Cn"])),
    max_size=6,
)
TAG = st.sampled_from(["a", "b", "c", "ü"])


def xml_reader(columns, path="//r", arrays=(), **plan):
    options = plan.pop("options", {})
    full = {"array_paths": tuple(ArrayPath(*array) for array in arrays), **plan}
    return formats.reader("xml", {"record_path": path, **options}, ReadPlan(tuple(Column(*column) for column in columns), **full))


def everything(text, path="//r", arrays=(), **plan):
    """The records with all fields that are not null."""
    reader = xml_reader([], path, arrays, **plan)
    data = text.encode()
    reader = reader.with_undeclared(reader.undeclared(data, "f.xml"))
    return [{name: value for name, value in row.data.items() if value is not None} for row in records_of(reader, data)]


def element(tag, text, attributes, children):
    made = ET.Element(tag, attributes)
    made.text = None if children else text
    made.extend(children)
    return made


ELEMENT = st.recursive(
    st.builds(element, TAG, TEXT, st.dictionaries(TAG, TEXT, max_size=2), st.just([])),
    lambda inner: st.builds(element, TAG, TEXT, st.dictionaries(TAG, TEXT, max_size=2), st.lists(inner, max_size=3)),
    max_leaves=6,
)


def has_repeated(node):
    """Whether a child repeats, here or below."""
    tags = [child.tag for child in node]
    return len(set(tags)) < len(tags) or any(map(has_repeated, node))


def flattened(node, before=""):
    """The fields of an element by the documented names; none for a record that is rejected because a child repeats."""
    if not before and has_repeated(node):
        return {}
    found = {f"{before}@{name}": value for name, value in node.attrib.items()}
    for child in node:
        found |= flattened(child, f"{before}{child.tag}.")
        text = (child.text or "").strip()
        if text and not len(child):
            found[f"{before}{child.tag}"] = text
    return found


@given(records=st.lists(st.lists(ELEMENT, max_size=4), max_size=4))
@examples(200)
def test_records_equal_the_standard_library_s(records):
    root = ET.Element("rs")
    for children in records:
        ET.SubElement(root, "r").extend(children)
    text = ET.tostring(root, encoding="unicode")
    parsed = ET.fromstring(text)  # noqa: S314 - the text is our own
    assert everything(text) == [flattened(record) for record in parsed]


def filled(shape, texts, tail):
    """A record of a given shape, with other text in its elements."""
    record = ET.Element("r")
    record.extend(copy.deepcopy(child) for child in shape)
    record.tail = tail
    left = iter(texts * 20)
    for element_ in record.iter():
        element_.text = next(left) if element_.text else element_.text
        element_.attrib.update({name: next(left) for name in element_.attrib})
    return record


ALIKE = st.lists(st.tuples(st.integers(0, 2), st.lists(TEXT, min_size=3, max_size=3), st.sampled_from([None, "\n", " \t"])), max_size=12)


@given(shapes=st.lists(st.lists(ELEMENT, max_size=4), min_size=3, max_size=3), records=ALIKE, target=st.integers(40, 400))
@examples(200)
def test_records_that_look_alike_equal_the_standard_library_s_whole_and_in_parts(shapes, records, target):
    root = ET.Element("x")
    groups = [ET.SubElement(root, "rs"), ET.SubElement(root, "rs")]
    for at, (shape, texts, tail) in enumerate(records):
        groups[2 * at // len(records)].append(filled(shapes[shape], texts, tail))
    text = ET.tostring(root, encoding="unicode")
    parsed = [flattened(record) for group in ET.fromstring(text) for record in group]  # noqa: S314
    assert everything(text, "/x/rs/r") == parsed
    data = text.encode()
    reader = xml_reader([], "/x/rs/r")
    reader = reader.with_undeclared(reader.undeclared(data, "f.xml"))
    rows = records_of(reader, data, target)
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [{name: value for name, value in row.data.items() if value is not None} for row in rows] == parsed


ROWS = "".join(f"<r k='{row}'><n>{row}</n><t> text {row} </t></r>\n" for row in range(2000))


def test_a_run_is_read_by_its_form_and_the_rest_by_expat(monkeypatch):
    seen = []
    start = Collector.start
    monkeypatch.setattr(Collector, "start", lambda self, tag, attributes: (seen.append(tag), start(self, tag, attributes))[1])
    text = f"<x>{ROWS}<r><n>&lt;</n></r>{ROWS}<r><t>1</t><n>2</n></r>{ROWS}</x>"
    rows = everything(text, "/x/r")
    assert len(rows) == 6002
    assert rows[:2] == [{"@k": "0", "n": "0", "t": "text 0"}, {"@k": "1", "n": "1", "t": "text 1"}]
    assert (rows[2000], rows[4001]) == ({"n": "<"}, {"t": "1", "n": "2"})
    assert len(seen) < 1000  # two passes over the first block and three records of their own


BROKEN_BEHIND = ["<r><n>1</r>", "<r><n>]]></n></r>", "<r><n>\x01</n></r>", "<r><n>\ufffe</n></r>", "<r><n>&a;</n></r>", "<r><n>1</n></r></x>", "<r k='1' k='2'/>", "<r>"]


@pytest.mark.parametrize("text", BROKEN_BEHIND)
@pytest.mark.parametrize("before", [ROWS, ROWS.replace("\n", "")])
def test_an_error_after_a_run_is_reported_as_by_expat(before, text):
    data = f"<x>{before}{text}</x>".encode()
    with pytest.raises(expat.ExpatError) as wrong:
        expat.ParserCreate().Parse(data, True)
    with pytest.raises(InputError) as caught:
        records_of(xml_reader([]), data, name="f.xml")
    reason = expat.ErrorString(wrong.value.code)
    assert str(caught.value) == f"f.xml: line {wrong.value.lineno}: not well-formed XML: {reason}, column {wrong.value.offset + 1}"


def test_a_run_that_is_no_utf_8_is_reported_with_its_place():
    data = f"<x>{ROWS}<r><n>1</n></r>".encode() + b"<r><n>\xff</n></r></x>"
    for reader in (xml_reader([]), xml_reader([("n",)])):
        message = r"f\.xml: line 2001: not well-formed XML: not well-formed \(invalid token\), column 22; text that is not UTF-8 needs an XML declaration that names its encoding"
        with pytest.raises(InputError, match=message):
            records_of(reader, data, name="f.xml")


def test_ranges_of_a_document_keep_its_envelope_and_numbers():
    section = Section("Head", "xml_path", "/x/h", (Column("b"),))
    reader = xml_reader([("n", "int")], "/x/g/r", sections=(section,), document=True)
    data = f"<x><h><b>B-1</b></h><g>{ROWS}</g><other/><g>{ROWS}</g></x>".encode()
    parts = reader.split(data, "f.xml", 20_000)
    assert len(parts) > 5
    batches = [batch for part in parts for batch in reader.read(data[part.start : part.end], "f.xml", part)]
    assert [row for batch in batches for row in batch[ROW].to_pylist()] == list(range(1, 4001))
    assert [row for batch in batches for row in batch["n"].to_pylist()] == [*range(2000)] * 2
    assert {row for batch in batches for row in batch[DOCUMENT].to_pylist()} == {'{"Head":{"b":"B-1"}}'}


@pytest.mark.parametrize("plan", [{"path": None}, {"arrays": [("l", "explode")]}])
def test_one_range_where_the_number_of_records_is_not_that_of_elements(plan):
    assert len(xml_reader([("n",)], **plan).split(f"<x>{ROWS}</x>".encode(), "f.xml", 1000)) == 1


NESTED = "<x><s><r><n>1</n></r><g><r><n>2</n></r></g></s><r><n>3</n></r><s><q/><r><n>4</n></r></s></x>"


@pytest.mark.parametrize(
    ("path", "found"),
    [("//r", "1234"), ("/x/s/r", "14"), ("x/s/r", "14"), ("//g/r", "2"), ("/x/r", "3"), ("/r", ""), ("//s/g", ""), ("/x/s", "")],
)
def test_record_paths(path, found):
    assert "".join(record.get("n", "") for record in everything(NESTED, path)) == found


def test_without_a_path_the_root_is_the_record():
    assert everything('<a k="1"><b>x</b></a>', None) == [{"@k": "1", "b": "x"}]


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("<![CDATA[ a ]]>", " a "), ("  <![CDATA[ a ]]>\n", " a "), (" x <![CDATA[ ]]>", "x  "), ("<![CDATA[ ]]> y ", "  y"), ("<![CDATA[ ]]> <![CDATA[b]]>", "  b"),
        ("<![CDATA[]]>", None), (" <![CDATA[]]> ", None), ("<![CDATA[ <b> & ]]>", " <b> & "), (" a ", "a"),
    ],
)  # fmt: skip
def test_text_is_stripped_but_not_that_of_cdata_sections(inside, value):
    """Text is stripped of surrounding white space; CDATA is literal."""
    before = "<r><a> 1 </a></r>" * 3
    found = everything(f"<x>{before}<r><a>{inside}</a></r><r><a> 2</a></r></x>")
    assert found == [{"a": "1"}] * 3 + [{} if value is None else {"a": value}, {"a": "2"}]


def test_names_of_namespaces():
    text = '<o:x xmlns:o="u"><o:r o:k="1"><o:n>2</o:n></o:r></o:x>'
    assert everything(text) == [{"@k": "1", "n": "2"}]
    assert everything(text, "//o:r", options={"namespace_handling": "qualify"}) == [{"@o:k": "1", "o:n": "2"}]
    assert everything(text, options={"attribute_prefix": "_"}) == [{"_k": "1", "n": "2"}]


def test_declared_types_decide_and_bad_cells_are_rejects():
    text = b"<x><r><z>007</z><n> 7 </n></r><r><z/><n>x</n></r><r><z><![CDATA[ ]]></z><n><![CDATA[\n 3 ]]></n></r><r><n><![CDATA[ ]]></n></r></x>"
    rows = records_of(xml_reader([("z", "string"), ("n", "int")]), text)
    assert [list(row.data.values()) for row in rows] == [["007", 7], [None, None], [" ", 3], [None, None]]
    assert [row.error is None for row in rows] == [True, False, True, True]
    assert json.loads(rows[1].error)["detail"] == "column 'n': cannot read 'x' as int"


ARRAYS = [
    ([("$.l", "explode")], "<k>1</k><l><a>x</a></l><l><a>y</a><b>z</b></l>", [{"k": "1", "a": "x"}, {"k": "1", "a": "y", "b": "z"}]),
    ([("l", "explode")], "<k>1</k><l>x</l><l>y</l>", [{"k": "1", "l": "x"}, {"k": "1", "l": "y"}]),
    ([("l", "explode")], "<k>1</k>", [{"k": "1"}]),
    ([("g.l", "explode")], '<g><l i="1"><a>x</a></l><m>2</m></g>', [{"g.m": "2", "@i": "1", "a": "x"}]),
    ([("l", "join", "|")], "<l><![CDATA[ x]]></l><l> y </l>", [{"l": " x|y"}]),
    ([("l", "join", "|")], "<l>x</l><k>1</k><l>y</l>", [{"l": "x|y", "k": "1"}]),
]


@pytest.mark.parametrize(("arrays", "inside", "expected"), ARRAYS)
def test_array_paths(arrays, inside, expected):
    assert everything(f"<x><r>{inside}</r></x>", arrays=arrays) == expected


@pytest.mark.parametrize("path", ["//rate", "/x/rate"])
def test_the_text_of_a_record_itself_is_the_declared_column_of_its_name(path):
    text = '<x><rate currency="USD"> 1.1 </rate><rate currency="JPY">170</rate><rate/><rate>beside<rate>3</rate></rate></x>'
    reader = xml_reader([("@currency",), ("rate", "float")], path)
    assert [row.data for row in records_of(reader, text.encode())] == [
        {"@currency": "USD", "rate": 1.1}, {"@currency": "JPY", "rate": 170.0}, {"@currency": None, "rate": None}, {"@currency": None, "rate": 3.0},
    ]  # fmt: skip
    assert reader.undeclared(text.encode(), "f") == ()
    assert everything(text, path)[:2] == [{"@currency": "USD"}, {"@currency": "JPY"}]


def test_a_record_with_repeated_children_is_a_reject_with_its_text():
    text = b"<x><r><k>1</k><l>a</l><l><m/></l></r>\n<r><k>2</k><l>b</l></r><r><g><h/><h/></g></r></x>"
    rows = records_of(xml_reader([("k", "int"), ("l",)]), text)
    assert [row.data["k"] for row in rows] == [None, 2, None]
    first, _, last = (json.loads(row.error) if row.error else None for row in rows)
    advice = "comes more than once: name it in array_paths, or declare a column"
    assert (first["category"], first["detail"]) == ("malformed_record", f"element 'l' {advice} 'l' of type array")
    assert first["raw"] == "<r><k>1</k><l>a</l><l><m/></l></r>"
    assert (last["detail"], last["raw"]) == (f"element 'g.h' {advice} 'g.h' of type array", "<r><g><h/><h/></g></r>")


@pytest.mark.parametrize("before", ["", ROWS])
def test_the_text_of_such_a_record_is_its_own_behind_runs_and_in_parts(before):
    record = "<r><n>1</n><n>é</n></r>"
    data = f"<x>{before}{record}<r><n>2</n></r>{before}{record}</x>".encode()
    for target in (None, 5000):
        found = [json.loads(row.error)["raw"] for row in records_of(xml_reader([("n",)]), data, target) if row.error]
        assert found == [record] * 2


@pytest.mark.parametrize(("columns", "rejects"), [([("k", "int")], 0), ([("k", "int"), ("l",)], 1), ([("k", "int"), ("l.m",)], 1), ([("k", "int"), ("lm",)], 0)])
def test_repeated_children_of_which_nothing_is_read_are_no_matter(columns, rejects):
    rows = records_of(xml_reader(columns, on_unmapped="drop"), b"<x><r><k>1</k><l><m>a</m></l><l><m>b</m></l></r></x>")
    assert sum(row.error is not None for row in rows) == rejects


LISTS = [
    ("<l>a</l><l>b</l>", '["a","b"]'),
    ("<l>a</l>", '["a"]'),
    ("<l/>", None),
    ("", None),
    ("<l/><l>b</l>", '[null,"b"]'),
    ('<l i="1"><m>a</m></l><l>b</l>', '[{"@i":"1","m":"a"},"b"]'),
    ('<l>["a",1]</l>', '["a",1]'),
]


@pytest.mark.parametrize(("inside", "expected"), LISTS)
def test_the_elements_of_a_column_of_type_array(inside, expected):
    (row,) = records_of(xml_reader([("k", "int"), ("l", "array")]), f"<x><r>{inside}<k>1</k></r></x>".encode())
    assert (row.data, row.error) == ({"k": 1, "l": expected}, None)


def test_a_page_reports_a_rejected_record_in_a_line_that_is_no_record():
    reader = xml_reader([("l",)])
    lines = list(reader.lines(b"<x><r><l>a</l>\n<l>b</l></r><r><l>c</l></r></x>", "f"))
    assert lines[1] == b'{"l":"c"}'
    (reject,) = records_of(formats.reader("json", {"format": "ndjson"}, reader.plan), lines[0] + b"\n")
    raw = "element 'l' comes more than once: name it in array_paths, or declare a column 'l' of type array: <r><l>a</l> <l>b</l></r>"
    assert json.loads(reject.error)["raw"] == raw


DECLARES = "f.xml: line 1: E234: the document type declares the entity 'a': remove the declarations, or have the sender write the values out"
HOSTILE = [
    ('<!DOCTYPE x [<!ENTITY a "b">]><x><r><n>&a;</n></r></x>', DECLARES),
    ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>', DECLARES),
    ('<!DOCTYPE x SYSTEM "a.dtd"><x>\n&a;</x>', "f.xml: line 2: the entity 'a' is not expanded"),
    ("<x><r>&nope;</r></x>", "f.xml: line 1: not well-formed XML: undefined entity, column 7"),
    ("<x><r></x>", "f.xml: line 1: not well-formed XML: mismatched tag, column 9"),
    ("<x>\n<r>", "f.xml: line 2: not well-formed XML: no element found, column 4"),
    ("", "f.xml: line 1: not well-formed XML: no element found, column 1"),
    ("<a>" * 1001 + "</a>" * 1001, "f.xml: line 1: nested deeper than 1000 levels"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE)
def test_a_broken_or_hostile_document_is_an_input_error(text, message):
    with pytest.raises(InputError) as caught:
        records_of(xml_reader([]), text.encode(), name="f.xml")
    assert str(caught.value) == message


def test_a_document_type_is_skipped_and_depth_below_the_cap_is_read():
    assert everything('<!DOCTYPE x SYSTEM "http://nowhere.invalid/x.dtd"><x><r><n>1</n></r></x>') == [{"n": "1"}]
    deep = "<a>" * 990 + "x" + "</a>" * 990
    assert everything(f"<x><r>{deep}</r></x>") == [{".".join("a" * 990): "x"}]


def test_encodings():
    for encoding in ("utf-8", "utf-16", "iso-8859-1"):
        data = f'<?xml version="1.0" encoding="{encoding}"?><x><r><n>é</n></r></x>'.encode(encoding)
        assert records_of(xml_reader([("n",)]), data)[0].data == {"n": "é"}


PATHS = ("/x/h", "/x/h/i", "/x", "/x/r", "x/r/h/", "/y", "/x/h/h", "/")
TREE = st.recursive(
    st.text("ab ", max_size=2), lambda inner: st.lists(st.tuples(st.sampled_from("hirx"), inner), max_size=4).map(lambda made: "".join(f"<{t}>{v}</{t}>" for t, v in made))
)


@given(tree=TREE, paths=st.lists(st.sampled_from(PATHS), min_size=1, max_size=5, unique=True), block=st.integers(1, 40))
@examples(200)
def test_sections_found_together_are_those_found_one_by_one(tree, paths, block):
    sections = [Section(path, "xml_path", path, (Column("h"), Column("i"), Column("h.i"), Column("h.h"))) for path in paths]
    data = f"<x>{tree}</x>".encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.formats.xml.parser._BLOCK", block)
        together = xml_reader([], sections=tuple(sections)).envelope(data, "f")
        alone = [xml_reader([], sections=(section,)).envelope(data, "f") for section in sections]
    assert together == {name: fields for found in alone for name, fields in found.items()}
    assert list(together) == [path for path in paths if path in together]


def test_sections_are_found_in_one_pass(monkeypatch):
    made = []
    monkeypatch.setattr(Scan, "__iter__", lambda scan: iter(made.append(scan) or ()))
    xml_reader([], sections=tuple(Section(path, "xml_path", path, ()) for path in PATHS)).envelope(b"<x/>", "f")
    assert len(made) == 1


def test_envelope_sections():
    sections = (Section("h", "xml_path", "/x/Head", (Column("n", "int"), Column("@k"), Column("gone"))),)
    reader = xml_reader([], sections=sections)
    assert reader.envelope(b'<x><Head k="v"><n>1</n></Head><r/><Head><n>2</n></Head></x>', "f") == {"h": {"n": 2, "@k": None, "gone": None}}
    with pytest.raises(InputError, match="f: envelope section 'h', field 'n': cannot read 'many' as int"):
        reader.envelope(b"<x><Head><n>many</n></Head></x>", "f")
    with pytest.raises(OptionError, match="an XML source takes xml_path, not json_pointer"):
        xml_reader([], sections=(Section("h", "json_pointer", "/h", ()),))


@given(
    rows=st.lists(st.tuples(TEXT, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT), max_size=4), preserve=st.booleans()
)
@examples(150)
def test_written_xml_is_well_formed_and_reads_back(rows, preserve):
    columns = [("a.t", "string"), ("@i", "int"), ("a.f", "float"), ("a.b.@k", "string")]
    text = written("xml", columns, rows, {"root_element": "x", "record_element": "r"}, preserve_nulls=preserve)
    records = list(ET.fromstring(text.encode()))  # noqa: S314 - the text is our own
    for record, (t, i, f, k) in zip(records, rows, strict=True):
        assert (record.find("a/t").text or "", record.get("i"), record.find("a/b").get("k")) == (t, str(i), k)
        assert float(record.find("a/f").text) == f or math.isnan(f)
    back = records_of(xml_reader(columns), text.encode())
    assert [row.data["@i"] for row in back] == [i for _, i, _, _ in rows]


def test_layout_of_written_xml():
    columns = [("@id",), ("a.b",), ("a.c", "int"), ("x.@k",), ("n",)]
    assert written("xml", columns, [("1", "<&", 2, '"', None)]) == (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Root>\n<Record id="1"><a><b>&lt;&amp;</b><c>2</c></a><x k="&quot;"/><n/></Record>\n</Root>\n'
    )
    assert "<n" not in written("xml", columns, [("1", "x", 2, "y", None)], preserve_nulls=True)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (("two words",), "x", "column 'two words': 'two words' is no name of an XML element"),
        (("a",), "\x01", r"column 'a' holds the character U\+0001, which XML cannot hold"),
    ],
)
def test_what_xml_cannot_hold(column, value, message):
    with pytest.raises(OutputError, match=message):
        written("xml", [column], [(value,)])


def test_a_path_of_anything_but_names_is_refused():
    with pytest.raises(OptionError, match=r"options\.record_path: 'b\[@c\]' is no name of an XML element"):
        formats.reader("xml", {"record_path": "//a/b[@c]"}, ReadPlan(()))


@pytest.mark.parametrize("path", ["//line", "a/line", "$", "line[1]"])
def test_an_array_path_that_leads_to_no_child_is_refused(path):
    with pytest.raises(OptionError, match="is no path to a child element"):
        xml_reader([("a",)], arrays=[(path,)])


def test_names_of_elements_are_checked():
    with pytest.raises(OptionError, match=r"options\.root_element: 'a b' is no name of an XML element"):
        written("xml", [("a",)], [], {"root_element": "a b"})


DECLARATIONS = {
    '<!ENTITY a "b">': "the entity 'a'",
    '<!ENTITY % p "b">': "the entity 'p'",
    '<!ENTITY a SYSTEM "a.txt">': "the entity 'a'",
    '<!ATTLIST r k CDATA "b">': "the attribute 'k' of 'r'",
    "<!ATTLIST r k CDATA #IMPLIED>": "the attribute 'k' of 'r'",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_a_document_type_that_declares_entities_or_attributes_is_refused(declaration, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ELEMENT x ANY>{declaration}]><x><r/></x>'.encode(encoding)
    for policy in ("auto_widen", "drop"):
        reader = xml_reader([("@k",)], on_unmapped=policy)
        with pytest.raises(InputError, match=f"f: line 1: E234: the document type declares {DECLARATIONS[declaration]}: remove"):
            records_of(reader, text, name="f")
        with pytest.raises(InputError, match="E234"):
            reader.undeclared(text, "f")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_an_entity_of_an_external_document_type_is_not_passed_over_in_an_attribute(encoding):
    begin = f"\ufeff<?xml version='1.0' encoding='{encoding[:6]}'?><!DOCTYPE x SYSTEM 'x.dtd'><x>"
    reader = xml_reader([("@k",)])
    fine = f"{begin}<r k='&amp;&#65;>&lt;'/></x>".encode(encoding)
    assert [row.data for row in records_of(reader, fine)] == [{"@k": "&A><"}]
    with pytest.raises(InputError, match="f: line 1: the entity 'a' is not expanded"):
        records_of(reader, f"{begin}<r j='>' k='x&a;'/></x>".encode(encoding), name="f")


def test_a_record_beyond_the_cap_is_an_input_error(monkeypatch):
    monkeypatch.setattr("storage.formats.limits.RECORD_BYTES", 1 << 20)
    text = "<x>" + " " * 3_000_000 + "<r><n>1</n></r>" * 10
    assert len(everything(text + "</x>")) == 10
    with pytest.raises(InputError, match="a record is longer than 1 MB"):
        everything(f"{text}<r><n>{'x' * 3_000_000}</n></r></x>")


ENDLESS = {
    "a comment": (b"<!--", b"-->"),
    "a comment full of ends": (b"<!--</r>", b"-->"),
    "a value": (b"<r b='", b"'/>"),
    "a value full of ends": (b"<r b='>>", b"'/>"),
    "an instruction": (b"<?p ", b"?>"),
}


@pytest.mark.parametrize("before", [b"<x>", b"<x><r><a>1</a></r>"])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_long_tag_is_not_read_again_with_each_piece(name, before):
    begin, end = ENDLESS[name]
    data = before + begin + b"x</r>"[: 1 if b"'" in end else None] * 1_500_000 + end + b"<r><a>2</a></r></x>"
    reader = xml_reader([("a", "int")], on_unmapped="drop")
    began = time.process_time()
    assert [row.data["a"] for row in records_of(reader, data)][-1] == 2
    assert time.process_time() - began < 2


def test_a_tag_beyond_the_cap_is_an_input_error(monkeypatch):
    monkeypatch.setattr("storage.formats.limits.MARKUP_BYTES", 1 << 20)
    with pytest.raises(InputError, match="f: line 2: E235: a tag or comment is longer than 1 MB"):
        records_of(xml_reader([("a", "int")]), b"<x><r><a>1</a></r>\n<r b='" + b"x" * (3 << 20) + b"'/></x>", name="f")
