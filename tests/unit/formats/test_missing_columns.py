"""Files that lack declared columns, optional columns, and columns that have another name in files (E238, E239)."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import formats
from storage.formats import Column, InputError, ReadPlan
from tests.support.reading import records_of


def required(name, kind="string", declared=None):
    return Column(name, kind, required=True, declared=declared)


def parquet_of(**columns):
    target = io.BytesIO()
    pq.write_table(pa.table(columns), target)
    return target.getvalue()


def reader(form, columns, options=None, **plan):
    return formats.reader(form, options or {}, ReadPlan(tuple(columns), **plan))


ID_AND_PRICE = (required("id"), required("price", "float"))
WITHOUT_PRICE = {
    "csv": (b"id,Price\nA,1\n", {}),
    "parquet": (parquet_of(id=["A"], Price=[1.0]), {}),
    "json": (b'{"id": "A", "Price": 1}\n{"id": "B", "Price": 2}\n', {}),
    "xml": (b"<r><o><id>A</id><Price>1</Price></o><o><id>B</id><Price>2</Price></o></r>", {"record_path": "r/o"}),
}


@pytest.mark.parametrize("policy", ["auto_widen", "drop"])
@pytest.mark.parametrize("form", WITHOUT_PRICE)
def test_a_file_without_a_required_column_is_an_input_error_that_names_the_likely_one(form, policy):
    data, options = WITHOUT_PRICE[form]
    with pytest.raises(InputError, match=r"^f: .*E238: the file lacks the declared (column|member|element) 'price' \(it has 'Price'\); .*source_name: 'Price'"):
        reader(form, ID_AND_PRICE, options, on_unmapped=policy).undeclared(data, "f")


@pytest.mark.parametrize("form", WITHOUT_PRICE)
def test_an_optional_column_may_be_lacking_and_is_null(form):
    data, options = WITHOUT_PRICE[form]
    one = reader(form, (required("id"), Column("price", "float")), options, on_unmapped="drop")
    assert one.undeclared(data, "f") == ()
    assert {row.data["price"] for row in records_of(one, data)} == {None}


@pytest.mark.parametrize("form", WITHOUT_PRICE)
def test_a_column_is_read_under_the_name_that_the_file_has_for_it(form):
    data, options = WITHOUT_PRICE[form]
    one = reader(form, (required("id"), required("Price", "float", declared="price")), options)
    assert one.undeclared(data, "f") == ()
    assert records_of(one, data)[0].data == {"id": "A", "price": 1.0}


def test_a_cell_that_cannot_be_read_is_reported_by_the_name_in_the_schema():
    (row,) = records_of(reader("csv", (required("Price", "float", declared="price"),)), b"Price\nx\n")
    assert '"detail":"column \'price\': cannot read \'x\' as float"' in row.error
    assert '"fields":{"price":"x"}' in row.error


def test_an_undeclared_column_does_not_take_a_declared_name():
    one = (required("Price", "float", declared="price"),)
    with pytest.raises(InputError, match="f: line 1: E239: undeclared column 'price' has the name that the schema gives to 'Price'"):
        reader("csv", one).undeclared(b"Price,price\n1,2\n", "f")
    assert reader("csv", one, on_unmapped="drop").undeclared(b"Price,price\n1,2\n", "f") == ()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"id, price\n", "'price' (it has ' price')"),
        (b"id,prize\n", "'price' (it has 'prize')"),
        (b"id,quantity\n", "'price'; add the column"),
        (b"number,PRICE\n", "'id', 'price' (it has 'PRICE')"),
        (b"id;price\n", "its delimiter seems to be ';'"),
        (b"id\tprice\n", "its delimiter seems to be '\\t'"),
        (b"a|b|c\n", "its delimiter seems to be '|'"),
    ],
)
def test_the_message_says_what_the_header_has_instead(header, message):
    with pytest.raises(InputError) as wrong:
        reader("csv", ID_AND_PRICE).undeclared(header + b"1\n", "f")
    assert message in str(wrong.value)


def test_columns_without_a_header_have_numbers_for_names():
    columns, options = (required("col_0"), required("id")), {"has_header": False}
    with pytest.raises(InputError, match=r"'id'; without a header its columns are called col_0 to col_1"):
        reader("csv", columns, options).undeclared(b"x,1\n", "f")
    named = reader("csv", (required("col_1", "int", declared="id"),), options)
    assert named.undeclared(b"x,1\n", "f") == (Column("col_0"),)
    assert records_of(named, b"x,1\n")[0].data == {"id": 1}
    assert reader("csv", columns, options).undeclared(b"", "f") == ()


@pytest.mark.parametrize(
    ("data", "lacks"),
    [
        (b"", False),
        (b"not json\n", False),
        (b"{}\n", True),
        (b'{"a": 1}\n{"m": {"q": null}}\n', False),
        (b'{"m": null}\n{"a": 1}\n', False),
        (b'{"m": {"r": 1}}\n', True),
        (b'{"m": 7}\n', True),
        (b'{"m.q": 7}\n', False),
    ],
)
@pytest.mark.parametrize("policy", ["auto_widen", "drop"])
def test_a_member_may_be_absent_from_some_records_but_not_from_all(data, lacks, policy):
    one = reader("json", (required("m.q"),), {"format": "ndjson"}, on_unmapped=policy)
    if lacks:
        with pytest.raises(InputError, match="E238"):
            one.undeclared(data, "f")
    else:
        one.undeclared(data, "f")


def test_one_record_behind_many_pieces_is_enough():
    data = b'{"a": "%s"}\n' % (b"x" * 1000) * 5000 + b'{"b": 1}\n'
    assert reader("json", (required("b"),), on_unmapped="drop").undeclared(data, "f") == ()
    with pytest.raises(InputError, match="lacks the declared member 'c'"):
        reader("json", (required("c"),), on_unmapped="drop").undeclared(data, "f")


@pytest.mark.parametrize(("form", "none", "some"), [
    ("json", b'[{"id": "A"}]', b'[{"id": "A", "line": [{"sku": "x"}]}]'),
    ("xml", b"<r><o><id>A</id></o></r>", b"<r><o><id>A</id><line><sku>x</sku></line></o></r>"),
])  # fmt: skip
def test_members_of_an_exploded_array_may_be_absent_where_no_record_has_the_array(form, none, some):
    options = {"record_path": "r/o"} if form == "xml" else {}
    paths = (formats.ArrayPath("line"),)
    one = reader(form, (required("id"), required("sku")), options, array_paths=paths)
    assert one.undeclared(none, "f") == ()
    assert one.undeclared(some, "f") == ()
    with pytest.raises(InputError, match="'ski'"):
        reader(form, (required("id"), required("ski")), options, array_paths=paths).undeclared(some, "f")


def test_an_empty_element_has_what_could_be_inside_it():
    one = reader("xml", (required("address.city"),), {"record_path": "r/o"})
    one.undeclared(b"<r><o><address/></o></r>", "f")
    with pytest.raises(InputError, match=r"'address\.city'"):
        one.undeclared(b"<r><o><name>x</name></o></r>", "f")
