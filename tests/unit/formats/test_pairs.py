"""Every pair of text formats: records that are written as one, read, written as the other and read again are the same records."""

import itertools
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import Column, ReadPlan
from tests.support.examples import examples
from tests.support.reading import records_of
from tests.support.writing import written

NAMES = ("e01", "e02", "e03", "e04", "e05", "e06")
TYPES = ("string", "int", "float", "bool", "date", "date_time")
LAYOUT = {"fields": [{"name": "seg_id", "width": 3}, {"name": "ref", "width": 6}, *({"name": name, "width": 60} for name in NAMES)]}
REFERENCE = {"edifact": "msg_ref", "x12": "set_ref"}
INTERCHANGE = ["00", "", "00", "", "ZZ", "S", "ZZ", "R", "240101", "1200", "U", "00401", "000000001", "0", "P", ":"]
WRITING = {
    "csv": {},
    "json": {},
    "xml": {},
    "fixed_width": {},
    "edifact": {"interchange": ["UNOC:3", "S", "R", "240101:1200", "1"], "message_type": "T"},
    "x12": {"interchange": INTERCHANGE, "group_header": ["PO", "S", "R", "20240101", "1200", "1", "X", "004010"], "set_type": "850"},
}
READING = {"xml": {"record_path": "/Root/Record"}}
PAIRS = list(itertools.permutations(WRITING, 2))

TEXT = st.text("aZ09é€'\"<>&,;|?+:/\\{}[]#%=_-. ", min_size=1, max_size=12).map(str.strip).filter(bool)
RECORD = st.tuples(
    TEXT,
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.integers(-(10**12), 10**12).map(lambda number: number / 1000)),
    st.one_of(st.none(), st.booleans()),
    st.one_of(st.none(), st.dates(date(1900, 1, 1), date(2199, 12, 31))),
    st.one_of(st.none(), st.datetimes(datetime(1900, 1, 1), datetime(2199, 12, 31)).map(lambda moment: moment.replace(tzinfo=UTC))),
)  # fmt: skip


def columns_of(form):
    """The columns of a format. Segments have a tag and a message in addition to their elements."""
    return [("seg_id",), (REFERENCE.get(form, "ref"),), *zip(NAMES, TYPES, strict=True)]


def through(form, records):
    """The records after writing and reading one format, without segments that open a message."""
    columns = columns_of(form)
    layout = {**LAYOUT, "fields": [{**one, "name": REFERENCE.get(form, one["name"])} if one["name"] == "ref" else one for one in LAYOUT["fields"]]} if form == "fixed_width" else None
    text = written(form, columns, [("SEG", "1", *record) for record in records], WRITING[form], layout=layout)
    plan = ReadPlan(tuple(Column(*column) for column in columns), layout=layout)
    rows = records_of(formats.reader(form, READING.get(form, {}), plan), text.encode())
    kept = [row for row in rows if row.data["seg_id"] == "SEG"]
    assert [row.error for row in kept] == [None] * len(kept)
    return [tuple(row.data[name] for name in NAMES) for row in kept]


@pytest.mark.parametrize(("left", "right"), PAIRS)
@given(records=st.lists(RECORD, max_size=4))
@examples(16, 4)
def test_both_formats_hold_the_same_records(left, right, records):
    held = through(left, records)
    assert held == records
    assert through(right, held) == records
