"""Damaged files of every format give records and rejects, or an input error that names the file. None crashes, hangs or loses a record."""

import random
import time
from datetime import date

import pyarrow as pa
import pytest

from storage import formats
from storage.formats import ArrayPath, Column, InputError, ReadPlan
from storage.formats.xml.fast_records import Runs
from tests.support.columnar import arrow_file, avro_file, parquet_file
from tests.support.reading import records_of, records_or_error
from tests.support.workbooks import workbook
from tests.unit.formats.test_edi import EDI, X12

COLUMNS = tuple(Column(*column) for column in [("a", "int"), ("b", "date"), ("c", "string"), ("e01", "float"), ("seg_id", "any")])
LAYOUT = {"fields": [{"name": "a", "start": 0, "width": 3}, {"name": "b", "start": 3, "width": 10}, {"name": "c", "width": 2}]}
TYPED = pa.table({"a": [1, 2], "b": [date(2024, 1, 5), None], "c": ["x", "y"], "e01": [1.5, None], "seg_id": [[1], None], "more": [{"k": 1}, None]})
AVRO = {"a": "long", "b": ["null", {"type": "int", "logicalType": "date"}], "c": "string", "e01": ["null", "double"], "seg_id": {"type": "array", "items": "int"}}
ROWS = [{"a": 1, "b": date(2024, 1, 5), "c": "x", "e01": 1.5, "seg_id": [1]}, {"a": 2, "b": None, "c": "y", "e01": None, "seg_id": []}]
SAMPLES = {
    "arrow": [({}, arrow_file(TYPED)), ({}, arrow_file(TYPED, compression="zstd"))],
    "avro": [({}, avro_file(AVRO, ROWS)), ({}, avro_file(AVRO, ROWS, codec="deflate"))],
    "parquet": [({}, parquet_file(TYPED)), ({}, parquet_file(TYPED, compression="none", row_group_size=1))],
    "csv": [({}, b'a,b,c,e01\n1,2024-01-05,"x,\ny",1.5\n2,,"q""q",\n'), ({"encoding": "utf-16"}, "a,b\n1,é\n".encode("utf-16"))],
    "json": [
        ({}, b'[{"a": 1, "b": "2024-01-05"}, {"a": "x", "c": [1, {"z": null}]}]'),
        ({}, b'{"a": 1}\n{"b": "2024-01-05", "c": "\\u00e9"}\n'),
        ({"record_path": "r"}, b'{"r": [{"a": 1, "i": [1, 2]}], "x": {}}'),
    ],
    "xml": [
        ({"record_path": "//r"}, b'<?xml version="1.0"?><x><r k="1"><a>1</a><c><![CDATA[<]]></c></r><r><b>2024-01-05</b><i>1</i></r></x>')
    ],
    "fixed_width": [({}, b"001" + b"2024-01-05" + b"ab\n002\n"), ({"line_separator": "none"}, b"0012024-01-05ab" * 2)],
    "edifact": [({}, EDI.encode()), ({}, b"UNA:+.? '" + EDI.replace("PO-1", "P?'O").encode())],
    "x12": [({}, X12.encode())],
    "xlsx": [({}, workbook([["a", "b", "c"], [1, date(2024, 1, 5), "x"], ["z", None, True]])), ({"merged": "fill"}, workbook([["a"], [1.5]]))],
}
FILES = [name for name in formats.names() if not formats.reader_type(name).versioned]
PIECES = [
    b'"',
    b"'",
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xc3",
    b"<",
    b">",
    b"&",
    b"{",
    b"}",
    b"[",
    b"]",
    b"?",
    b"+",
    b"*",
    b"~",
    b"\xef\xbb\xbf",
    b"1" * 30,
    b" ",
]


def mutated(data, rnd):
    """The file with up to four bytes or parts changed, removed, repeated or inserted."""
    for _ in range(rnd.randint(1, 4)):
        at, size = rnd.randrange(len(data) + 1), rnd.randint(1, 8)
        kind = rnd.randrange(5)
        new = [rnd.choice(PIECES), bytes([rnd.randrange(256)]), b"", data[at : at + size] * 3, data[rnd.randrange(len(data) + 1) :][:size]][
            kind
        ]
        data = data[:at] + new + data[at + (size if kind in (1, 2) else 0) :]
    return data


def reader_of(form, options):
    arrays = (ArrayPath("$.i"),) if form in ("json", "xml") else ()
    return formats.reader(form, options, ReadPlan(COLUMNS, array_paths=arrays, layout=LAYOUT if form == "fixed_width" else None))


def survives(form, seed):
    rnd = random.Random(seed)
    options, data = rnd.choice(SAMPLES[form])
    data = mutated(data, rnd)
    began = time.process_time()
    rows = records_or_error(reader_of(form, options), data)
    assert time.process_time() - began < 2
    if rows is not None:
        assert [row.number for row in rows] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("form", FILES)
def test_damaged_files(form):
    for seed in range(400):
        survives(form, seed)


ALIKE = b"<?xml version='1.0'?>\n<x>" + b"".join(b'<r k="%d"><a>%d</a>\n<c> t %d </c><d><e>%d</e></d></r>' % (row, row, row, row) for row in range(12)) + b"</x>"


def read_with_and_without_runs(seed):
    rnd = random.Random(seed)
    data = mutated(ALIKE, rnd)
    reader = formats.reader("xml", {"record_path": "//r"}, ReadPlan(COLUMNS))
    for target in (None, 100):
        yield outcome(reader, data, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runs, "at", lambda *_: None)
        yield outcome(reader, data, None)


def outcome(reader, data, target):
    """The records of a file and its undeclared fields, or its error. Lines in errors do not count: a range does not know them."""
    try:
        fields = [column.name for column in reader.undeclared(data, "f.xml")]
        return [fields, *records_of(reader.with_undeclared([Column(name) for name in fields]), data, target, "f.xml")]
    except InputError as wrong:
        return str(wrong)


@pytest.mark.parametrize("seeds", [range(300), pytest.param(range(10_000, 15_000), marks=pytest.mark.deep)])
def test_a_damaged_document_is_the_same_with_runs_and_without(seeds):
    for seed in seeds:
        whole, parts, plain = read_with_and_without_runs(seed)
        assert whole == plain, seed
        assert parts == plain, seed


@pytest.mark.deep
@pytest.mark.parametrize("form", FILES)
def test_five_thousand_damaged_files(form):
    for seed in range(10_000, 15_000):
        survives(form, seed)


def test_every_format_has_a_reader_and_a_writer():
    assert formats.names() == ("arrow", "avro", "csv", "delta", "edifact", "fixed_width", "json", "parquet", "sql", "x12", "xlsx", "xml")
    for name in FILES:
        assert formats.reader_type(name).Options
        assert formats.writer_type(name).Options
    with pytest.raises(KeyError):
        formats.reader_type("parquet2")
