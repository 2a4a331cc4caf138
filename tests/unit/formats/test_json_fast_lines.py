"""Lines of JSON parsed by Arrow give the same records, rejects and undeclared fields as parsing line by line."""

import json
import random

import pytest

from storage import formats
from storage.formats import ERROR, ROW, Column, InputError, ReadPlan
from storage.formats.json import read
from storage.formats.json.fast_lines import flat_batch, records_with_all_members
from tests.support.reading import records_of
from tests.unit.formats.test_mutations import mutated

NAMES = ("a", "b", "c d", "é", "n", "t")
VALUES = {
    "text": ("x", "7", "2024-01-05", "", 'é\n"', "2024-01-05T01:02:03", "true", "[1]", '{"a":1}', "1.5", "NaN, Inf"),
    "int": (1, 0, -5, 2**63 - 1, 7),
    "float": (1.5, 0.25, 1e300, -0.0, 1e16, 2.0),
    "bool": (True, False),
    "nested": ({"a": [1, {"b": None}]}, [], "x"),
}
FITTING = {
    "text": ("string", "any"),
    "int": ("int", "float", "numeric", "string", "any"),
    "float": ("float",),
    "bool": ("bool", "string", "any"),
    "nested": ("any",),
}
TYPES = ("string", "int", "float", "bool", "date", "date_time", "numeric", "any", "array", "map")


def lines(rnd, kinds):
    """Up to twelve lines, half of the time damaged. Their fields have mostly one type, and are sometimes absent, null or of another type."""
    kind = lambda name: kinds[name] if rnd.random() < 0.99 else rnd.choice(list(VALUES))  # noqa: E731
    records = [
        {name: None if rnd.random() < 0.03 else rnd.choice(VALUES[kind(name)]) for name in kinds if rnd.random() < 0.9} for _ in range(rnd.randint(0, 12))
    ]
    written = [json.dumps(record, ensure_ascii=rnd.random() < 0.5, separators=rnd.choice([(",", ":"), (", ", ": ")])) for record in records]
    written = [with_a_member_twice(text, rnd) if rnd.random() < 0.03 else text for text in written]
    data = rnd.choice(["\n", "\r\n", "\n\n"]).join(written).encode() + rnd.choice([b"", b"\n"])
    return mutated(data, rnd) if data and rnd.random() < 0.6 else data


def with_a_member_twice(text, rnd):
    """The line with one more member, which it may have already."""
    return f'{{"{rnd.choice(NAMES)}": 1, {text[1:]}' if text != "{}" else text


def reader_for(rnd, kinds):
    declared = rnd.sample(NAMES, rnd.randint(1, 4))
    types = [rnd.choice(FITTING.get(kinds.get(name), TYPES) if rnd.random() < 0.9 else TYPES) for name in declared]
    plan = ReadPlan(tuple(map(Column, declared, types)), on_unmapped=rnd.choice(["auto_widen", "drop", "reject"]))
    return formats.reader("json", {"format": "ndjson"}, plan)


def outcome(reader, data):
    try:
        names = [column.name for column in reader.undeclared(data, "f.json")]
        return [names, *records_of(reader.with_undeclared([Column(name, "any") for name in names]), data, None, "f.json")]
    except InputError as wrong:
        return str(wrong)


@pytest.mark.parametrize("seeds", [range(1200), pytest.param(range(10_000, 15_000), marks=pytest.mark.deep)])
def test_lines_parsed_at_once_are_those_parsed_one_by_one(seeds, monkeypatch):
    for seed in seeds:
        rnd = random.Random(seed)
        kinds = {name: rnd.choice(list(VALUES)) for name in rnd.sample(NAMES, rnd.randint(1, 5))}
        data, reader = lines(rnd, kinds), reader_for(rnd, kinds)
        with monkeypatch.context() as patch:
            patch.setattr(read, "flat_batch", lambda *_, **__: None)
            patch.setattr(read, "records_with_all_members", lambda *_: None)
            one_by_one = outcome(reader, data)
        assert repr(outcome(reader, data)) == repr(one_by_one), seed  # the text differs for 0.0 and -0.0


def plan(*columns):
    return ReadPlan(tuple(Column(*column) for column in columns))


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1}{"a":2}\n{"a":\n3}\n',
        b'{"a":NaN}\n',
        b'{"b":[NaN ],"a":1}\n',
        b'{"b":-Infinity,"a":1}\n',
        b'{"b":' + b"[" * 1100 + b"]" * 1100 + b',"a":1}\n',
        b'{"b":"\xff","a":1}\n',
        b'{"a":1}\0\n',
        b'{"a":1,"a":2}\n',
        b'{"a":-0}\n',
        b'{"a":1}\n[2]\n',
    ],
)
def test_what_arrow_takes_otherwise_is_left_to_the_parser_of_lines(text):
    assert flat_batch(plan(("a", "float")), text, 1) is None


def test_plain_lines_are_parsed_at_once():
    text = b'{"i":1,"t":"x","d":"2024-01-05","f":2,"u":"Information, NaN"}\r\n\n{"t":null,"f":0.5,"new":[{"k":1}]}'
    batch = flat_batch(plan(("i", "int"), ("t",), ("d", "date"), ("f", "float")), text, 5)
    assert [str(value) for value in batch.column("d")] == ["2024-01-05", "None"]
    assert batch.select(["i", "t", "f", ROW, ERROR]).to_pylist() == [
        {"i": 1, "t": "x", "f": 2.0, ROW: 5, ERROR: None}, {"i": None, "t": None, "f": 0.5, ROW: 6, ERROR: None},
    ]  # fmt: skip
    assert [list(record) for record in records_with_all_members(text)] == [["i", "t", "d", "f", "u"], ["t", "f", "new"]]


def test_lines_that_each_have_members_of_their_own_are_not_made_columns(monkeypatch):
    monkeypatch.setattr("storage.formats.limits.CELLS", 400)
    assert records_with_all_members(b'{"a":1,"b":2}\n' * 200) == [{"a": 1, "b": 2}]
    assert records_with_all_members(b'{"a":1,"b":2}\n' * 201) is None
    assert flat_batch(plan(("a", "int"), ("b", "int")), b'{"a":1,"b":2}\n' * 201, 1) is None
    monkeypatch.undo()
    assert records_with_all_members(b"".join(b'{"a":1,"b%d":2}\n' % row for row in range(2000))) is None
    assert records_with_all_members(b'{"a":1}\n' * 999 + b'{"a":1,"rare":2}\n') is None


def test_the_search_for_fields_reports_the_line_of_a_deep_value_too(monkeypatch):
    monkeypatch.setattr(read, "LINES", 30)
    data = b'{"a": 1}\n' * 20 + b'{"a": ' + b"[" * 2000
    with pytest.raises(InputError, match="f: line 21: nested deeper than 1000 levels"):
        formats.reader("json", {"format": "ndjson"}, plan()).undeclared(data, "f")
