"""Types, keys, encodings, delimiters and the places of records, guessed from small samples."""

import polars as pl
import pytest

from errata.core.failures import StorageFailed
from errata.scaffold.columns import guess_of
from errata.scaffold.delimited import form_of
from errata.scaffold.documents import json_records, xml_records
from errata.scaffold.encodings import encoding_of
from errata.scaffold.keys import keys_of
from errata.scaffold.model import Cells, ColumnGuess, Guess
from errata.scaffold.names import column_names, common_name, plain_name, unique
from errata.scaffold.pipeline_text import quoted
from errata.scaffold.sources import pattern_of
from errata.yaml import load_yaml


def guessed(name: str, *texts: str, kinds: str = "text"):
    return guess_of(name, Cells(pl.Series("", texts), frozenset(kinds.split()), occurs=len(texts)))


@pytest.mark.parametrize(
    ("name", "texts", "type_", "becomes"),
    [
        ("n", "1 2 -3", "int", ""),
        ("zip", "01067 10115 80331", "string", ""),
        ("phone", "+4930123 +4930124", "string", ""),
        ("n", "9223372036854775807 1", "int", ""),
        ("n", "9223372036854775808 1", "string", ""),
        ("price", "1.5 2 3.25", "decimal", ""),
        ("c", "1.50 2.25 3.00", "decimal", ""),
        ("c", "1.5 2.25 3.125", "float", ""),
        ("temperature", "21.50 22.25 23.00", "float", ""),
        ("rate", "1.0842 1.1", "float", ""),
        ("v", "1e3 2.5e-7", "float", ""),
        ("price", "1,50 2,25 1.234,50", "string", "decimal"),
        ("price", "1,234.50 2.25", "string", "decimal"),
        ("price", "1.234 1.000,00", "string", "decimal"),
        ("price", "1.234 2.345 3.456 4.567 1.000,00", "string", "decimal"),
        ("price", "1,234 2,345 3,456 4,567 1,000.00", "string", "decimal"),
        ("v", "1 2 3 4 5,5", "string", "float"),
        ("price", "€1.50 €2.25", "string", "decimal"),
        ("share", "5% 7%", "string", "decimal"),
        ("balance", "(1.50) 2.25", "string", "decimal"),
        ("people", "1,234 12,500 7", "string", "int"),
        ("people", "1'234 12'500 7", "string", "int"),
        ("ok", "true false TRUE", "bool", ""),
        ("ok", "yes no", "bool", ""),
        ("flag", "0 1 1", "int", ""),
        ("day", "2026-01-04 2026-02-29x 2026-03-01 2026-03-02 2026-03-03 2026-03-04", "date", ""),
        ("d", "31.01.2026 01.02.2026", "date", ""),
        ("d", "31/01/2026 01/02/2026", "date", ""),
        ("d", "01/31/2026 02/01/2026", "date", ""),
        ("d", "04-Jan-2026 05-Feb-2026", "date", ""),
        ("day", "20260104 20260105", "date", ""),
        ("n", "20260104 20260105", "int", ""),
        ("at", "2026-01-04T10:00:00 2026-01-04T10:00:00Z", "date_time", ""),
        ("at", "2026-01-04T10:00 2026-01-05T11:30", "date_time", ""),
        ("t", "10:00 11:30", "string", ""),
        ("word", "alpha beta gamma", "string", ""),
        ("n", "1 2 n/a", "string", "int"),
        ("ip", "10.0.0.1 10.0.0.2", "string", ""),
        ("version", "1.2.3 1.2.4", "string", ""),
    ],
)
def test_the_type_of_a_column_of_texts(name, texts, type_, becomes):
    found = guessed(name, *texts.split())
    assert (found.type, found.becomes) == (type_, becomes)


def test_what_does_not_fit_is_counted_with_an_example():
    found = guessed("day", *["2026-01-04"] * 997, "soon", "later", "never")
    assert found.doubts == ("3 of 1,000 values are no date, such as 'soon': their records are rejected",)


def test_too_many_values_that_do_not_fit_leave_a_string():
    found = guessed("n", *["5"] * 60, *["five"] * 40)
    assert (found.type, found.doubts) == ("string", ("60 of 100 values are numbers, the others are not, such as 'five': it is a string",))


@pytest.mark.parametrize(
    ("texts", "doubt"),
    [
        ("1.234 2.345 3.456 4.567 1.000,00", "'1.234' is read as 1234, since '1.000,00' has ',' before its decimals (4 of 5 values like it)"),
        ("1,234 1,000.00", "'1,234' is read as 1234, since '1,000.00' has '.' before its decimals (1 of 2 values like it)"),
    ],
)
def test_separators_of_thousands_that_another_value_decides_are_a_doubt(texts, doubt):
    assert guessed("price", *texts.split()).doubts == (doubt,)


def test_three_decimals_in_a_file_of_decimal_commas_are_a_doubt():
    cells = Cells(pl.Series("", ["1.234", "12.500"]), frozenset(("text",)), occurs=2)
    assert "like '1.234': the point is taken as that of decimals" in guess_of("v", cells, day_first=True).doubts[0]
    assert guess_of("v", cells).doubts == ()


def test_days_and_months_that_nothing_tells_apart():
    assert guessed("d", "01/02/2026", "03/04/2026").form == "%m/%d/%Y"
    assert "the month is taken as the first" in guessed("d", "01/02/2026", "03/04/2026").doubts[0]
    assert guess_of("d", Cells(pl.Series("", ["01/02/2026"]), frozenset(("text",))), day_first=True).form == "%d/%m/%Y"
    assert guessed("d", "31/01/2026", "03/04/2026").doubts == ()


def test_values_that_are_no_texts():
    assert guessed("n", "1", "2", kinds="int").type == "int"
    assert guessed("n", "1", "2.5", kinds="int float").type == "float"
    assert guessed("price", "1", "2.5", kinds="int float").type == "decimal"
    assert guessed("b", "true", kinds="bool").type == "bool"
    assert guessed("a", "[1]", kinds="array").type == "array"
    assert guessed("a", "{}", kinds="map").type == "any"
    assert guessed("a", "1", "x", kinds="int text").type == "any"
    assert guessed("a", "1", "2", kinds="int text").type == "any"


def test_the_type_of_nearly_all_values_wins_where_some_are_texts():
    numbers = [str(number) for number in range(1, 30)]
    assert guessed("n", *numbers, "eight", kinds="int text") == Guess("int", doubts=("1 of 30 values is no number, 'eight': its record is rejected",))
    days = [f"2026-03-{number:02}" for number in range(1, 30)]
    assert guessed("day", *days, "45000", kinds="int text") == Guess("date", doubts=("1 of 30 values is no date, '45000': its record is rejected",))
    assert guessed("n", "1", "2", "eight", kinds="int text").doubts == ("1 of 3 values is a text, 'eight': its type is any, so that no record is rejected",)
    assert guessed("n", *numbers, "n/a", kinds="int text").type == "any"
    assert guessed("code", *numbers, "007", "x", kinds="int text").type == "any"


def test_times_with_several_offsets_are_said_to_be_utc():
    found = guessed("at", "2026-01-04T10:00:00+01:00", "2026-07-04T10:00:00+02:00")
    assert found.doubts == ("the times have several offsets (+01:00, +02:00): they are read as UTC, so that days begin at midnight in UTC",)
    assert guessed("at", "2026-01-04T10:00:00Z", "2026-07-04T10:00:00Z").doubts == ()


def keys(**columns: list[str]) -> list[tuple[str, ...]]:
    cells = {name: Cells(pl.Series("", texts), frozenset(("text",))) for name, texts in columns.items()}
    return [tuple(key.columns) for key in keys_of([ColumnGuess(name, name, guess_of(name, one)) for name, one in cells.items()], cells)]


def test_keys_are_unique_and_never_null_and_identities_come_first():
    assert keys(name=["a", "b", "c"], order_id=["3", "1", "2"])[0] == ("order_id",)
    assert keys(id=["1", "1", "2"], day=["2026-01-01", "2026-01-02", "2026-01-01"])[0] == ("id", "day")
    assert keys(id=["1", None, "2"]) == []
    assert keys(id=["1", "", "2"]) == []
    assert keys(amount=["1.50", "2.50", "3.50"]) == []


def test_dates_are_keys_too():
    days, times = ["2026-01-01", "2026-01-02", "2026-01-03"], ["2026-01-01T10:00:00", "2026-01-01T11:00:00", "2026-01-01T12:00:00"]
    assert keys(price=["1.50", "2.50", "1.50"], seen=days) == [("seen",)]
    assert keys(price=["1.50", "2.50", "1.50"], seen=times) == [("seen",)]
    assert keys(place=["a", "b", "a"], seen=[days[0], days[0], days[1]]) == [("place", "seen")]
    assert keys(place=["a", "b", "a"], seen=times)[0] == ("place", "seen")
    texts = [f"a{number % 5}" for number in range(25)], [f"b{number // 5}" for number in range(25)]
    many = [f"{number:02}.03.2026" for number in range(1, 31)]
    assert keys(Nachweis=[f"R{number}" for number in range(30)], Buchung=many)[0] == ("Nachweis",)
    assert keys(Ort=["a"] * 30, Buchung=many, Belegnr=[f"R{number}" for number in range(30)])[0] == ("Belegnr",)
    assert keys(one=texts[0], two=texts[1]) == [("one", "two")]


@pytest.mark.parametrize(
    ("text", "delimiter", "quote", "header"),
    [
        ("a,b\n1,2\n", ",", '"', True),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ";", '"', True),
        ("a\tb\n1\t2\n", "\t", '"', True),
        ("a|b|c\n1|x, y|3\n", "|", '"', True),
        ("1,ann\n2,bob\n", ",", '"', False),
        ("name\nann\nbob\n", ",", '"', True),
        ("id;t\n1;'a;b'\n2;'c;d'\n3;'e;f'\n", ";", "'", True),
        ('id,t\n1,"a\nb"\n2,"c;d;e"\n', ",", '"', True),
        ("region,2024,2025\neu,5,6\nus,7,8\n", ",", '"', True),
    ],
)
def test_the_form_of_a_delimited_text(text, delimiter, quote, header):
    found = form_of(text, "a.csv")
    assert (found.delimiter, found.quote, found.header) == (delimiter, quote, header)


def test_lines_before_the_header_are_named():
    with pytest.raises(StorageFailed, match="lines 1 to 3 have another number of cells") as failed:
        form_of("Statement\nof me\n\n" + "a,b,c\n" * 9, "a.csv")
    assert "tail -n +4 a.csv" in failed.value.help


@pytest.mark.parametrize(
    ("data", "encoding", "plain"),
    [
        (b"plain", "utf-8", True),
        ("ä".encode(), "utf-8", False),
        (b"\xef\xbb\xbfa", "utf-8", False),
        ("Straße und Größe".encode("cp1252"), "cp1252", False),
        ("a,ä".encode("utf-16"), "utf-16", False),
        ("abc,def\n".encode("utf-16-le"), "utf-16-le", False),
        ("имя,Привет собака".encode("cp1251"), "cp1251", False),
        ("имя,Привет собака".encode("koi8-r"), "koi8-r", False),
        ("名前,ひらがなとカタカナ".encode("shift_jis"), "shift_jis", False),
        (b"caf\xe9 \x81", "iso-8859-1", False),
    ],
)
def test_the_encoding_of_a_text(data, encoding, plain):
    found = encoding_of(data, whole=True)
    assert (found.name, found.plain) == (encoding, plain)


def test_a_character_that_is_cut_off_is_no_error():
    assert encoding_of("aä".encode()[:-1], whole=False).name == "utf-8"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[{}]", None),
        ('{"id": 1}\n{"id": 2}', None),
        ('{"data": {"rows": [{"a": [{"b": 1}]}, {"a": []}]}}', "data.rows"),
        ('{"rows": [{"a": 1', "rows"),
        ('{"a": [1, 2]}', None),
    ],
)
def test_the_records_of_json(text, path):
    assert [found.record_path for found in json_records(text, "a.json")] == [path]


def test_several_kinds_of_records_and_fields_around_them():
    first, second = json_records('{"meta": {"n": 1, "at": "x"}, "few": [{"x": 1}], "many": [{"a": "]{"}, {"a": 2}]}', "a.json")
    assert (first.record_path, second.record_path) == ("many", "few")
    assert first.doubts == [
        "the file has 2 kinds of records (few, many): each is a source of its own",
        "fields around the records, such as meta.n, meta.at, are not read; an envelope with a json_pointer reads them",
    ]
    assert second.doubts == ()
    found = xml_records(b"<r><c i='1'/><c i='2'/><os><o i='1'/><o i='2'/></os></r>", "a.xml", whole=True)
    assert [one.record_path for one in found] == ["/r/c", "/r/os/o"]


def test_xml_fields_around_records_are_a_doubt():
    document = b"<r made='x'><head><by>Ann</by><empty/></head><os page='1'><o i='1'><a>1</a></o><o i='2'/></os><end>2</end></r>"
    (found,) = xml_records(document, "a.xml", whole=True)
    assert found.doubts == ["fields around the records, such as /r/@made, /r/head/by, /r/os/@page and 1 more, are not read; an envelope with an xml_path reads them"]
    assert [one.doubts for one in xml_records(b"<r xmlns='x'><o i='1'/> <o i='2'/></r>", "a.xml", whole=True)] == [[]]


def test_the_records_of_xml():
    (found,) = xml_records(b"<r><h/><o i='1'><l><q>1</q></l><l><q>2</q></l><t>x</t><t>y</t></o><o i='2'/></r>", "a.xml", whole=True)
    assert (found.record_path, found.explode, found.join) == ("/r/o", ["l"], ["t"])
    assert [one.own for one in xml_records(b"<r><a>1</a><a>2</a></r>", "a.xml", whole=True)] == ["a"]


@pytest.mark.parametrize("data", [b"<r><a></r>", b"<!DOCTYPE r [<!ENTITY a 'x'>]><r>&a;</r>", b"no"])
def test_xml_that_cannot_be_read(data):
    with pytest.raises(StorageFailed, match=r"a\.xml: not well-formed XML"):
        xml_records(data, "a.xml", whole=True)


def test_names():
    assert plain_name("Order No.", "x") == "order_no"
    assert plain_name("2. Größe", "x") == "_2_grosse"
    assert plain_name("→", "x") == "x"
    assert column_names(["Emit", "emit", "a b", "a_b", "A_B"]) == {"Emit": "emit_", "emit": "emit__2", "a b": "a_b_3", "a_b": "a_b", "A_B": "A_B_2"}
    assert column_names(["USt-Satz", "if", "-", "Order No."]) == {"USt-Satz": "USt_Satz", "if": "if_", "-": "_", "Order No.": "order_no"}
    assert common_name(["orders-2026-01.csv", "orders-2026-02.csv"], "x") == "orders"
    assert unique("a", ["A", "a_2"]) == "a_3"


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["in/o-2026-01.csv", "in/o-2026-02.csv"], "in/o-2026-*.csv"),
        (["nord.json", "süd.json"], "*.json"),
        (["jan.csv", "jun.csv"], "*.csv"),
        (["a1-final.csv", "a12-final.csv"], "a*-final.csv"),
        (["sales_a.csv.gz", "sales_ab.csv.gz"], "sales_*.csv.gz"),
        (["a[1].csv", "a[2].csv"], None),
    ],
)
def test_the_pattern_of_names(names, pattern):
    assert pattern_of(names) == pattern


@pytest.mark.parametrize("text", ["plain", "Order No.", "yes", "n", "", "1.5", "a: b", "# no", "$HOME", "${HOME}", "a\nb", 'q"q', "\u2028", "é", "a\\b", "-", "null", " x "])
def test_a_quoted_text_is_read_back(text):
    assert load_yaml_text(f"v: {{a: {quoted(text)}}}") == text


def load_yaml_text(text: str) -> object:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_text(text, encoding="utf-8")
        return load_yaml(path).value["v"]["a"]  # type: ignore[index]
