"""Fixed-width reading and writing: positions, padding, separators, layouts. Written files read back."""

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import Column, InputError, OptionError, OutputError, ReadPlan
from tests.support.examples import examples
from tests.support.reading import records_of
from tests.support.writing import written


def field(name, start=None, width=None, **more):
    return {"name": name, "width": width, **({} if start is None else {"start": start}), **more}


def fixed_reader(columns, *fields, **options):
    plan = ReadPlan(tuple(Column(*column) for column in columns), layout={"fields": list(fields)})
    return formats.reader("fixed_width", options, plan)


def read(data, columns, *fields, **options):
    return [list(row.data.values()) for row in records_of(fixed_reader(columns, *fields, **options), data)]


def test_fields_are_cut_at_their_positions():
    data = b"##abc---  12tail\n##de ---0034\n##\n\n"
    columns = [("q", "int"), ("code",), ("gone", "date")]
    assert read(data, columns, field("code", 2, end=5), field("q", 8, 4)) == [[12, "abc", None], [34, "de", None], [None, None, None]]


@pytest.mark.parametrize(
    ("text", "more", "value"),
    [
        ("00042 ", {"justify": "right", "pad": "0"}, "42"),
        ("ab....", {"pad": "."}, "ab"),
        ("  ab  ", {}, "ab"),
        ("  ab  ", {"trim": False}, "  ab  "),
        ("      ", {}, None),
        ("000000", {"justify": "right", "pad": "0"}, None),
        ("000420", {"type": "integer", "pad": "0"}, "420"),
        ("**1200", {"type": "integer", "pad": "*"}, "1200"),
        ("1200**", {"type": "integer", "pad": "*"}, "1200"),
        ("042000", {"type": "integer", "justify": "left", "pad": "0"}, "042"),
        ("y", {"type": "boolean"}, "yes"),
    ],
)
def test_padding(text, more, value):
    assert read(text.encode() + b"\n", [("a",)], field("a", 0, 6, **more)) == [[value]]


def test_types_and_formats_of_the_layout():
    fields = (field("d", 0, 8, type="date", format="%Y%m%d"), field("b", 8, 1, type="boolean"), field("n", 9, 5, type="decimal"))
    assert [str(value) for value in read(b"20240105Y 1.50\n", [("d", "date"), ("b", "bool"), ("n", "float")], *fields)[0]] == [
        "2024-01-05",
        "True",
        "1.5",
    ]


@pytest.mark.parametrize(
    ("separator", "data"),
    [("lf", b"1a\n2b\n"), ("crlf", b"1a\r\n2b\r\n"), ("cr_lf", b"1a\r\n2b"), ("none", b"1a2b"), ("lf", b"\xef\xbb\xbf1a\n2b")],
)
def test_separators(separator, data):
    assert read(data, [("n", "int"), ("t",)], field("n", width=1), field("t", width=1), line_separator=separator) == [[1, "a"], [2, "b"]]


def test_a_bad_cell_is_a_reject():
    row = records_of(fixed_reader([("n", "int"), ("t",)], field("n", 0, 3), field("t", 3, 2)), b" x abc\n")[0]
    assert json.loads(row.error) == {
        "category": "type_coercion_failure", "detail": "column 'n': cannot read 'x' as int", "fields": {"n": "x", "t": "ab"}, "raw": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"1a2", {"line_separator": "none"}, "f: byte 2: the last record is incomplete: 1 of 2 bytes"),
        (b"1\xff\n", {}, "f: byte 1: not valid UTF-8: invalid start byte"),
        ("é1\n".encode(), {}, "f: field 'n' cuts a character in two: positions count bytes"),
    ],
)
def test_input_errors(data, options, message):
    with pytest.raises(InputError) as caught:
        records_of(fixed_reader([("n",)], field("n", 0, 1), field("t", 1, 1), **options), data, name="f")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (None, "a fixed_width format needs a layout: give format_schema, a path or a map with 'fields'"),
        ({"fields": [{"name": "a", "start": 0, "widht": 3}]}, "format_schema.fields.0.widht: there is no such key"),
        ({"fields": [{"name": "a", "start": 0}]}, "format_schema.fields.0: field 'a' needs width or end"),
        ({"fields": [{"name": "a", "width": 1}, {"name": "b", "width": 1}, {"name": "a", "width": 2}]}, "format_schema.fields: there are two fields 'a'"),
        ({"fields": [{"name": "a", "start": 5, "end": 3}]}, "format_schema.fields.0: field 'a' ends before it starts"),
        (
            {"fields": [{"name": "a", "start": 0, "end": 3, "width": 2}]},
            "format_schema.fields.0: field 'a': width and end contradict each other",
        ),
        ({"fields": []}, "format_schema.fields: must have at least 1 entry, not 0"),
    ],
)
def test_layouts_are_checked(layout, message):
    with pytest.raises(OptionError) as caught:
        formats.reader("fixed_width", {}, ReadPlan((Column("a"),), layout=layout))
    assert message in str(caught.value)


LINES = st.lists(st.text(alphabet="ab 01\r", max_size=8), max_size=10)


@given(lines=LINES, target=st.integers(1, 30), separator=st.sampled_from(["lf", "crlf"]))
@examples(150)
def test_ranges_have_the_records_of_the_whole(lines, target, separator):
    data = "\n".join(lines).encode()
    reader = fixed_reader([("a", "int"), ("b",)], field("a", 0, 2), field("b", 2, 3), line_separator=separator)
    assert records_of(reader, data, target) == records_of(reader, data)


@given(count=st.integers(0, 9), target=st.integers(1, 30))
def test_ranges_without_separators(count, target):
    reader = fixed_reader([("a", "int")], field("a", 0, 3), line_separator="none")
    data = b"".join(b"%3d" % number for number in range(count))
    assert [row.data["a"] for row in records_of(reader, data, target)] == list(range(count))
    assert [row.number for row in records_of(reader, data, target)] == list(range(1, count + 1))


def test_written_lines():
    fields = [
        field("id", width=6, type="integer", pad="0"), field("name", width=8, justify="right", pad="*"),
        field("gone", width=2), field("d", width=8, type="date", format="%Y%m%d"),
    ]  # fmt: skip

    rows = [("pen", 42, date(2024, 1, 5)), (None, None, None)]
    columns = [("name",), ("id", "int"), ("d", "date")]
    assert written("fixed_width", columns, rows, layout={"fields": fields}) == "000042*****pen  20240105\n" + " " * 24 + "\n"


def test_what_is_too_long():
    def write(value, declared="string", **more):
        return written(
            "fixed_width", [("a", declared)], [(value,)], {"line_separator": "none"}, layout={"fields": [field("a", width=3, **more)]}
        )

    assert write("abcdef", truncation="silent") == "abc"
    assert write("abé", truncation="warn") == "ab "
    with pytest.raises(OutputError, match="field 'a': 'abcd' is longer than its 3 bytes"):
        write("abcd", truncation="error")
    with pytest.raises(OutputError, match="field 'a': '1234' is longer than its 3 bytes"):
        write(1234, "int", type="integer", truncation="silent")
    with pytest.raises(OutputError, match="field 'a': '1234' is longer than its 3 bytes"):
        write(1234, "int")
    assert write(1234, "int", truncation="silent") == "123"
    with pytest.raises(OutputError, match="field 'a' holds a line end"):
        write("a\nb")


@given(
    rows=st.lists(st.tuples(st.text(alphabet="abcé", min_size=1, max_size=4), st.integers(-999, 9999)), max_size=5),
    end=st.sampled_from(["lf", "crlf", "none"]),
)
@examples(100)
def test_what_is_written_reads_back(rows, end):
    fields = [field("t", width=8), field("n", width=5, type="integer")]
    columns = [("t", "string"), ("n", "int")]
    text = written("fixed_width", columns, rows, {"line_separator": end}, layout={"fields": fields})
    assert [tuple(row) for row in read(text.encode(), columns, *fields, line_separator=end)] == rows
