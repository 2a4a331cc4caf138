"""Workbooks: the type of each cell, which part of a sheet is read, and written workbooks as openpyxl and Errata read them."""

import struct
import zipfile
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO

import openpyxl
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import Column, InputError, OptionError, OutputError, ReadPlan, WritePlan
from storage.formats.xlsx import extent
from storage.formats.xlsx.extent import Extent
from storage.formats.xlsx.places import Area, column_letters, column_number, place
from storage.formats.xlsx.read import moment_of
from storage.values.types import arrow_type
from tests.support.examples import examples
from tests.support.reading import records_of
from tests.support.workbooks import workbook

CELL = st.tuples(
    st.integers(1, 1 << 20),
    st.integers(0, (1 << 14) - 1),
    st.booleans(),
    st.sampled_from(['<c r="{place}" s="1"{end}', '<c r="{place}"{end}', "<c r='{place}'{end}", '<c s="1" r="{place}"{end}', '<x:c r="{place}" t="n"{end}', '<c  r="{place}" {end}']),
)
"""A cell of a sheet: its row from 1, its column from 0, whether it is empty, and its tag."""


def styled(number, pattern):
    return lambda made, page, row, at: page.write_number(row, at, number, made.add_format({"num_format": pattern}))


def formula(text, value):
    return lambda made, page, row, at: page.write_formula(row, at, text, None, value)


def reader(columns, options=None, **plan):
    declared = tuple(Column(*one.split(":"), required=True) for one in columns.split())
    return formats.reader("xlsx", options or {}, ReadPlan(declared, **{"on_unmapped": "drop", **plan}))


def read(data, columns, options=None, **plan):
    made = reader(columns, options, **plan)
    made = made.with_undeclared(made.undeclared(data, "b.xlsx"))
    return [row.data if row.error is None else orjson.loads(row.error) for row in records_of(made, data)]


NOON = datetime(2026, 3, 1, 12, 0)
CELLS = [
    (7, {"int": 7, "float": 7.0, "string": "7", "bool": True, "decimal(38,2)": Decimal("7.00"), "date": None, "any": "7"}),
    (7.5, {"int": None, "float": 7.5, "string": "7.5", "decimal(38,1)": Decimal("7.5"), "decimal(38,0)": None}),
    (2.0**60, {"int": 2**60, "decimal(38,0)": Decimal(1152921504606847000), "string": "1152921504606847000"}),
    (0.1, {"decimal(38,2)": Decimal("0.10"), "string": "0.1"}),
    (True, {"bool": True, "string": "true", "int": 1, "date": None}),
    ("12.50", {"decimal(38,2)": Decimal("12.50"), "string": "12.50", "float": 12.5, "int": None}),
    (" x ", {"string": " x "}),
    ("true", {"bool": True, "int": None, "string": "true"}),
    (NOON, {"date_time": NOON.replace(tzinfo=UTC), "date": None, "string": "2026-03-01T12:00:00", "int": None}),
    (datetime(2026, 3, 1), {"date": date(2026, 3, 1), "date_time": datetime(2026, 3, 1, tzinfo=UTC), "string": "2026-03-01T00:00:00"}),
    ("2026-03-01 12:00:00", {"string": "2026-03-01 12:00:00", "date_time": NOON.replace(tzinfo=UTC)}),
    (styled(1.5, "[h]:mm"), {"float": 1.5, "date_time": None, "string": "1.5"}),
    (styled(60, "yyyy-mm-dd"), {"date": None}),
    (styled(1, "yyyy-mm-dd"), {"date": date(1900, 1, 1)}),
    (styled(46082.604166666664, "0.000"), {"float": 46082.6041666667, "date_time": None}),
    (formula("=2*5", 10), {"int": 10}),
    (formula("=1/0", "#DIV/0!"), {"string": None, "int": None, "any": None}),
    (formula("=NA()", "#N/A"), {"string": None}),
    ("#DIV/0!", {"string": "#DIV/0!", "int": None}),
]


@pytest.mark.parametrize(("cell", "fits"), CELLS)
def test_the_declared_type_decides_cell_by_cell(cell, fits):
    data = workbook([["k", "v"], ["first", "text"], ["second", cell]])
    for kind, value in fits.items():
        found = read(data, f"k:string v:{kind}")[1]
        assert (found["v"] if "category" not in found else None) == (pytest.approx(value, rel=1e-14) if isinstance(value, float) else value), kind


def test_an_error_cell_is_a_reject_with_its_text_and_place():
    [found] = read(workbook([["id", "v"], [1, formula("=1/0", "#DIV/0!")]], sheet="My sheet"), "id:int v:string")
    assert found["category"] == "type_coercion_failure"
    assert found["fields"] == {"id": "1", "v": "#DIV/0!"}
    assert "column 'v' ('My sheet'!B2): cannot read '#DIV/0!' as string" in found["detail"]


def test_an_error_cell_in_a_column_that_is_not_read_is_nothing():
    data = workbook([["id", "v"], [1, formula("=1/0", "#DIV/0!")]])
    assert read(data, "id:int") == [{"id": 1}]
    assert "category" in read(data, "id:int", on_unmapped="auto_widen")[0]


def test_numbers_keep_the_digits_that_texts_of_the_library_lose():
    assert read(workbook([["v"], [46082.604166666664], [0.1234567890123], ["x"]]), "v:string") == [{"v": "46082.60416666666"}, {"v": "0.1234567890123"}, {"v": "x"}]


def test_both_systems_of_dates():
    rows = [["d"], [date(2026, 3, 1)]]
    assert read(workbook(rows), "d:date") == read(workbook(rows, date_1904=True), "d:date") == [{"d": date(2026, 3, 1)}]
    assert moment_of(0.0, since_1904=True) == datetime(1904, 1, 1)
    assert moment_of(61.0, since_1904=False) == datetime(1900, 3, 1)
    assert moment_of(59.5, since_1904=False) == datetime(1900, 2, 28, 12)
    assert str(moment_of(-1.0, since_1904=False)) == "-1"
    assert str(moment_of(2958466.0, since_1904=False)) == "2958466"


def test_rows_and_columns_without_a_value_are_none():
    data = workbook({1: ["id", None, None, " name "], 3: [1, None, "x", "a"], 6: [2, None, None, None]})
    made = reader("id:int", {"header_row": 2}, on_unmapped="auto_widen")
    assert [column.name for column in made.undeclared(data, "f")] == ["col_2", "name"]
    rows = records_of(made.with_undeclared(made.undeclared(data, "f")), data)
    assert [(row.number, row.data) for row in rows] == [(1, {"id": 1, "col_2": '"x"', "name": '"a"'}), (2, {"id": 2, "col_2": None, "name": None})]


@pytest.mark.parametrize(
    ("options", "names"),
    [({"has_header": False}, "col_0:int col_1:string"), ({"has_header": False, "range": "A1:B2"}, "col_0:int col_1:string"), ({"has_header": False, "range": "b:c"}, "col_0:string col_1:int")],
)
def test_without_a_header_columns_have_numbers(options, names):
    data = workbook([[1, "a", 3], [2, "b", 4]])
    assert len(read(data, names, options)) == 2
    with pytest.raises(InputError, match="E238"):
        read(data, "id:int", options)


def test_what_is_read_of_a_sheet():
    data = workbook([["title"], [None, "id", "v", "x"], [None, 1, "a", "y"], [None, 2, "b", "z"], [None, "total", 3]])
    wanted = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    assert read(data, "id:int v:string", {"range": "B2:C4"}) == wanted
    assert read(data, "id:int v:string", {"range": "$C$4:$B$2"}) == wanted
    assert len(read(data, "id:int v:string", {"header_row": 2})) == 3
    assert read(data, "title:string", {"range": "A:A"}) == []
    with pytest.raises(InputError, match=r"b\.xlsx: Data!A1: E238: .*'id'"):
        read(data, "id:int")
    with pytest.raises(InputError, match="E238"):
        read(data, "id:int", {"range": "H20:J30"})
    with pytest.raises(InputError, match="E238"):
        read(data, "id:int", {"header_row": 99})


def test_tables_of_the_workbook():
    def table(made, page, row, at):
        page.add_table(row, at, row + 2, at + 1, {"name": "Orders", "columns": [{"header": "id"}, {"header": "v"}], "data": [[1, "a"], [2, "b"]]})

    data = workbook([["x"], [None, None, table], [], [], ["y"]], others=["First"])
    assert read(data, "id:int v:string", {"range": "orders"}) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    assert read(data, "id:int v:string", {"range": "Orders", "sheet": "Data"}) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    for options in ({"range": "Nothing"}, {"range": "Orders", "sheet": "First"}):
        with pytest.raises(InputError, match=r"E620: no table .*: Orders"):
            read(data, "id:int", options)


def test_sheets_by_name_and_number():
    data = workbook([["id"], [1]], others=["Cover", "Notes"], hidden=["Cover", "Notes"])
    assert read(data, "id:int") == read(data, "id:int", {"sheet": "Data"}) == read(data, "id:int", {"sheet": 3}) == [{"id": 1}]
    assert read(data, "other:int", {"sheet": 1}) == []
    for sheet in (4, "Dat"):
        with pytest.raises(InputError, match=r"E620: no sheet .*'Cover', 'Notes', 'Data'"):
            read(data, "id:int", {"sheet": sheet})


def test_merged_cells():
    data = workbook([["id", "r", "v"], [1, "north", 5], [2, None, 6], [3, "south", None]], merged=["B2:B3", "B4:C4"])
    assert [one["r"] for one in read(data, "id:int r:string v:any")] == ["north", None, "south"]
    filled = read(data, "id:int r:string v:any", {"merged": "fill"})
    assert [(one["r"], one["v"]) for one in filled] == [("north", "5"), ("north", "6"), ("south", '"south"')]


def test_merged_cells_beyond_the_last_value():
    def read_merged(merged, columns="id:int r:string"):
        data = repacked(workbook([["id", "r"], [1, "north"]], merged=["B2:B3"]), lambda _name, text: text.replace(b'ref="B2:B3"', f'ref="{merged}"'.encode()))
        return read(data, columns, {"merged": "fill"})

    assert read_merged("B2:B4") == [{"id": 1, "r": "north"}, {"id": None, "r": "north"}, {"id": None, "r": "north"}]
    assert read_merged("B2:D3", "id:int r:string col_3:string")[1] == {"id": None, "r": "north", "col_3": "north"}
    with pytest.raises(InputError, match=r"E621: .*merged cells"):
        read_merged("B2:XFD1048576")


def test_columns_of_one_name_are_an_input_error_where_one_is_read():
    data = workbook([["a", "b", " a "], [1, 2, 3]])
    assert read(data, "b:int") == [{"b": 2}]
    for plan in ({}, {"on_unmapped": "auto_widen"}):
        with pytest.raises(InputError, match=r"b\.xlsx: E224: Data!A1 and Data!C1 have one name, 'a'"):
            read(data, "a:int", **plan)


def test_formulas_that_nobody_computed_are_null_and_counted():
    made = openpyxl.Workbook()
    made.active.append(["=1+1", "title"])
    made.active.append(["id", "v"])
    made.active.append([1, "=2*5"])
    made.active.append(["=7", '="a"'])
    target = BytesIO()
    made.save(target)
    data = target.getvalue()
    assert read(data, "id:int v:any", {"header_row": 2}) == [{"id": 1, "v": None}]
    [remark] = reader("id:int v:any", {"header_row": 2}).remarks(data, "f")
    assert remark.startswith("W620: 3 formulas have no value")
    assert reader("id:int").remarks(workbook([["id"], [formula("=1", 1)], [formula('=""', "")]]), "f") != ()
    assert reader("id:int").remarks(workbook([["id"], [formula("=1", 1)]]), "f") == ()


def test_options_that_contradict_or_are_unknown():
    for wrong in ({"header_row": 2, "range": "A1:B2"}, {"header_row": 0}, {"sheet": 0}, {"sheet": True}, {"merged": "all"}, {"page": 1}):
        with pytest.raises(OptionError):
            reader("id:int", wrong)


# -- hostile files


def repacked(data, change):
    """The workbook with parts changed: `change` takes a name and bytes."""
    target = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(member.filename, change(member.filename, old.read(member)))
    return target.getvalue()


GOOD = workbook([["id"], [1]])


@pytest.mark.parametrize("data", [b"", b"id\n1\n", GOOD[:200], GOOD[: len(GOOD) // 2], GOOD[:-1], b"PK\x03\x04" + bytes(100), bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600)])
def test_damaged_files(data):
    with pytest.raises(InputError, match=r"^b\.xlsx: E621: cannot be read as a workbook"):
        read(data, "id:int")


def test_encrypted_files():
    with pytest.raises(InputError, match="E621: the workbook is encrypted"):
        read(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(512) + "EncryptedPackage".encode("utf-16-le"), "id:int")


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
@examples(40)
def test_a_changed_byte_gives_records_or_an_input_error(at, change):
    data = bytearray(GOOD)
    data[at] ^= change
    with suppress(InputError):
        read(bytes(data), "id:int")


def test_bombs():
    data = repacked(GOOD, lambda name, text: text + b" " * (80 << 20) if name == "xl/theme/theme1.xml" else text)
    with pytest.raises(InputError, match=r"E236"):
        read(data, "id:int")
    at = data.index(b"PK\x01\x02")
    while b"theme1" not in data[at : at + 80]:
        at = data.index(b"PK\x01\x02", at + 4)
    lying = data[: at + 24] + struct.pack("<I", 10) + data[at + 28 :]
    with pytest.raises(InputError, match=r"E236|E621"):
        read(lying, "id:int")


def test_cells_that_are_far_apart():
    rows = {0: ["id"], 1: [1], (1 << 20) - 1: [None] * ((1 << 14) - 1) + [5]}
    with pytest.raises(InputError, match=r"E621: .*too far apart"):
        read(workbook(rows), "id:int")
    assert read(workbook({0: ["id"], 1: [1], (1 << 20) - 1: [2]}), "id:int") == [{"id": 1}, {"id": 2}]


@given(st.lists(CELL), st.integers(1, 60))
@examples(200)
def test_the_extent_of_a_sheet(cells, block):
    """Empty cells do not count, whatever their tags look like, and wherever the text is cut."""
    texts = [form.format(place=f"{column_letters(column)}{row}", end="/>" if empty else "><v>c r='Z9'</v></c>") for row, column, empty, form in cells]
    filled = [(row, column) for row, column, empty, _ in cells if not empty]
    expected = Extent()
    for row, column in filled:
        expected.add(row, row, column, column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extent, "_BLOCK", block)
        assert extent.of_xml(f"<sheetData><row r='1'>{''.join(texts)}</row></sheetData>".encode()) == expected


def test_declarations_are_refused():
    def declared(name, text):
        return text.replace(b"<workbook", b'<!DOCTYPE x [<!ENTITY a "b">]><workbook', 1) if name == "xl/workbook.xml" else text

    with pytest.raises(InputError, match="E621"):
        read(repacked(workbook([["id"], [1]]), declared), "id:int", {"merged": "fill"})


ODS = """<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2">
<office:body><office:spreadsheet><table:table table:name="Data">{rows}</table:table></office:spreadsheet></office:body></office:document-content>"""


def ods(*rows):
    """The bytes of an OpenDocument sheet."""
    cell = '<table:table-cell office:value-type="{}" office:{}="{}"{}><text:p>{}</text:p></table:table-cell>'
    text = "".join(f"<table:table-row>{''.join(cell.format(*one) for one in row)}</table:table-row>" for row in rows)
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        made.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        made.writestr("META-INF/manifest.xml", '<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>')
        made.writestr("content.xml", ODS.format(rows=text))
    return target.getvalue()


def head(*names):
    return [("string", "x", "", "", name) for name in names]


def test_sheets_of_open_document():
    day, elapsed = ("date", "date-value", "2026-03-01", "", "1.3.26"), ("time", "time-value", "PT36H00M00S", "", "36:00")
    data = ods(head("id", "d", "e", "n"), [("float", "value", "1", "", "1"), day, elapsed, ("float", "value", "0.30000000000000004", "", "0.3")])
    assert read(data, "id:int d:date e:float n:string") == [{"id": 1, "d": date(2026, 3, 1), "e": 1.5, "n": "0.30000000000000004"}]
    with pytest.raises(InputError, match=r"E621: .*merged: fill"):
        read(data, "id:int", {"merged": "fill"})


def test_repeated_cells_of_open_document_do_not_fill_the_memory():
    data = ods(head("id"), [("float", "value", "1", ' table:number-columns-repeated="16384"', "1")] * 5000)
    with pytest.raises(InputError, match="E621"):
        read(data, "id:int")


# -- writing

COLUMNS = (
    Column("id", "int"), Column("f", "float"), Column("b", "bool"), Column("s", "string"), Column("d", "date"), Column("t", "date_time"),
    Column("p", "decimal(38,2)"), Column("a", "array"), Column("x", "any"),
)  # fmt: skip
ROWS = [
    (1, 0.1, True, "=1+1", date(2026, 3, 1), datetime(2026, 3, 1, 14, 30, tzinfo=UTC), Decimal("12.50"), '[1,"x"]', "2.50"),
    (1234567890123456, 0.1 + 0.2, False, "007", date(1900, 2, 28), datetime(1812, 1, 1, tzinfo=UTC), Decimal("12345678901234567890.10"), "[]", '"t"'),
    (10**18, float("nan"), None, "http://x.org", date(9999, 12, 31), None, Decimal("-0.05"), None, '{"a":1}'),
    (None,) * 9,
]


def written(rows=ROWS, columns=COLUMNS, options=None, cut=None, **plan):
    session = formats.writer("xlsx", options or {}, WritePlan(columns, name="report", **plan)).open()
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in columns])
    batch = pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    batches = [batch] if cut is None else [batch.slice(0, cut), batch.slice(cut)]
    return session.header() + b"".join(map(session.render, batches)) + session.footer()


def sheet_of(data):
    return openpyxl.load_workbook(BytesIO(data)).active


def test_values_have_types_and_lose_no_digit():
    sheet = sheet_of(written())
    assert [[cell.value for cell in row] for row in sheet.iter_rows(max_row=4)] == [
        [column.name for column in COLUMNS],
        [1, 0.1, True, "=1+1", datetime(2026, 3, 1), datetime(2026, 3, 1, 14, 30), 12.5, '[1,"x"]', 2.5],
        ["1234567890123456", "0.30000000000000004", False, "007", "1900-02-28", "1812-01-01T00:00:00", "12345678901234567890.10", "[]", "t"],
        [10**18, "NaN", None, "http://x.org", datetime(9999, 12, 31), None, -0.05, None, '{"a":1}'],
    ]
    assert [sheet[place].number_format for place in ("A2", "E2", "F2", "G2")] == ["General", "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "0.00"]
    assert {cell.data_type for cell in sheet["D"][:4]} == {"s"}
    assert (sheet.title, sheet.freeze_panes, sheet.auto_filter.ref, sheet["A1"].font.b, sheet["A2"].font.b) == ("report", "A2", None, True, False)


def test_decimals_among_values_of_any_type_lose_no_digit():
    texts = ("12.50E0", "-0.500E0", "12345678901234567.890E0", "9999999999999999999999999999999999.999E0", "7E0", '"1.5E0"', '["1E0",2.50E0]', "7.5")
    sheet = sheet_of(written([(text,) for text in texts], (Column("x", "any"),)))
    found = [(cell.value, cell.number_format) for cell in sheet["A"][1:]]
    assert found[:5] == [(12.5, "0.00"), (-0.5, "0.000"), ("12345678901234567.890", "General"), ("9999999999999999999999999999999999.999", "General"), (7, "0")]
    assert [value for value, _ in found[5:]] == ["1.5E0", '["1E0",2.50]', 7.5]


def test_a_time_that_a_sheet_would_round_to_the_year_10000_is_text():
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    rows = [(last.replace(microsecond=part),) for part in (999_499, 999_500, 999_999)]
    data = written(rows, (Column("t", "date_time"),))
    assert [cell.value for cell in sheet_of(data)["A"][2:]] == ["9999-12-31T23:59:59.9995", "9999-12-31T23:59:59.999999"]
    assert [row["t"] for row in read(data, "t:date_time")] == [last.replace(microsecond=999_000), rows[1][0], rows[2][0]]


def test_the_same_rows_are_the_same_bytes():
    assert written() == written(cut=1) == written(cut=3)
    made = openpyxl.load_workbook(BytesIO(written())).properties
    assert (made.created, made.creator) == (datetime(1980, 1, 1), None)


def test_options_of_a_workbook():
    columns = (Column("short", "int"), Column("long", "string"))
    rows = [(1, "x" * 20), (2, "y" * 100)]
    sheet = sheet_of(written(rows, columns, {"sheet": "Übersicht", "freeze": False, "filter": True}))
    assert (sheet.title, sheet.freeze_panes, sheet.auto_filter.ref) == ("Übersicht", None, "A1:B3")
    assert 5 <= sheet.column_dimensions["A"].width <= 10
    assert 58 <= sheet.column_dimensions["B"].width <= 61
    sheet = sheet_of(written(rows, columns, {"widths": {"short": 30}}))
    assert sheet.column_dimensions["A"].width == pytest.approx(30, abs=1)
    assert "B" not in sheet_of(written(rows, columns, {"widths": "none"})).column_dimensions
    bare = sheet_of(written(rows, columns, include_header=False))
    assert (bare["A1"].value, bare.freeze_panes) == (1, None)


@pytest.mark.parametrize("name", ["", "x" * 32, "a/b", "a[b", "q?", "'a", "History"])
def test_names_that_sheets_do_not_have(name):
    with pytest.raises(OptionError, match="cannot be the name of a sheet") as caught:
        formats.writer("xlsx", {"sheet": name}, WritePlan(COLUMNS, name="report"))
    assert caught.value.code == "E622"
    if name:
        with pytest.raises(OptionError, match="cannot be the name"):
            formats.writer("xlsx", {}, WritePlan(COLUMNS, name=name))


def test_what_is_too_much_for_a_sheet():
    column = (Column("s", "string"),)
    assert len(sheet_of(written([("x" * 32767,)], column))["A2"].value) == 32767
    for text in ("x" * 32768, "😀" * 16384):
        with pytest.raises(OutputError, match=r"E623: column 's' .*A2"):
            written([(text,)], column)
    session = formats.writer("xlsx", {}, WritePlan((Column("n", "int"),), name="r")).open()
    with pytest.raises(OutputError, match="E623: more than 1,048,575 rows"):
        session.render(pa.record_batch({"n": pa.nulls(1 << 20, pa.int64())}))


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=20)


@given(st.lists(st.tuples(st.integers(-(10**15) + 1, 10**15 - 1), st.floats(allow_nan=False, allow_infinity=False), TEXTS, st.dates(date(1900, 3, 1))), max_size=6))
@examples(12)
def test_there_and_back(rows):
    columns = (Column("i", "int"), Column("f", "float"), Column("s", "string"), Column("d", "date"))
    data = written(rows, columns)
    assert read(data, "i:int f:float s:string d:date") == [dict(zip("ifsd", row, strict=True)) for row in rows]


@given(st.integers(0, (1 << 14) - 1))
@examples(20)
def test_letters_of_columns(number):
    assert column_number(column_letters(number)) == number
    assert place("Data", 0, number) == f"Data!{openpyxl.utils.get_column_letter(number + 1)}1"


def test_ranges():
    assert Area.parse("B2:F100") == Area.parse("$f$100:$b$2") == (1, 1, 99, 5)
    assert Area.parse("C:A") == (0, 0, (1 << 20) - 1, 2)
    assert [Area.parse(text) for text in ("B0:C1", "A1:B1048577", "XFE:XFF", "2:3", "Orders", "")] == [None] * 6
