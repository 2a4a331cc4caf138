"""CSV reading against Python's `csv` module, in one piece and in ranges cut anywhere; rejects and input errors."""

import csv
import io
import json
import math
import random
import re
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import Column, InputError, OptionError, ReadPlan
from storage.formats.base import Range
from storage.formats.csv import ranges
from storage.formats.encodings import IN_WORDS
from tests.support.examples import examples
from tests.support.reading import records_of, records_or_error


def csv_reader(columns, options=None, **plan):
    return formats.reader("csv", options or {}, ReadPlan(tuple(Column(*column) for column in columns), **plan))


def python_rows(text, delimiter, quote):
    cells = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, doublequote=True)
    return [row for row in cells if row]


def random_file(seed):
    """A file in a random dialect: mostly well-formed records, with stray quotes, blank lines and ragged records."""
    rnd = random.Random(seed)
    delimiter, quote, eol = rnd.choice(",;|\t:"), rnd.choice("\"'"), rnd.choice(["\n", "\r\n", "\r"])
    width = rnd.randint(1, 4)
    alphabet = ["a", "b", delimiter, quote, quote * 2, "\n", "\r\n", "\r", "é", " ", "😀"]
    lines = [delimiter.join(f"h{i}" for i in range(width))]
    for _ in range(rnd.randint(0, 12)):
        count = width if rnd.random() < 0.9 else rnd.randint(0, 5)
        lines.append(delimiter.join(random_cell(rnd, alphabet, delimiter, quote) for _ in range(count)))
    return eol.join(lines) + (eol if rnd.random() < 0.7 else ""), delimiter, quote, width


def random_cell(rnd, alphabet, delimiter, quote):
    text = "".join(rnd.choice(alphabet) for _ in range(rnd.randint(0, 4)))
    if rnd.random() < 0.3:
        return text.replace("\n", "").replace("\r", "").replace(delimiter, "") if rnd.random() < 0.7 else text
    special = any(character in text for character in (delimiter, quote, "\n", "\r"))
    return quote + text.replace(quote, quote * 2) + quote if special or rnd.random() < 0.2 else text


def outcome(read):
    try:
        return [(row.number, None if row.error else tuple(row.data.values())) for row in read()]
    except InputError as wrong:
        return "open quote" if "never closed" in wrong.message else wrong.message


def open_quote(text, delimiter, quote):
    """Whether Python's strict parser finds the end of the text inside quotes."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, strict=True))
    except csv.Error as wrong:
        return "unexpected end" in str(wrong)
    return False


def agrees_with_python(seed):
    text, delimiter, quote, width = random_file(seed)
    options = {"delimiter": delimiter, "quote_char": quote}
    reader = csv_reader([(f"h{i}",) for i in range(width)], options)
    rows = python_rows(text, delimiter, quote)[1:]
    expected = [(i, tuple(row) if len(row) == width else None) for i, row in enumerate(rows, 1)]
    whole = outcome(lambda: records_of(reader, text.encode()))
    pieces = outcome(lambda: records_of(reader, text.encode(), target=random.Random(seed).randint(1, 40)))
    assert whole == pieces
    if whole == "open quote":
        assert outcome(lambda: records_of(reader, (text + quote).encode())) != "open quote" or not open_quote(
            text + quote, delimiter, quote
        )
    else:
        assert whole == expected


@pytest.mark.parametrize("block", range(10))
def test_random_dialects_read_as_python_reads_them(block):
    for seed in range(block * 30, block * 30 + 30):
        agrees_with_python(seed)


def record_places(text):
    """Where the records of a text without open quotes begin: a quote opens a cell only where the cell begins."""
    return [record.start() for record in re.finditer(r'(?:(?<![^,\r\n])"(?:[^"]|"")*"|[^\r\n])+', text)]


def scanned(reader, text, size, look):
    """What `look` makes of the pieces, of `size` bytes, of a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.formats.csv.ranges.CHUNK_BYTES", 2 * size)
        return list(reader.record_starts(text.encode(), "f", look).results)


CELLS = st.lists(st.sampled_from(["a,b", "1,22", "x,", "\n", "\r\n", "\r", '"q",1', '"q\nr\n\ns",1', '5"x,', "long" * 9]), min_size=1, max_size=30)


@given(CELLS, st.lists(st.sampled_from(["\n"] * 9 + ["\r\n"]), min_size=30), st.integers(2, 40), st.booleans(), st.booleans())
@examples(300)
def test_chosen_records_of_each_piece_begin_where_all_do(cells, ends, size, has_header, ended):
    text = "a,b\n" * has_header + "".join(map("".join, zip(cells, ends, strict=False)))
    text = text if ended else text.rstrip("\r\n")
    reader = csv_reader([("a",) if has_header else ("col_0",)], {"has_header": has_header}, on_unmapped="drop")
    pieces = scanned(reader, text, size, lambda starts: (list(starts), [starts[at] for at in range(len(starts))], starts[np.arange(0, len(starts), 3)]))
    assert [place for every, _, _ in pieces for place in every] == record_places(text)[has_header:]
    assert all(one == every and some.tolist() == every[::3] for every, one, some in pieces)
    assert len(record_places(text)) == len(python_rows(text, ",", '"'))


@pytest.mark.parametrize("last", ["1,2", '1,"2"'])
def test_the_first_record_of_a_file_without_a_header_is_longer_than_a_piece(last):
    text = "long" * 20 + ",1\n" + "3,4\n" * 20 + last
    pieces = scanned(csv_reader([("col_0",)], {"has_header": False}, on_unmapped="drop"), text, 16, lambda starts: starts[np.arange(len(starts))].tolist())
    assert [place for piece in pieces for place in piece] == record_places(text)


@pytest.mark.parametrize("special", ['1,"2"', '1,2"', '1,"2\n3"'])
@pytest.mark.parametrize("at", [0, 50, 99])
def test_each_piece_is_looked_at_once_wherever_quotes_are(special, at):
    lines = ["1,2"] * 100
    lines[at] = special
    looks = []
    pieces = scanned(csv_reader([("a",)], on_unmapped="drop"), "a,b\n" + "\n".join(lines), 16, lambda starts: looks.append(1) or list(starts))
    assert len(looks) == len(pieces)
    assert sum(map(len, pieces)) == 100


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize(("passes", "look"), [(["bits"], lambda starts: (len(starts), starts[0], starts[-1])), (["places"], np.asarray)], ids=["some places", "all places"])
def test_lines_are_found_in_one_pass(end, passes, look, monkeypatch):
    """All places are found at once. Of bits, which take less time, some places are found."""
    made = []
    for number, name in (("bits", "PlacesBehind"), ("places", "line_ends")):
        find = getattr(ranges, name)
        monkeypatch.setattr(ranges, name, lambda *given, number=number, find=find, **named: made.append(number) or find(*given, **named))
    scanned(csv_reader([("a",)], on_unmapped="drop"), f"a,b{end}1,2{end}3,4{end}", 1000, look)
    assert made == passes


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_records_begin_where_python_begins_them_in_files_without_a_header(mark):
    for seed in range(200):
        text, delimiter, quote, _ = random_file(seed)
        text = quote + text.replace(delimiter, "\n", 1).replace(delimiter, quote + delimiter, 1)
        reader = csv_reader([("col_0",)], {"delimiter": delimiter, "quote_char": quote, "has_header": False}, on_unmapped="drop")
        data = (mark + text).encode()
        rows = outcome(lambda: records_of(reader, data))  # noqa: B023  # called at once
        if isinstance(rows, str):
            continue
        starts = [place for some in reader.record_starts(data, "f", list).results for place in some]
        first = len(mark.encode())
        assert starts == reader.starts_within(data, first, len(data)).tolist()
        assert len(starts) == len(rows) == len(python_rows(text, delimiter, quote))


@pytest.mark.deep
def test_two_thousand_random_dialects():
    for seed in range(10_000, 12_000):
        agrees_with_python(seed)


@given(data=st.binary(max_size=200), options=st.sampled_from([{}, {"has_header": False}, {"encoding": "latin-1"}, {"encoding": "utf-16"}]))
@examples(300)
def test_any_bytes_are_records_or_an_input_error(data, options):
    reader = csv_reader([("a", "int"), ("col_0", "date")], options)
    rows = records_or_error(reader, data)
    assert rows is None or [row.number for row in rows] == list(range(1, len(rows) + 1))


def test_declared_columns_come_first_then_undeclared_ones_in_file_order():
    reader = csv_reader([("b", "int"), ("missing", "date")])
    data = b"z,b,a\n1,2,3\n"
    reader = reader.with_undeclared(reader.undeclared(data, "file.csv"))
    (row,) = records_of(reader, data)
    assert row.data == {"b": 2, "missing": None, "z": "1", "a": "3"}
    assert list(row.data) == ["b", "missing", "z", "a"]


def test_drop_and_reject_of_undeclared_columns():
    assert csv_reader([("b",)], on_unmapped="drop").undeclared(b"z,b\n1,2\n", "f.csv") == ()
    with pytest.raises(InputError, match=r"f.csv: line 1: undeclared field 'z'"):
        csv_reader([("b",)], on_unmapped="reject").undeclared(b"z,b\n1,2\n", "f.csv")


TWICE = [
    (b"a,b,a\n1,2,3\n", {}, "file.csv: line 1: E224: columns 1 and 3 have one name, 'a': rename all but one of them in the file"),
    (b"\r\n\r\na,x,y,x,x\r\n", {}, "file.csv: line 3: E224: columns 2 and 4 and 5 have one name, 'x': rename all but one of them in the file"),
    (b"a,a\n", {"on_unmapped": "drop"}, "file.csv: line 1: E224: columns 1 and 2 have one name, 'a': rename all but one of them in the file"),
]


@pytest.mark.parametrize(("data", "plan", "message"), TWICE)
def test_a_header_with_one_name_twice_is_an_input_error(data, plan, message):
    reader = csv_reader([("a",)], **plan)
    for look in (lambda: reader.undeclared(data, "file.csv"), lambda: records_of(reader, data)):
        with pytest.raises(InputError) as caught:
            look()
        assert str(caught.value) == message


def test_columns_of_one_name_are_allowed_where_neither_is_read():
    data = b"x,a,x\n1,2,3\n"
    reader = csv_reader([("a",)], on_unmapped="drop")
    assert reader.undeclared(data, "f.csv") == ()
    assert [row.data for row in records_of(reader, data)] == [{"a": "2"}]
    assert records_of(csv_reader([("col_0",)], {"has_header": False}), b"x,x\n")[0].data == {"col_0": "x"}


def test_no_header_names_the_columns_by_number():
    rows = records_of(csv_reader([("col_1", "int")], {"has_header": False}), b"x,1\ny,2\n")
    assert [(row.number, row.data) for row in rows] == [(1, {"col_1": 1}), (2, {"col_1": 2})]


def test_byte_order_mark_and_blank_lines_are_no_data():
    rows = records_of(csv_reader([("a",)]), b"\xef\xbb\xbf\r\n\na\r\n\r\n1\r\n\n2")
    assert [(row.number, row.data["a"]) for row in rows] == [(1, "1"), (2, "2")]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "utf-16", "utf-16-le", "shift_jis", "utf-8-sig"])
def test_encodings(encoding):
    text = "name\nカラー,\n".replace(",", "") if encoding == "shift_jis" else "name\nnaïve é\n"
    assert records_of(csv_reader([("name",)], {"encoding": encoding}), text.encode(encoding))[0].data["name"] == text.split("\n")[1]


REJECTS = [
    (b"a,b\n1\n", "malformed_record", "1 cells where the header has 2", "1", {}),
    (b'a,b\n1,"x\ny",3\n', "malformed_record", "3 cells where the header has 2", '1,"x\ny",3', {}),
    (b"a,b\nx,2021-02-30\n", "type_coercion_failure", "column 'a': cannot read 'x' as int; column 'b': cannot read '2021-02-30' as date", None,
     {"a": "x", "b": "2021-02-30"}),
    (b"a,b\n007,nope\n", "type_coercion_failure", "column 'b': cannot read 'nope' as date", None, {"a": "007", "b": "nope"}),
]  # fmt: skip


@pytest.mark.parametrize(("data", "category", "detail", "raw", "fields"), REJECTS)
def test_a_bad_record_is_a_reject_with_its_text(data, category, detail, raw, fields):
    (row,) = records_of(csv_reader([("a", "int"), ("b", "date")]), data)
    assert json.loads(row.error) == {"category": category, "detail": detail, "fields": fields, "raw": raw}


def test_rejects_keep_the_numbers_of_the_other_records():
    rows = records_of(csv_reader([("a", "int"), ("b",)]), b"a,b\n1,x\n2\n3,y\nz,z\n5,w,\n6,\n")
    assert [(row.number, row.data["a"], row.error is not None) for row in rows] == [
        (1, 1, False), (2, None, True), (3, 3, False), (4, None, True), (5, None, True), (6, 6, False),
    ]  # fmt: skip


WAY_OUT = "options.encoding names the encoding that the file has, such as cp1252"
ERRORS = [
    (b"", "file.csv: line 1: the header row is missing: the file is empty"),
    (b"\n\n", "file.csv: line 1: the header row is missing: the file is empty"),
    (b",,\n1,2,3\n", "file.csv: line 1: the header row is empty"),
    (b'a,b\n1,"2\n3,4\n', "file.csv: line 2: a quoted field is never closed: '\"2\\n3,4\\n'"),
    (b'a\r\n"1\r\n2"\r\n\r\n"3', "file.csv: line 5: a quoted field is never closed: '\"3'"),
    (b"a\ncaf\xe9\n", f"file.csv: byte 5: not valid UTF-8: invalid continuation byte; {WAY_OUT}"),
    (b"a\n\xff\n", f"file.csv: byte 2: not valid UTF-8: invalid start byte; {WAY_OUT}"),
]


@pytest.mark.parametrize(("data", "message"), ERRORS)
def test_a_broken_file_is_an_input_error(data, message):
    with pytest.raises(InputError) as caught:
        records_of(csv_reader([("a",)]), data)
    assert str(caught.value) == message


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1"])
def test_an_open_quote_of_a_range_has_its_byte(encoding):
    text = 'a,b\n1,"é"\n2,é\n3,"é'
    data, start = text.encode(encoding), text.index("2")
    part = Range(len(text[:start].encode(encoding)), len(data), 2, b"a,b\n")
    with pytest.raises(InputError) as caught:
        list(csv_reader([("a",), ("b",)], {"encoding": encoding}).read(data[part.start :], "file.csv", part))
    assert (caught.value.offset, caught.value.line) == (data.rindex(b'"'), None)


def test_an_input_error_is_found_in_the_text_of_an_engine():
    error = InputError("orders.csv", "not valid UTF-8", offset=7)
    text = f"org.apache.spark.api.python.PythonException: Traceback ...\nstorage.formats.contract.{type(error).__name__}: {error}\n\n\tat"
    assert InputError.found_in(text) == "orders.csv: byte 7: not valid UTF-8"
    assert InputError.found_in("ValueError: no") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "options.delimiter: must be one ASCII character that is no line end"),
        ({"encoding": "utf-7000"}, f"options.encoding: 'utf-7000' is no encoding of text: use {IN_WORDS}"),
        ({"delimeter": ";"}, "options.delimeter: there is no such key"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError) as caught:
        csv_reader([("a",)], options)
    assert str(caught.value) == message


def test_a_record_beyond_the_cap_is_an_input_error(monkeypatch):
    monkeypatch.setattr("storage.formats.limits.RECORD_BYTES", 1000)
    data = b"a\n" + b"x" * 5000 + b"\n1\n"
    with pytest.raises(InputError, match="a record is longer than"):
        csv_reader([("a",)]).split(data, "file.csv", 100)


@pytest.mark.parametrize("target", [None, 40, 1000])
def test_the_place_of_a_bad_byte_counts_from_the_beginning_of_the_file(target):
    data = b"\xef\xbb\xbfa,b\n" + b"1,x\n" * 50
    with pytest.raises(InputError) as caught:
        records_of(csv_reader([("a",)]), data + b"2,\xe9\n", target)
    assert str(caught.value) == f"file.csv: byte {len(data) + 2}: not valid UTF-8: invalid continuation byte; {WAY_OUT}"


def test_long_cells_in_the_first_record():
    long = "x" * 300_000
    assert csv_reader([("b",)]).undeclared(f"{long[:65_536]},b\n".encode(), "f") == (Column(long[:65_536]),)
    with pytest.raises(InputError, match=r"^f: line 1: E229: a name is longer than 64 KB, 'x{40}\.\.\.': shorten it in the file$"):
        csv_reader([("b",)]).undeclared(f"{long},b\n".encode(), "f")
    assert records_of(csv_reader([("col_1",)], {"has_header": False}), f"{long},b\n".encode())[0].data == {"col_1": "b"}


def test_a_first_record_beyond_the_cap_is_an_input_error(monkeypatch):
    monkeypatch.setattr("storage.formats.limits.RECORD_BYTES", 100_000)
    with pytest.raises(InputError, match="f: line 1: E235: the first record is longer than"):
        csv_reader([("b",)]).undeclared(b"x" * 150_000 + b"\n1\n", "f")


def test_a_column_without_a_name_is_called_by_its_place():
    reader = csv_reader([("a", "int")])
    data = b"a,,b,\n1,x,y,z\n"
    reader = reader.with_undeclared(reader.undeclared(data, "f.csv"))
    assert [row.data for row in records_of(reader, data)] == [{"a": 1, "col_1": "x", "b": "y", "col_3": "z"}]


def value_of(kind, text):
    """The value of a cell without separators. Raises ValueError where there is none."""
    if not text:
        return None
    if kind == "date":
        year, month, day = map(int, re.fullmatch("([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})", text).groups()) if "-" in text else (0, 0, 0)
        return date(year, month, day)
    number = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf" if kind == "float" else "[+-]?[0-9]+"
    if not re.fullmatch(number, text):
        raise ValueError(text)
    value = float(text) if kind == "float" else int(text)
    if kind == "float" and math.isinf(value) and any(char.isdecimal() for char in text):
        raise ValueError("beyond the largest float")
    if kind == "int" and not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value


def records_by_hand(kinds, rows):
    """The values of each record, or the names of the columns that do not convert."""
    for row in rows:
        values, wrong = {}, []
        for name, (kind, text) in enumerate(zip(kinds, row, strict=True)):
            try:
                values[f"c{name}"] = value_of(kind, text)
            except (ValueError, AttributeError):
                wrong.append(f"c{name}")
        yield wrong or values


ODD = st.text(alphabet="01 9\t+-.xXeE", max_size=5) | st.sampled_from(["0x1F", "9223372036854775807", "9223372036854775808", "007", "-0", "inf", "1e400", "4.9e-324"])
PLAIN = {"int": st.integers(-(2**63), 2**63 - 1).map(str), "float": st.floats(allow_nan=False).map(repr), "date": st.dates().map(str)}
ODD_DATES = st.sampled_from(["2025-1-1", "2025-02-30", " 2025-01-01", "2025-01-01 ", "0000-01-01", "20250101"])
TYPED = st.lists(st.sampled_from(sorted(PLAIN)), min_size=1, max_size=3)


@given(data=st.data(), kinds=TYPED, quoted=st.booleans(), odd=st.booleans())
def test_numbers_and_dates_are_read_as_they_are_spelled(data, kinds, quoted, odd):
    cells = [st.one_of(PLAIN[kind], st.just(""), ODD_DATES if kind == "date" else ODD) if odd else PLAIN[kind] for kind in kinds]
    rows = [row for row in data.draw(st.lists(st.tuples(*cells), min_size=1, max_size=6)) if len(kinds) > 1 or row[0] or quoted]
    names = [f"c{index}" for index in range(len(kinds))]
    lines = [",".join(f'"{cell}"' if quoted else cell for cell in row) for row in [names, *rows]]
    read = records_of(csv_reader(list(zip(names, kinds, strict=True))), "\n".join(lines).encode())
    expected = list(records_by_hand(kinds, rows))
    errors = [json.loads(row.error) if row.error else None for row in read]
    assert [[name for name in names if f"'{name}'" in error["detail"]] if error else row.data for row, error in zip(read, errors, strict=True)] == expected
    for error, cells_of_row in zip(errors, rows, strict=True):
        assert error is None or error["fields"] == dict(zip(names, cells_of_row, strict=True))


@pytest.mark.parametrize("before", range(65_533, 65_539))
@pytest.mark.parametrize("row", ["1 ,2", "1, 2", "1,2 "])
def test_a_blank_at_the_end_of_a_number_is_found_wherever_the_text_is_cut(before, row):
    filler = "1,2\n" * (before // 4 - 1) + "1" * (before % 4 + 1) + ",2\n"
    assert len(filler) == before
    read = records_of(csv_reader([("a", "int"), ("b", "int")]), f"a,b\n{filler}{row}\n3,4\n".encode())
    assert [one.error is not None for one in read][-2:] == [True, False]
