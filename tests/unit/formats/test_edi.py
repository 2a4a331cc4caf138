"""EDIFACT and X12: segments, delimiters, envelopes, counts. Written interchanges pass the reader's checks and read back."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import DOCUMENT, Column, InputError, OptionError, OutputError, ReadPlan, Section
from storage.formats.edifact.read import Service
from tests.support.examples import examples
from tests.support.reading import records_of
from tests.support.writing import written

UNB = "UNB+UNOA:1+S+R+240101:1200+IC1'"
EDI = f"{UNB}UNH+M1+ORDERS:D:96A:UN'BGM+220+PO-1'UNT+3+M1'UNH+M2+ORDERS:D:96A:UN'UNT+2+M2'UNZ+2+IC1'"
ISA = "ISA*00*          *00*          *ZZ*S              *ZZ*R              *240101*1200*U*00401*000000905*0*P*:~"
X12 = f"{ISA}GS*PO*S*R*20240101*1200*7*X*004010~ST*850*0001~BEG*00*SA~SE*3*0001~GE*1*7~IEA*1*000000905~"
EDIFACT_OUT = {"interchange": ["UNOA:1", "S", "R", "240101:1200", "", "REF"], "message_type": "ORDERS:D:96A:UN"}
X12_OUT = {
    "interchange": ["00", "", "00", "", "ZZ", "S", "ZZ", "R", "240101", "1200", "U", "00401", "000000001", "0", "P", ":"],
    "group_header": ["PO", "S", "R", "20240101", "1200", "9", "X", "004010"], "set_type": "850",
}  # fmt: skip


def everything(form, text, options=None, **plan):
    """Each record's fields that are not empty."""
    reader = formats.reader(form, options or {}, ReadPlan((), **plan))
    data = text if isinstance(text, bytes) else text.encode()
    reader = reader.with_undeclared(reader.undeclared(data, "f"))
    return [{name: value for name, value in row.data.items() if value is not None} for row in records_of(reader, data, name="f")]


def test_edifact_segments():
    first = {"msg_ref": "M1", "msg_type": "ORDERS:D:96A:UN"}
    assert everything("edifact", EDI) == [
        {"seg_id": "UNH", **first, "e01": "M1", "e02": "ORDERS:D:96A:UN"},
        {"seg_id": "BGM", **first, "e01": "220", "e02": "PO-1"},
        {"seg_id": "UNH", "msg_ref": "M2", "msg_type": "ORDERS:D:96A:UN", "e01": "M2", "e02": "ORDERS:D:96A:UN"},
    ]
    assert everything("edifact", EDI.replace("'", "'\r\n")) == everything("edifact", EDI)


def test_edifact_service_characters():
    text = "UNA;*.!|~UNB*A;1*S*R*D*I~UNH*1*T~FTX**a!*b!~c!!*d+e'f~UNT*3*1~UNZ*1*I~"
    assert everything("edifact", text)[1] == {"seg_id": "FTX", "msg_ref": "1", "msg_type": "T", "e02": "a*b~c!", "e03": "d+e'f"}
    blank = "UNA:+.  'UNB+A:1+S+R+D+I'UNH+1+T'FTX+a?'UNT+3+1'UNZ+1+I'"
    assert everything("edifact", blank)[1]["e01"] == "a?"


def test_x12_segments_and_delimiters():
    expected = [
        {"seg_id": "ST", "set_ref": "0001", "set_type": "850", "e01": "850", "e02": "0001"},
        {"seg_id": "BEG", "set_ref": "0001", "set_type": "850", "e01": "00", "e02": "SA"},
    ]
    assert everything("x12", X12) == expected
    assert everything("x12", X12.replace("~", "~\r\n")) == expected
    assert everything("x12", X12.replace("*", "|").replace("~", "\n")) == expected


EDIFACT_ERRORS = [
    (EDI.replace("UNT+3", "UNT+4"), "f: segment 4: the UNT segment count is '4', but there are 3"),
    (EDI.replace("UNT+3+M1", "UNT+3+M9"), "f: segment 4: the UNT message reference is 'M9', but its header has 'M1'"),
    (EDI.replace("UNZ+2", "UNZ+1"), "f: segment 7: the UNZ message count is '1', but there are 2"),
    (EDI.replace("UNZ+2+IC1", "UNZ+2+X"), "f: segment 7: the UNZ control reference is 'X', but its header has 'IC1'"),
    (EDI.replace("UNZ+2+IC1'", ""), "f: the UNZ trailer is missing: the interchange is cut off behind segment 6"),
    (EDI + UNB, "f: segment 8: 'UNB' stands behind the UNZ trailer"),
    (EDI + "rest", "f: 'rest' stands behind the last segment terminator: the interchange is cut off or something follows it"),
    ("BGM+1'", "f: segment 1: an interchange begins with UNB, not with 'BGM'"),
    (UNB + "UNG+x'", "f: segment 2: functional groups (UNG) are not supported"),
    (UNB + "BGM+1'", "f: segment 2: 'BGM' stands outside a message"),
    (UNB + "UNH+1+T'UNH+2+T'", "f: segment 3: UNH inside message '1', whose UNT is missing"),
    (UNB + "UNH+1+T'UNZ+1+IC1'", "f: segment 3: UNZ inside message '1', whose UNT is missing"),
    (
        UNB + "UNH+1+T'FTX+" + "+".join("x" * 33) + "'",
        "f: segment 3 (FTX) has 33 elements, more than max_elements 32: raise options.max_elements",
    ),
    (UNB + "UNH+1+T'FTX+" + "x" * 70_000 + "'", "f: E235: segment 3 is longer than 64 KB: the segment terminator may be another than the header says"),
    (UNB.encode() + b"UNH+1+\xff'", f"f: byte {len(UNB) + 6}: not valid UTF-8: invalid start byte"),
    ("", "f: the UNZ trailer is missing: the interchange is cut off behind segment 0"),
]
def test_the_columns_for_elements_limit_no_service_segments():
    edifact = formats.reader("edifact", {"max_elements": 2}, ReadPlan((Column("e02"),)))
    assert [row.data["e02"] for row in records_of(edifact, b"UNB+UNOC:3+S+R+240101:1200+IC1'UNH+M1+T'BGM+1+2'UNT+3+M1'UNZ+1+IC1'")] == ["T", "2"]
    x12 = formats.reader("x12", {"max_elements": 3}, ReadPlan((Column("e03"),)))
    assert records_of(x12, X12.encode())[0].data["e03"] is None
    assert x12.levels()["functional_group"][-1] == "e08"
    with pytest.raises(InputError, match=r"segment 2 \(UNH\) has 2 elements, more than max_elements 1"):
        records_of(formats.reader("edifact", {"max_elements": 1}, ReadPlan((Column("e01"),))), b"UNB+UNOC:3+S+R+240101:1200+IC1'UNH+M1+T'UNT+2+M1'UNZ+1+IC1'")


X12_ERRORS = [
    (X12.replace("SE*3", "SE*4"), "f: segment 5: SE01, the count of segments, is '4', but there are 3"),
    (X12.replace("SE*3*0001", "SE*3*0002"), "f: segment 5: SE02, the set control number, is '0002', but its header has '0001'"),
    (X12.replace("GE*1", "GE*2"), "f: segment 6: GE01, the count of transaction sets, is '2', but there are 1"),
    (X12.replace("GE*1*7", "GE*1*8"), "f: segment 6: GE02, the group control number, is '8', but its header has '7'"),
    (X12.replace("IEA*1", "IEA*3"), "f: segment 7: IEA01, the count of functional groups, is '3', but there are 1"),
    (
        X12.replace("IEA*1*000000905", "IEA*1*1"),
        "f: segment 7: IEA02, the interchange control number, is '1', but its header has '000000905'",
    ),
    (X12.replace("IEA*1*000000905~", ""), "f: the IEA trailer is missing: the interchange is cut off behind segment 6"),
    (X12 + "ST*850*1~", "f: segment 8: 'ST' stands behind the IEA trailer"),
    ("ISA*1*2~", "f: segment 1: the ISA header is cut off"),
    ("GS*1~", "f: segment 1: an interchange begins with ISA, not with 'GS*1~'"),
    (ISA + "BEG*1~", "f: segment 2: 'BEG' stands outside a transaction set"),
    (ISA + "ST*1*1~", "f: segment 2: ST outside a functional group"),
    (X12.encode() + b"\xfe", f"f: byte {len(X12)}: not valid UTF-8: invalid start byte"),
]


@pytest.mark.parametrize(
    ("form", "text", "message"), [("edifact", *case) for case in EDIFACT_ERRORS] + [("x12", *case) for case in X12_ERRORS]
)
def test_structural_errors(form, text, message):
    with pytest.raises(InputError) as caught:
        everything(form, text)
    assert str(caught.value) == message


def section(where, kind="segment", **fields):
    return (Section("ic", kind, where, tuple(Column(name, declared) for name, declared in fields.items())),)


def test_interchange_sections_and_the_document_column():
    reader = formats.reader("edifact", {}, ReadPlan((), sections=section("UNB", e05="string", e09="int")))
    assert reader.envelope(EDI.encode(), "f") == {
        "ic": {"e05": "IC1", "e09": None, "_elements": ["UNOA:1", "S", "R", "240101:1200", "IC1"]}
    }
    nested = formats.reader("x12", {}, ReadPlan((Column("seg_id"),), sections=section("ISA", e13="int"), document=True))
    (batch,) = nested.read(X12.encode(), "f")
    assert batch.schema.equals(nested.schema())
    document = json.loads(batch[DOCUMENT][1].as_py())
    assert (document["ic"]["e13"], document["functional_group"]["e06"], document["transaction_set"]["e02"]) == (905, "7", "0001")


@pytest.mark.parametrize(("form", "header"), [("edifact", "UNB"), ("x12", "ISA")])
def test_only_the_interchange_header_is_a_section(form, header):
    for wrong in (section("UNZ"), section("/a", "json_pointer")):
        with pytest.raises(OptionError, match=f"envelope section 'ic': an? {form.upper()} source takes segment: \"{header}\""):
            formats.reader(form, {}, ReadPlan((), sections=wrong))


VALUE = st.one_of(st.none(), st.text(alphabet="ab1+?':é\n ", min_size=1, max_size=5).map(lambda text: text.strip() or "x"))
RECORDS = st.lists(st.tuples(st.sampled_from(["M1", "M2"]), st.sampled_from(["BGM", "NAD"]), VALUE, VALUE, VALUE), max_size=8)
EDI_COLUMNS = [("ref",), ("seg_id",), ("e01",), ("e02",), ("e03",)]


@given(records=RECORDS, cut=st.integers(0, 8), newline=st.booleans(), una=st.booleans())
@examples(200)
def test_written_edifact_reads_back(records, cut, newline, una):
    columns = [("msg_ref",), *EDI_COLUMNS[1:]]
    text = written("edifact", columns, records, {**EDIFACT_OUT, "segment_newline": newline, "write_una": una}, cut=cut)
    found = [record for record in everything("edifact", text) if record["seg_id"] != "UNH"]
    names = [name for (name,) in columns]
    expected = [{name: value for name, value in zip(names, record, strict=True) if value is not None} for record in records]
    assert [{key: value for key, value in record.items() if key != "msg_type"} for record in found] == expected


@given(
    records=st.lists(
        st.tuples(st.sampled_from(["0001", "0002"]), st.sampled_from(["BEG", "N1"]), *[st.one_of(st.none(), st.sampled_from("ab:?"))] * 3),
        max_size=8,
    )
)
@examples(100)
def test_written_x12_reads_back(records):
    columns = [("set_ref",), *EDI_COLUMNS[1:]]
    found = [record for record in everything("x12", written("x12", columns, records, X12_OUT, cut=3)) if record["seg_id"] != "ST"]
    names = [name for (name,) in columns]
    expected = [{name: value for name, value in zip(names, record, strict=True) if value is not None} for record in records]
    assert [{key: value for key, value in record.items() if key != "set_type"} for record in found] == expected


def test_layout_of_written_edifact():
    columns = [("seg_id",), ("msg_ref",), ("msg_type",), ("e01",), ("e03",)]
    rows = [
        ("UNH", "7", "INVOIC:D", "7", None),
        ("FTX", "7", None, "it's +", "x"),
        ("UNT", "7", None, "9", None),
        ("BGM", None, None, "1", None),
    ]
    assert written("edifact", columns, rows, {**EDIFACT_OUT, "write_una": True}) == (
        "UNA:+.? '\nUNB+UNOA:1+S+R+240101:1200++REF'\nUNH+7+INVOIC:D'\nFTX+it?'s ?+++x'\nBGM+1'\nUNT+4+7'\nUNZ+1+REF'\n"
    )


def test_layout_of_written_x12():
    columns = [("seg_id",), ("set_ref",), ("set_type",), ("e01",), ("e02",), ("e03",)]
    rows = [("BEG", None, None, "a", None, "c"), ("ST", "7", "997", "997", "7", "EXT"), ("AK1", "7", "997", "x", None, None)]
    assert written("x12", columns, rows, X12_OUT) == (
        "ISA*00*          *00*          *ZZ*S              *ZZ*R              *240101*1200*U*00401*000000001*0*P*:~\n"
        "GS*PO*S*R*20240101*1200*1*X*004010~\nST*850*0001~\nBEG*a**c~\nSE*3*0001~\nST*997*7*EXT~\nAK1*x~\nSE*3*7~\nGE*2*1~\nIEA*1*000000001~\n"
    )


@pytest.mark.parametrize(
    ("form", "options", "column", "row", "message"),
    [
        ("x12", X12_OUT, "e01", "5*5", r"the value '5\*5' holds a delimiter of X12"),
        ("x12", X12_OUT, "colour", "red", "column 'colour' has no place in x12"),
        ("edifact", EDIFACT_OUT, "colour", "red", "column 'colour' has no place in edifact"),
        ("edifact", {"interchange_from_doc": "ic"}, "e01", "x", "no record has the document section 'ic'"),
        ("edifact", {"interchange": ["a"]}, "e01", "x", "a message needs a type"),
        ("x12", {**X12_OUT, "interchange": ["000", *X12_OUT["interchange"][1:]]}, "e01", "x", "ISA01 '000' is longer than its 2 characters"),
    ],
)
def test_what_cannot_be_written(form, options, column, row, message):
    with pytest.raises(OutputError, match=message):
        written(form, [("seg_id",), (column,)], [("BGM", row)], options)


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        ("edifact", {}, "an EDIFACT output needs options.interchange or"),
        ("x12", {"interchange_from_doc": "ic"}, "an X12 output needs options.group_header"),
        ("x12", {**X12_OUT, "interchange": ["00"]}, "options.interchange: must have at least 16 entries, not 1"),
    ],
)
def test_options_of_writers(form, options, message):
    with pytest.raises(OptionError, match=message):
        written(form, [("seg_id",)], [], options)


def test_an_echoed_interchange():
    text = written("edifact", [("seg_id",)], [], {"interchange_from_doc": "ic"}, interchange=("UNOA:1", "S", "R", "D", "", "X"))
    assert text == "UNB+UNOA:1+S+R+D++X'\nUNZ+0+X'\n"


@given(text=st.text(alphabet="a?+'\n", max_size=12), at=st.sampled_from("+'"))
def test_text_is_split_where_there_is_no_release_character(text, at):
    service, expected, released = Service(), [""], False
    for character in text:
        if character == at and not released:
            expected.append("")
            continue
        expected[-1] += character
        released = character == "?" and not released
    service = Service()
    found = service.segments(text) if at == "'" else service.elements(text)
    assert found == (expected if at == "'" else [re.sub(r"\?(.)", r"\1", part, flags=re.DOTALL) for part in expected])


def test_the_reference_of_a_message_is_noticed_in_any_of_them():
    first = "UNB+UNOC:3+S+R+240101:1200+1'UNH++T'BGM+1+2+3'UNT+3+'"
    reader = formats.reader("edifact", {}, ReadPlan((Column("seg_id"),)))
    names = [column.name for column in reader.undeclared((first + "UNH+7'BGM+1'UNT+3+7'UNZ+2+1'").encode(), "f.edi")]
    assert names == ["msg_ref", "msg_type", "e01", "e02", "e03"]
