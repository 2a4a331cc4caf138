"""`errata init --from FILE…`, then `errata check` and `errata run`: a pipeline that works, or a message that says why not."""

import csv
import datetime as dt
import gzip
import io
import json
import random
import re
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.cli import main
from errata.scaffold import samples, sources
from tests.support.examples import examples


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    """Write files, guess a pipeline from them, and return what was printed."""
    monkeypatch.chdir(tmp_path)

    def guess(*given: str, code: int = 0, **files: bytes | str) -> str:
        for name, content in files.items():
            write(tmp_path, name, content)
        found = main(["init", "--from", *(given or files)])
        errors = capsys.readouterr().err
        assert found == code, errors
        return errors

    return guess


def write(folder: Path, name: str, content: bytes | str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def ran(capsys, code: int = 0) -> str:
    assert main(["check", "pipeline.yaml"]) == 0, capsys.readouterr().err
    nodes = len(re.findall(r"(?m)^  - type: ", Path("pipeline.yaml").read_text()))
    assert capsys.readouterr().err == f"pipeline.yaml: {nodes} nodes, no errors\n"
    assert main(["run", "pipeline.yaml", "--quiet"]) == code, capsys.readouterr().err
    return capsys.readouterr().err


def rows(path: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(Path(path).read_text(encoding="utf-8"))))


MONEY = "Nr.;Kunde;Betrag;Datum\n0007;Müller;1.234,50;31.01.2026\n0008;Ödön;-7,5;01.02.2026\n0009;Zoë;;28.02.2026\n"


def test_amounts_with_a_decimal_comma(project, capsys):
    stderr = project(**{"rechnungen.csv": MONEY.encode("cp1252")})
    assert "rechnungen: rechnungen.csv, 3 records, 4 columns, key nr" in stderr
    assert "rechnungen.nr: 3 of 3 values begin with a zero: it is a string, so that '0007' stays whole" in stderr
    assert "the file is no UTF-8 (byte 29), so it is read as cp1252: '0007;Müller;1.234,'" in stderr
    ran(capsys)
    assert rows("out/rechnungen.csv") == [
        ["nr", "Kunde", "Betrag", "Datum"],
        ["0007", "Müller", "1234.50", "2026-01-31"],
        ["0008", "Ödön", "-7.50", "2026-02-01"],
        ["0009", "Zoë", "", "2026-02-28"],
    ]


@pytest.mark.parametrize(
    ("values", "later", "written"),
    [
        (["1.234,50", "7,5"], {"12.50": "12.50", "1.234": "1234.00", "1,234.50": None, "1.23,4": None, "1.2345,0": None}, ["1234.50", "7.50"]),
        (["1,234.50", "7.5"], {"12,50": None, "1,234": "1234.00", "1.234,50": None, "12.50": "12.50"}, ["1234.50", "7.50"]),
        (["1.234,50 €", "(7,50)"], {"12.50 €": None, "(7,50": None, "-3,00 €": "-3.00"}, ["1234.50", "-7.50"]),
    ],
)
def test_a_later_number_in_another_form_is_rejected_or_read_right(project, capsys, values, later, written):
    given = ["id;price", *(f"{number};{value}" for number, value in enumerate(values))]
    project(**{"a.csv": "\n".join(given) + "\n"})
    ran(capsys)
    assert [row[1] for row in rows("out/a.csv")[1:]] == written
    write(Path(), "a.csv", "\n".join([*given, *(f"{number};{value}" for number, value in enumerate(later, 100))]) + "\n")
    ran(capsys, code=2 if None in later.values() else 0)
    assert dict(rows("out/a.csv")[1 + len(values) :]) == {str(number): value for number, value in enumerate(later.values(), 100) if value is not None}


@pytest.mark.parametrize(
    ("others", "later", "read"),
    [
        ("Betrag\n1;19%;1.234,56\n2;7%;7,50", "5,5% 5,500% 5.500% 1.234,5% 21%", ["5.50", "5.50", None, None, "21.00"]),
        ("Datum\n1;19%;31.01.2026\n2;7%;01.02.2026", "5,5% 5.5% 5,500% 5.500% 21%", ["5.50", "5.50", None, None, "21.00"]),
        ("amount\n1;19%;1,234.56\n2;7%;7.50", "5,5% 5.5% 5,500% 21%", [None, "5.50", None, "21.00"]),
        ("Betrag\n1;19 €;1.234,56\n2;7 €;7,50", "5,5 € 1.234 €", ["5.50", None]),
    ],
)
def test_whole_numbers_take_no_separators_of_thousands_and_the_decimals_of_their_file(project, capsys, others, later, read):
    given = f"id;Satz;{others}\n"
    project(**{"a.csv": given})
    ran(capsys)
    assert [row[1] for row in rows("out/a.csv")[1:]] == ["19.00", "7.00"]
    texts = re.findall(r"\S+(?: €)?", later)
    last = others.rsplit(";", 1)[1]
    write(Path(), "a.csv", given + "".join(f"{number};{text};{last}\n" for number, text in enumerate(texts, 100)))
    ran(capsys, code=2 if None in read else 0)
    assert dict(row[:2] for row in rows("out/a.csv")[3:]) == {str(number): value for number, value in enumerate(read, 100) if value is not None}


def test_decimals_of_one_column_decide_those_of_another(project, capsys):
    stderr = project(**{"a.csv": "id;pieces;price\n1;1.234;1,50\n2;12.500;2,75\n"})
    assert "a.pieces: '1.234' is read with ',' as the point of decimals, since other columns have it" in stderr
    ran(capsys)
    assert [row[1] for row in rows("out/a.csv")] == ["pieces", "1234", "12500"]


def test_xml_fields_around_records_are_named_in_the_file(project):
    stderr = project(**{"a.xml": b"<r><made>2026-03-01</made><o i='1'/><o i='2'/></r>"})
    assert "a: fields around the records, such as /r/made, are not read" in stderr
    assert "# Unsure: fields around the records, such as /r/made, are not read; an envelope with an xml_path reads them." in Path("pipeline.yaml").read_text()


def test_sensors_in_nested_json(project, capsys):
    sensors = {"plant": {"name": "north"}, "readings": [
        {"device": {"id": f"t{device}"}, "at": f"2026-03-01T{hour:02}:00:00Z", "values": {"temp": 20 + hour / 4, "ok": True}} for device in range(2) for hour in range(3)
    ]}  # fmt: skip
    project(**{"sensors.json": json.dumps(sensors, indent=1)})
    assert "primary_key: [device_id, at]" in Path("pipeline.yaml").read_text()
    ran(capsys)
    assert rows("out/sensors.csv")[:3] == [
        ["device_id", "at", "values_temp", "values_ok"], ["t0", "2026-03-01T00:00:00", "20", "true"], ["t0", "2026-03-01T01:00:00", "20.25", "true"],
    ]  # fmt: skip


def test_amounts_around_exploded_arrays_are_not_summed_up(project, capsys):
    orders = [{"id": number, "city": "Oslo" if number % 2 else "Rome", "total": 7.5, "lines": [{"sku": "A", "price": 2.5}] * (number % 3)} for number in range(6)]
    stderr = project(**{"a.json": json.dumps(orders)})
    assert "2 of 6 records have none and are left out" in stderr
    text = Path("pipeline.yaml").read_text()
    assert "emit price = sum(price)" in text
    assert "sum(total)" not in text
    xml = "".join(f"<o id='{number}' total='7.50'><city>{'Oslo' if number % 2 else 'Rome'}</city><l><price>2.50</price></l><l><price>3.50</price></l></o>" for number in range(4))
    Path("pipeline.yaml").unlink()
    project(**{"b.xml": f"<r>{xml}</r>"})
    text = Path("pipeline.yaml").read_text()
    assert "emit price = sum(price)" in text
    assert "sum(total)" not in text
    ran(capsys)


def test_an_export_of_xml(project, capsys):
    project(**{"export.xml": """<?xml version="1.0"?><shop><head><made>2026-03-01</made></head><orders>
        <order id="1"><customer><name>Ann</name></customer><line n="1"><sku>A</sku><price cur="EUR">2.50</price></line><line n="2"><sku>B</sku><price cur="EUR">3.00</price></line></order>
        <order id="2"><customer><name>Bob</name></customer><line n="1"><sku>A</sku><price cur="EUR">2.50</price></line></order></orders></shop>"""})
    ran(capsys)
    assert rows("out/export.csv") == [
        ["id", "customer_name", "n", "sku", "price", "price_cur"], ["1", "Ann", "1", "A", "2.50", "EUR"], ["1", "Ann", "2", "B", "3.00", "EUR"], ["2", "Bob", "1", "A", "2.50", "EUR"],
    ]  # fmt: skip


def test_kinds_of_records_in_one_file_are_sources(project, capsys):
    stderr = project(**{"shop.json": json.dumps({
        "made": "2026-03-01", "customers": [{"code": "C1", "name": "Ann"}, {"code": "C2", "name": "Bob"}],
        "orders": [{"id": number, "customer": f"C{number % 2 + 1}", "price": number + 0.5} for number in range(1, 5)],
    })})  # fmt: skip
    assert "orders: shop.json (orders), 4 records, 3 columns, key id" in stderr
    assert "customers: shop.json (customers), 2 records, 2 columns, key code" in stderr
    assert "fields around the records, such as made, are not read" in stderr
    uncommented()
    ran(capsys)
    assert rows("out/orders_with_customers.csv")[1] == ["1", "C2", "1.50", "Bob"]


def test_keys_that_files_share_by_chance_make_no_deliveries(project, capsys):
    stderr = project(**{"north.csv": "id,price\n1,2.50\n2,3.50\n3,1.25\n", "south.csv": "id,price\n2,4.50\n3,1.75\n4,9.99\n"})
    assert "upsert" not in stderr
    ran(capsys)
    (written,) = Path("out").glob("*.csv")
    assert len(rows(str(written))) == 7


def test_a_correction_of_the_file_is_a_correction_of_the_output(project, capsys):
    project(**{"a.csv": "id,price\n1,2.50\n2,3.50\n3,4.50\n"})
    ran(capsys)
    write(Path(), "a.csv", "id,price\n1,2.50\n2,3.75\n3,4.50\n")
    ran(capsys)
    assert main(["diff", "pipeline.yaml", "a_out", "--from", "1", "--to", "2", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out) == {"op": "+C", "before": {"id": 2, "price": 3.50}, "after": {"id": 2, "price": 3.75}}
    assert main(["verify", "pipeline.yaml"]) == 0


def test_files_of_one_shape_are_a_source_with_a_glob(project, capsys):
    stderr = project(**{"in/o-2026-01.csv": "id,price\n1,2.50\n2,3.50\n", "in/o-2026-02.csv": "id,price\n3,4.50\n"})
    assert "o: 2 files, 3 records, 2 columns, key id" in stderr
    assert 'glob: "in/o-2026-*.csv"' in Path("pipeline.yaml").read_text()
    ran(capsys)
    assert rows("out/o.csv") == [["id", "price"], ["1", "2.50"], ["2", "3.50"], ["3", "4.50"]]


def test_a_pattern_that_would_match_other_files_is_a_list(project):
    write(Path(), "o-3.csv", "other\n")
    project("o-1.csv", "o-2.csv", **{"o-1.csv": "id,v\n1,2\n", "o-2.csv": "id,v\n3,4\n"})
    assert "paths: [o-1.csv, o-2.csv]" in Path("pipeline.yaml").read_text()


def test_keys_that_come_again_in_later_files_make_deliveries(project, capsys):
    stderr = project(**{"o-1.csv": "id,price\n1,2.50\n2,3.50\n3,1.25\n", "o-2.csv": "id,price\n2,4.50\n3,1.75\n4,9.99\n"})
    assert "strategy upsert" in stderr
    ran(capsys)
    assert rows("out/o.csv") == [["id", "price"], ["1", "2.50"], ["2", "4.50"], ["3", "1.75"], ["4", "9.99"]]


def uncommented() -> None:
    """Take the signs away from the nodes that the file suggests."""
    path, lines, inside = Path("pipeline.yaml"), [], False
    for line in path.read_text().splitlines():
        inside = (inside or line.startswith("  # - type: ")) and line.startswith("  #")
        lines.append("  " + line.removeprefix("  # ") if inside else line)
    path.write_text("\n".join(lines) + "\n")


def test_suggested_nodes_work_without_their_signs(project, capsys):
    project(**{
        "orders.csv": "order_id;customer;price;name\n1;C1;2,50;x\n2;C2;3,50;y\n3;C1;4,50;x\n4;C1;1,00;y\n",
        "customers.csv": "code,name,city\nC1,Ann,Rome\nC2,Bob,Oslo\nC3,Cy,Rome\n",
    })  # fmt: skip
    assert "2 of the 2 values of orders.customer are keys of customers (code)" in Path("pipeline.yaml").read_text()
    uncommented()
    ran(capsys)
    assert rows("out/orders_with_customers.csv")[1] == ["1", "C1", "2.50", "x", "Ann", "Rome"]
    assert rows("out/orders_by_customer.csv") == [["customer", "records", "price"], ["C1", "3", "8.00"], ["C2", "1", "3.50"]]


def test_values_that_do_not_fit_are_counted_and_rejected(project, capsys):
    lines = [f"{number},2026-01-{number % 28 + 1:02}" for number in range(997)] + ["997,soon", "998,later", "999,never"]
    stderr = project(**{"a.csv": "id,day\n" + "\n".join(lines) + "\n"})
    assert "a.day: 3 of 1,000 values are no date, such as 'soon': their records are rejected" in stderr
    ran(capsys, code=2)
    assert len(rows("out/rejected.csv")) == 4


def test_typed_columns(project, capsys):
    table = pa.table({
        "id": pa.array([2, 1]), "price": pa.array([Decimal("2.50"), None], pa.decimal128(9, 2)), "day": pa.array([dt.date(2026, 1, 4), dt.date(2026, 1, 5)]),
        "who": pa.array([{"name": "a", "age": 5}, {"name": "b", "age": None}]), "tags": pa.array([["x"], []]),
    })  # fmt: skip
    pq.write_table(table, "a.parquet")
    project("a.parquet")
    ran(capsys)
    assert rows("out/a.csv") == [["id", "price", "day", "who_name", "who_age", "tags"], ["1", "", "2026-01-05", "b", "", "[]"], ["2", "2.50", "2026-01-04", "a", "5", '["x"]']]


def test_one_wrong_cell_of_a_sheet_does_not_change_the_type_of_its_column(project, capsys):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook("b.xlsx", {"default_date_format": "yyyy-mm-dd"})
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ["id", "day", "pieces"])
    for number in range(1, 31):
        sheet.write(number, 0, number)
        sheet.write(number, 1, "soon" if number == 7 else dt.datetime(2026, 3, number))
        sheet.write(number, 2, "eight" if number == 8 else number)
    book.close()
    stderr = project("b.xlsx")
    assert "b.day: 1 of 30 values is no date, 'soon': its record is rejected" in stderr
    assert "b.pieces: 1 of 30 values is no number, 'eight': its record is rejected" in stderr
    ran(capsys, code=2)
    assert rows("out/b.csv")[:2] == [["id", "day", "pieces"], ["1", "2026-03-01", "1"]]
    assert [row[0] for row in rows("out/b.csv")[1:]] == [str(number) for number in range(1, 31) if number not in (7, 8)]


def test_sheets_with_the_same_columns_are_merged_without_the_signs(project, capsys):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook("b.xlsx")
    for title, first in (("January", 1), ("February", 10)):
        sheet = book.add_worksheet(title)
        sheet.write_row(0, 0, ["id", "price"])
        for row in (1, 2):
            sheet.write_row(row, 0, [first + row, row + 0.5])
    book.close()
    project("b.xlsx")
    uncommented()
    ran(capsys)
    assert sorted(rows("out/january_and_february.csv")[1:]) == [["11", "1.50"], ["12", "2.50"], ["2", "1.50"], ["3", "2.50"]]


def test_a_sheet_with_a_title_above_its_header(project, capsys):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook("b.xlsx")
    sheet = book.add_worksheet()
    for number, row in enumerate([["Budget, state of March"], [], ["id", "dept", "amount"], [1, "A", 10.5], [2, "B", 20.5], ["Total", None, 31]]):
        sheet.write_row(number, 0, row)
    book.close()
    stderr = project("b.xlsx")
    assert "b: row 3 has the names of the columns (options.header_row), as 2 of 3 columns have no name in row 1" in stderr
    assert "b: the last record, 'Total', looks like a sum of the others" in stderr
    ran(capsys)
    assert rows("out/b.csv")[0] == ["id", "dept", "amount"]


def test_a_sheet_without_a_header_says_so(project):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook("b.xlsx")
    book.add_worksheet().write_row(0, 0, ["Budget"])
    book.get_worksheet_by_name("Sheet1").write_row(1, 1, [1, 2])
    book.close()
    assert "b: 2 of 3 columns have no name in row 1: options.header_row names the row that has them" in project("b.xlsx")


@pytest.mark.parametrize(("last", "is_sum"), [("Summe;;1.234,50", True), ("Grand total:;;5,00", True), ("8;Totally Ltd;5,00", False), ("Total SE;x;1,00", False)])
def test_a_record_that_sums_up_the_others_is_told(project, last, is_sum):
    Path("a.csv").write_text(f"nr;customer;amount\n7;C1;1.234,50\n9;C2;2,00\n{last}\n", "utf-8")
    assert ("looks like a sum of the others" in project("a.csv")) == is_sum


def test_sheets_of_notes_and_empty_sheets_are_left_out(project, capsys):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook("b.xlsx")
    for title, table in {
        "Read me": [["Sales of the shops, 2026"], ["Figures are sent by the shops each Monday."], ["Ask Ann before you change one."], ["March"]],
        "Sales": [["id", "price"], [1, 2.5], [2, 3.5]],
        "Blank": [],
        "Header": [["a", "b"]],
        "Codes": [["code"], ["North of the river"], ["A"], ["B"]],
    }.items():
        sheet = book.add_worksheet(title)
        for number, row in enumerate(table):
            sheet.write_row(number, 0, row)
    book.close()
    stderr = project("b.xlsx")
    assert "sales: sheet 'Read me' is left out: it has sentences in one column, no table" in stderr
    assert "sales: sheet 'Blank' is left out: it has no records" in stderr
    assert "sales: sheet 'Header' is left out: it has no records" in stderr
    ran(capsys)
    assert rows("out/sales.csv") == [["id", "price"], ["1", "2.50"], ["2", "3.50"]]
    assert sorted(path.stem for path in Path("out").iterdir()) == ["codes", "sales"]


def test_workbooks_and_avro(project, capsys):
    xlsxwriter, fastavro = pytest.importorskip("xlsxwriter"), pytest.importorskip("fastavro")
    book = xlsxwriter.Workbook("b.xlsx")
    for number, row in enumerate([["Order No.", "Price", "Code"], [1, 2.5, "007"], [2, 3, "008"]]):
        book.worksheets()[0].write_row(number, 0, row) if number else book.add_worksheet().write_row(0, 0, row)
    book.close()
    with Path("c.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": [{"name": "k", "type": "string"}, {"name": "v", "type": ["null", "long"]}]}, [{"k": "a", "v": 1}, {"k": "b", "v": None}])
    several = xlsxwriter.Workbook("d.xlsx")
    days = several.add_format({"num_format": "yyyy-mm-dd"})
    sales, shops, _ = several.add_worksheet("Sales 2026"), several.add_worksheet("Shops"), several.add_worksheet("Empty")
    for number, row in enumerate([["id", "day", "price"], [1, dt.datetime(2026, 3, 1), 2.5], [2, dt.datetime(2026, 3, 2), 3]]):
        for column, value in enumerate(row):
            _ = sales.write_datetime(number, column, value, days) if isinstance(value, dt.datetime) else sales.write(number, column, value)
    for number, row in enumerate([["code", "city"], ["A", "Rome"], ["B", "Oslo"]]):
        shops.write_row(number, 0, row)
    several.close()
    stderr = project("b.xlsx", "c.avro", "d.xlsx")
    assert "sales_2026: d.xlsx (Sales 2026), 2 records" in stderr
    ran(capsys)
    assert rows("out/sales_2026.csv") == [["id", "day", "price"], ["1", "2026-03-01", "2.50"], ["2", "2026-03-02", "3.00"]]
    assert rows("out/shops.csv") == [["code", "city"], ["A", "Rome"], ["B", "Oslo"]]
    assert rows("out/b.csv") == [["order_no", "Price", "Code"], ["1", "2.50", "007"], ["2", "3.00", "008"]]
    assert rows("out/c.csv") == [["k", "v"], ["a", "1"], ["b", ""]]


HOSTILE: dict[str, tuple[dict[str, bytes], int | str]] = {
    "empty": ({"a.csv": b""}, "the file is empty"),
    "blank lines": ({"a.csv": b"\n \n\n"}, "the file is empty"),
    "header alone": ({"a.csv": b"id,name\n"}, 0),
    "one column": ({"a.csv": b"name\nx\ny\n"}, 0),
    "one value": ({"a.csv": b"5\n"}, 0),
    "two columns of one name": ({"a.csv": b"id,x,x,y\n1,2,3,4\n2,3,4,5\n"}, 0),
    "all columns of one name": ({"a.csv": b"x,x\n1,2\n"}, "every column has a name that another one has"),
    "byte order mark": ({"a.csv": b"\xef\xbb\xbfid,name\n1,a\n2,b\n"}, 0),
    "utf-16": ({"a.csv": "id,name\n1,ä\n2,b\n".encode("utf-16")}, 0),
    "utf-16 without a mark": ({"a.csv": "id,name\n1,ä\n2,b\n".encode("utf-16-le")}, 0),
    "ragged": ({"a.csv": b"id,name,v\n1,a,2\n2,b\n3,c,4,5\n4,d,6\n5,e,7\n6,f,8\n7,g,9\n"}, 2),
    "names": ({"a.csv": 'Order No.,"a ""q"" b",${HOME},emit,1st,ü,  x ,#,a:b,"new\nline",null,\n1,2,3,4,5,6,7,8,9,10,11,12\n2,2,3,4,5,6,7,8,9,10,11,12\n'.encode()}, 0),
    "values": ({"a.csv": b'id,t\n1,"# no\n"\n2,"""; x: ${Y}"\n3,\x1b[31m\n'}, 0),
    "title": ({"a.csv": b"Statement\n\nid,v,w\n1,2,3\n4,5,6\n7,8,9\n"}, "the header is not the first line"),
    "open quote": ({"a.csv": b'id,t\n1,"a,b\n2,c\n'}, "a quoted field is never closed"),
    "carriage returns": ({"a.csv": b"id,name\r1,a\r2,b\r"}, 0),
    "bytes": ({"a.csv": random.Random(1).randbytes(5_000)}, "the bytes are no text"),
    "another program's file": ({"a.bin": bytes(range(256)) * 20}, "neither text nor a format that Errata reads"),
    "no JSON": ({"a.json": b"hello"}, "not JSON"),
    "cut JSON": ({"a.json": b'{"a": 1'}, "no record with fields"),
    "no objects": ({"a.json": b"[1, 2]"}, "no record with fields"),
    "objects and other values": ({"a.json": b'[{"id":1,"v":{"a":1}},{"id":2,"v":3},{"id":3,"v":[1]},{"id":4,"v":"s"}]'}, 0),
    "points in names": ({"a.json": b'[{"a.b":1,"c":{"d.e":2}},{"a.b":2,"c":{"d.e":3}}]'}, 0),
    "a member without a name": ({"a.json": b'[{"":1,"id":2},{"":2,"id":3}]'}, 0),
    "deep": ({"a.json": b'[{"id":1,"x":' + b'{"a":' * 20 + b"1" + b"}" * 20 + b"}]"}, 0),
    "names that hide names": ({"a.json": b'[{"id":1,"lines":[{"id":7}]},{"id":2,"lines":[]}]'}, 0),
    "a broken line": ({"a.ndjson": b'{"id":1}\nnope\n{"id":3}\n'}, 2),
    "JSON in UTF-16": ({"a.json": '[{"a":"ä"}]'.encode("utf-16")}, "JSON is UTF-8"),
    "XML without records": ({"a.xml": b"<r/>"}, "no record with fields"),
    "XML of one record": ({"a.xml": b"<r><a>1</a><b>2</b></r>"}, 0),
    "XML of texts": ({"a.xml": b"<r><a>1</a><a>2</a></r>"}, 0),
    "broken XML": ({"a.xml": b"<r><a></r>"}, "not well-formed XML"),
    "XML with entities": ({"a.xml": b'<!DOCTYPE r [<!ENTITY a "x">]><r><a>&a;</a></r>'}, "it declares entities"),
    "a damaged table": ({"a.parquet": b"PAR1 nothing"}, "cannot be read as Parquet"),
    "compressed": ({"a.csv.gz": gzip.compress(b"id,name\n1,a\n2,b\n")}, 0),
    "no archive": ({"a.csv.gz": b"id,name\n1,a\n"}, "cannot be decompressed"),
    "strange file names": ({"a[1]$b {x}.csv": b"id,b\n1,2\n2,3\n3,4\n", "заказы.csv": b"id,c\n1,2\n", "2026.csv": b"id,d\n1,2\n"}, 0),
    "a name with a line end": ({"a\n- b.csv": b"id,b\n1,2\n"}, "characters that a pipeline file cannot hold"),
    "inputs where outputs go": ({"out/a.csv": b"id,b\n1,2\n2,3\n3,4\n"}, 0),
    "two orders of days and months": ({"us.csv": b"id,d\n1,01/31/2026\n2,02/03/2026\n", "eu.csv": b"nr;t\n1;31/01/2026\n2;03/02/2026\n"}, 0),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_input_ends_in_a_message_or_a_pipeline_that_works(case, project, capsys):
    files, outcome = HOSTILE[case]
    if isinstance(outcome, str):
        stderr = project(code=4, **files)
        assert outcome in stderr
        assert "help:" in stderr or "line" in stderr or "cannot be" in stderr
        assert "Nothing was changed." in stderr
        assert not Path("pipeline.yaml").exists()
    else:
        project(**files)
        ran(capsys, code=outcome)


def wide(columns: int) -> str:
    return ",".join(f"c{number}" for number in range(columns)) + "\n" + ",".join(["1"] * columns) + "\n"


@pytest.mark.parametrize("columns", [300, pytest.param(10_000, marks=pytest.mark.deep)])
def test_many_columns(project, capsys, columns):
    assert f"{columns:,} columns" in project(**{"a.csv": wide(columns)})
    ran(capsys)


def test_more_columns_than_a_file_may_have(project):
    assert "E228: 10,001 columns or more" in project(code=4, **{"a.csv": wide(10_001)})


def test_nothing_is_written_over(project):
    project(**{"a.csv": "id,b\n1,2\n"})
    Path("pipeline.yaml").write_text("mine")
    assert "pipeline.yaml exists" in project("a.csv", code=4)
    assert Path("pipeline.yaml").read_text() == "mine"
    assert main(["init", "--from", "a.csv", "--force"]) == 0


def test_databases_datasets_and_lines_of_invoices(project, capsys):
    with closing(sqlite3.connect("rates.db")) as base, base:
        base.execute("create table rates (id int)")
    stderr = project("rates.db", code=4)
    assert "rates.db: a SQLite database" in stderr
    assert "declare it as a connection in errata.toml" in stderr
    assert "docs/reference/databases.md" in stderr
    write(Path(), "set/refs/head", "x")
    stderr = project("set", code=64)
    assert "type: odf" in stderr
    assert "docs/reference/datasets.md" in stderr
    project(**{"a.csv": "invoice_id,line,price\n1,1,2.50\n1,2,3.50\n2,1,4.50\n"})
    assert "      # correlation_key: invoice_id  # where one line" in Path("pipeline.yaml").read_text()
    text = Path("pipeline.yaml").read_text()
    Path("pipeline.yaml").write_text(text.replace("# correlation_key", "correlation_key"))
    ran(capsys)


def test_the_last_epoch_is_compared_with_the_one_before(project, capsys):
    project(**{"a.csv": "id,price\n1,2.50\n2,3.50\n"})
    ran(capsys)
    write(Path(), "a.csv", "id,price\n1,2.50\n2,4.50\n")
    ran(capsys)
    assert main(["diff", "pipeline.yaml", "--format", "jsonl"]) == 0
    row = {"op": "+C", "before": {"id": 2, "price": 3.5}, "after": {"id": 2, "price": 4.5}}
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"node": "a_out", **row}]
    assert main(["diff", "pipeline.yaml", "a_out", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out) == row


def test_files_outside_of_the_folder(project, tmp_path):
    write(tmp_path, "a.csv", "id,b\n1,2\n")
    assert main(["init", "below", "--from", "a.csv"]) == 4
    assert not Path("below").exists()
    assert "file not found" in project("none.csv", code=4)


def test_a_folder_gives_its_files_of_data(project):
    stderr = project("in", **{"in/a.csv": "id,b\n1,2\n", "in/b.json": '[{"k": 1}]', "in/readme.md": "# no", "in/.hidden.csv": "x"})
    assert "a: a.csv" in stderr
    assert "b: b.json" in stderr
    assert "hidden" not in stderr


def test_a_large_file_is_looked_at_in_part_and_its_key_checked_to_the_end(project, capsys, monkeypatch):
    monkeypatch.setattr(samples, "MOST_BYTES", 2_000)
    lines = [f"{number},{number % 7},{number}.25" for number in range(3_000)]
    stderr = project(**{"a.csv": "id,g,price\n" + "\n".join(lines) + "\n"})
    assert "only the first" in stderr
    assert ", key id" in stderr
    Path("pipeline.yaml").unlink()
    stderr = project(**{"a.csv": "id,g,price\n" + "\n".join([*lines, "5,1,2.50"]) + "\n"})
    assert ", no key" in stderr or ", key id, g" in stderr
    ran(capsys)


def test_a_key_of_files_that_are_too_large_is_said_to_be_unchecked(project, monkeypatch):
    monkeypatch.setattr(samples, "MOST_BYTES", 200)
    monkeypatch.setattr(sources, "_MOST_CHECKED", 300)
    stderr = project(**{"a.csv": "id,price\n" + "".join(f"{number},{number}.25\n" for number in range(300))})
    assert "too large to check the key (id)" in stderr


NO_WORDS = ("nan", "na", "null", "none", "nil", "unknown", "yes", "no", "on", "off", "true", "false")
WORDS = st.text("abcdefgorsuxyzABCÄÖÜßéñ", min_size=1, max_size=6).filter(lambda text: text.lower() not in NO_WORDS)
DIALECTS = st.fixed_dictionaries({
    "delimiter": st.sampled_from(",;\t|"), "comma": st.booleans(), "day": st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"]), "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    "end": st.sampled_from(["\n", "\r\n"]), "all_quoted": st.booleans(),
})  # fmt: skip
ROWS = st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(-(10**8), 10**8), st.dates(dt.date(1950, 1, 1), dt.date(2100, 1, 1)), WORDS), min_size=4, max_size=30)


@examples(8)
@given(ROWS, DIALECTS)
def test_any_table_in_any_dialect_is_read_as_what_it_was(tmp_path_factory, table, dialect):
    """Numbers, amounts, dates and words, written in some dialect, come out of the guessed pipeline as they went in."""
    folder = tmp_path_factory.mktemp("dialect")
    table = [*table, (1, 150, dt.date(2026, 1, 31), "Zoë"), (2, -25, dt.date(2026, 12, 30), "Ann")]
    point = "," if dialect["comma"] else "."
    text = io.StringIO()
    writer = csv.writer(text, delimiter=dialect["delimiter"], lineterminator=dialect["end"], quoting=csv.QUOTE_ALL if dialect["all_quoted"] else csv.QUOTE_MINIMAL)
    writer.writerow(["row_id", "count", "price", "day", "word"])
    for number, (count, cents, day, word) in enumerate(table):
        writer.writerow([number, count, f"{Decimal(cents) / 100:.2f}".replace(".", point), day.strftime(dialect["day"]), word])
    write(folder, "t.csv", text.getvalue().encode(dialect["encoding"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["init", "-q", "--from", "t.csv"]) == 0
        assert main(["run", "pipeline.yaml", "-q"]) == 0
        found = rows("out/t.csv")
    assert found[1:] == [[str(number), str(count), f"{Decimal(cents) / 100:.2f}", day.isoformat(), word] for number, (count, cents, day, word) in enumerate(table)]
