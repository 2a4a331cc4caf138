"""Files beyond the limits of `storage.formats.limits` end with an error that has a code, after little time and with little memory."""

from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.source.row_layout import widened
from storage import formats
from storage.files import local
from storage.formats import ArrayPath, Column, InputError, ReadPlan, WritePlan, limits
from tests.support.reading import records_of

ROOT = Path(__file__).parents[3]


def reader_of(form, *columns, policy="auto_widen", **options):
    return formats.reader(form, options, ReadPlan(tuple(Column(name) for name in columns), on_unmapped=policy))


def read(form, data, *columns, policy="auto_widen", **options):
    """The undeclared columns of a file and its records."""
    reader = reader_of(form, *columns, policy=policy, **options)
    found = reader.undeclared(data, "f")
    return len(found), records_of(reader.with_undeclared(found), data, name="f")


def names(count):
    return [f"k{number}" for number in range(count)]


WIDE = {
    "csv": lambda count: f"{','.join(names(count))}\n{','.join('1' * count)}\n".encode(),
    "ndjson": lambda count: "".join(f'{{"{name}":1}}\n' for name in names(count)).encode(),
    "json": lambda count: f"[{','.join(f'{{{chr(34)}{name}{chr(34)}:1}}' for name in names(count))}]".encode(),
    "xml": lambda count: f"<x>{''.join(f'<r><{name}>1</{name}></r>' for name in names(count))}</x>".encode(),
    "xml attributes": lambda count: f"<x>{''.join(f'<r {name}={chr(34)}1{chr(34)}/>' for name in names(count))}</x>".encode(),
}
OPTIONS = {"xml": {"record_path": "//r"}, "json": {}, "csv": {}}


@pytest.mark.parametrize("kind", WIDE)
def test_a_file_has_no_more_columns_than_the_limit(kind, monkeypatch):
    monkeypatch.setattr(limits, "COLUMNS", 50)
    form = kind.split()[0].removeprefix("nd")
    assert read(form, WIDE[kind](50), **OPTIONS[form])[0] == 50
    with pytest.raises(InputError, match="E228: 51 columns or more, where a file may have 50: split the file"):
        reader_of(form, **OPTIONS[form]).undeclared(WIDE[kind](51), "f")


@pytest.mark.parametrize("kind", ["ndjson", "json", "xml"])
def test_undeclared_columns_that_are_dropped_do_not_count(kind, monkeypatch):
    monkeypatch.setattr(limits, "COLUMNS", 50)
    form = kind.removeprefix("nd")
    assert len(read(form, WIDE[kind](60), policy="drop", **OPTIONS[form])[1]) == 60


def test_declared_columns_count(monkeypatch):
    monkeypatch.setattr(limits, "COLUMNS", 50)
    for kind in ("csv", "ndjson", "json", "xml"):
        form = kind.removeprefix("nd")
        with pytest.raises(InputError, match="E228: 51 columns or more"):
            reader_of(form, "k0", "k1", "k2", **OPTIONS[form]).undeclared(WIDE[kind](51), "f")


SPARSE = {
    "json": "".join(f'{{"d":{row},"k{row % 300}":{row},"k{(row * 7 + 1) % 300}":"é\\u001f{row}","n":null}}\n' for row in range(700)).encode(),
    "xml": f"<x>{''.join(f'<r><d>{row}</d><k{row % 300}>{row}&amp;</k{row % 300}><m{row % 7}> </m{row % 7}></r>' for row in range(700))}</x>".encode(),
}


@pytest.mark.parametrize("form", SPARSE)
@pytest.mark.parametrize("target", [None, 5000])
def test_many_undeclared_fields_are_one_text_a_record_and_give_the_same_rows(form, target, monkeypatch):
    """Both layouts of a batch give the same `widened` rows."""
    texts = []
    for most in (1000, 10):
        monkeypatch.setattr(limits, "GATHERED", most)
        batches, undeclared = read_batches(form, SPARSE[form], target)
        dynamic = frozenset(column.name for column in undeclared if column.type == "any")
        texts.append(pa.concat_arrays([widened(batch, ["d"], dynamic) for batch in batches]).to_pylist())
    assert len(texts[0]) == 700
    assert texts[0] == texts[1]


def read_batches(form, data, target):
    reader = reader_of(form, "d", **OPTIONS[form])
    undeclared = reader.undeclared(data, "f")
    reader = reader.with_undeclared(undeclared)
    parts = [None] if target is None else reader.split(data, "f", target)
    batches = [batch for part in parts for batch in reader.read(data if part is None else data[part.start : part.end], "f", part)]
    assert all(batch.schema.equals(reader.schema()) for batch in batches)
    return batches, undeclared


NAMED = {
    "csv": lambda name: f"a,{name}\n1,2\n",
    "json": lambda name: f'[{{"a":1,"{name}":2}}]',
    "xml": lambda name: f"<x><r><a>1</a><{name}>2</{name}></r></x>",
}


@pytest.mark.parametrize("form", NAMED)
def test_a_name_has_no_more_than_64_kb(form):
    assert read(form, NAMED[form]("x" * 65_536).encode(), **OPTIONS[form])[0] == 2
    with pytest.raises(InputError, match=r"E229: a name is longer than 64 KB, 'x{40}\.\.\.': shorten it in the file$"):
        read(form, NAMED[form]("x" * 65_537).encode(), **OPTIONS[form])


def test_names_of_elements_count_with_those_around_them():
    inner = "".join(f"<{'x' * 1000}{level}>" for level in range(70))
    outer = "".join(f"</{'x' * 1000}{level}>" for level in reversed(range(70)))
    with pytest.raises(InputError, match="E229: a name is longer than 64 KB"):
        read("xml", f"<x><r>{inner}{outer}</r></x>".encode(), policy="drop", record_path="//r")


def test_names_of_attributes_inside_long_elements_are_counted_together(monkeypatch):
    monkeypatch.setattr(limits, "NAMES_BYTES", 1 << 20)
    data = f"<x><r><{'x' * 60_000} {' '.join(f'{name}={chr(34)}1{chr(34)}' for name in names(100))}/></r></x>".encode()
    with pytest.raises(InputError, match="E228: more than 20,000 different names of elements and attributes, or 1 MB of them"):
        read("xml", data, policy="drop", record_path="//r")


def test_names_of_elements_that_are_not_read_are_limited_too(monkeypatch):
    monkeypatch.setattr(limits, "NAMES", 50)
    outside = "".join(f"<{name}/>" for name in names(60))
    with pytest.raises(InputError, match="line 1: E228: more than 50 different names"):
        read("xml", f"<x>{outside}<r><a>1</a></r></x>".encode(), "a", policy="drop", record_path="//r")
    with pytest.raises(InputError, match="line 1: E229: a name is longer than 64 KB"):
        read("xml", f"<x><{'y' * 70_000}/><r><a>1</a></r></x>".encode(), "a", policy="drop", record_path="//r")


def test_an_element_has_no_more_attributes_than_the_limit(monkeypatch):
    monkeypatch.setattr(limits, "ATTRIBUTES", 50)
    element = lambda count: f"<x>\n<r {' '.join(f'{name}={chr(34)}1{chr(34)}' for name in names(count))}/></x>".encode()  # noqa: E731
    assert read("xml", element(50), record_path="//r")[0] == 50
    with pytest.raises(InputError, match="f: line 2: E233: an element has 51 attributes, where it may have 50: write them as elements of an array"):
        read("xml", element(51), record_path="//r")


ARRAYS = (ArrayPath("l"), ArrayPath("m"), ArrayPath("n", "join"))
EXPLODED = {
    "json": lambda first, second: f'[{{"a":1,"l":{[*range(first)]},"m":{[*range(second)]},"n":{[*range(100)]}}},{{"a":2}}]',
    "xml": lambda first, second: f"<x><r><a>1</a>{'<l>1</l>' * first}{'<m>2</m>' * second}{'<n>3</n>' * 100}</r><r><a>2</a></r></x>",
}


@pytest.mark.parametrize("form", EXPLODED)
def test_several_arrays_make_no_more_records_of_one_than_the_limit(form, monkeypatch):
    monkeypatch.setattr(limits, "EXPLODED", 50)
    plan = ReadPlan((Column("a"),), on_unmapped="drop", array_paths=ARRAYS)
    reader = formats.reader(form, {"record_path": "//r"} if form == "xml" else {}, plan)
    read = lambda first, second: [row.error for row in records_of(reader, EXPLODED[form](first, second).encode())]  # noqa: E731
    assert read(5, 10) == [None] * 51
    assert read(60, 1) == [None] * 61
    wrong, fine = read(6, 10)
    assert fine is None
    assert orjson.loads(wrong)["category"] == "malformed_record"
    assert orjson.loads(wrong)["detail"].startswith("E237: array_paths make 6 times 10 records of one, where several arrays may make 50: explode one of them")


@pytest.mark.parametrize("form", ["json", "xml"])
def test_what_an_exploded_array_repeats_is_held_in_small_batches(form, monkeypatch):
    for place in ("storage.formats.batches", "storage.formats.xml.read"):
        monkeypatch.setattr(f"{place}.CHUNK_BYTES", 10_000)
    reader = formats.reader(form, {"record_path": "//r"} if form == "xml" else {}, ReadPlan((Column("a"),), on_unmapped="drop", array_paths=(ArrayPath("l"),)))
    text = "x" * 999
    data = f"<x><r><a>{text}</a>{'<l>1</l>' * 100}</r></x>" if form == "xml" else f'[{{"a":"{text}","l":{[*range(100)]}}}]'
    batches = list(reader.read(data.encode(), "f"))
    assert sum(batch.num_rows for batch in batches) == 100
    assert max(batch.num_rows for batch in batches) <= 11


CELL = st.text(alphabet=st.sampled_from("ab,;\"'\n\r =é"), max_size=4)


@given(rows=st.lists(st.lists(st.none() | CELL, min_size=3, max_size=3), min_size=1, max_size=4), delimiter=st.sampled_from(",;"), guard=st.booleans())
@pytest.mark.parametrize("form", ["csv", "json"])
def test_records_of_few_of_many_columns_are_written_as_others_are(form, rows, delimiter, guard):
    """Only columns 1, 5 and 8 of 10 have values. The number of columns decides which way writes them."""
    dynamic = form == "json"
    names, cells = [f"c{number}" for number in range(10)], {1: 0, 5: 1, 8: 2}
    text = lambda row, place: None if row[cells[place]] is None else orjson.dumps(row[cells[place]] or None).decode() if dynamic else row[cells[place]]  # noqa: E731
    columns = [pa.array([text(row, place) if place in cells else None for row in rows], pa.string()) for place in range(10)]
    plan = WritePlan(tuple(Column(name, "any" if dynamic else "string", optional=dynamic) for name in names))
    writer = formats.writer(form, {} if dynamic else {"delimiter": delimiter, "formula_guard": guard}, plan)
    found = []
    for most in (0, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "GATHERED", most)
            if most:
                patch.setattr("storage.formats.json.write._is_sparse", lambda *_: False)
            found.append(writer.render(pa.RecordBatch.from_arrays(columns, names)))
    assert found[0] == found[1]


def test_the_page_has_the_limits():
    page = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    expected = {
        "64 MB | E235": limits.RECORD_BYTES == 64 << 20 and local.EXPANSION_FREE == 64 << 20,
        "8 MB | E235": limits.MARKUP_BYTES == 8 << 20,
        "64 KB": limits.SEGMENT_BYTES == limits.NAME_BYTES == 64 << 10,
        "10,000 | E228": limits.COLUMNS == limits.ATTRIBUTES == 10_000,
        "20,000, and 16 MB": (limits.NAMES, limits.NAMES_BYTES) == (20_000, 16 << 20),
        "200 times": local.EXPANSION == 200,
        "1,000 levels": limits.DEPTH == 1000,
    }
    assert {text: text in page for text in expected} == expected == dict.fromkeys(expected, True)
