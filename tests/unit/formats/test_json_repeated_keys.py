"""Objects that have a member twice. Their record is rejected by the same rule on every path through the reader."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import formats
from storage.formats import ArrayPath, Column, InputError, ReadPlan
from storage.formats.json import read
from storage.formats.json.repeated_keys import Unique, elements
from tests.support.examples import examples
from tests.support.reading import records_of

KEYS = st.sampled_from(["a", "b", 'q":', "\\", "é", 'x\\" :', " "])
SCALARS = st.sampled_from(["x", "::", '":', '" :', "\\", 'a":{"a":1}', 1, 2.5, None, True, 10**30])
BLANKS = st.sampled_from(["", " ", "\n\t", "\r\n  "])


class Pairs(list):
    """The members of an object in the order of the text."""


def objects(inner):
    return st.lists(st.tuples(KEYS, inner), max_size=4).map(Pairs)


VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | objects(inner), max_leaves=8)


def text_of(value, blank: str, escaped: bool) -> str:
    if isinstance(value, Pairs):
        members = (f"{blank}{text_of(key, blank, escaped)}{blank}:{blank}{text_of(held, blank, escaped)}{blank}" for key, held in value)
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(blank + text_of(one, blank, escaped) for one in value) + blank + "]"
    if isinstance(value, str) and escaped:
        return '"' + "".join(f"\\u{ord(char):04x}" for char in value) + '"'
    return json.dumps(value)


def repeats(value) -> bool:
    """Whether the value or an object inside it has a key twice."""
    if isinstance(value, Pairs):
        keys = [key for key, _ in value]
        return len(keys) > len(set(keys)) or any(repeats(held) for _, held in value)
    return isinstance(value, list) and any(map(repeats, value))


@given(value=objects(VALUES), blank=BLANKS, escaped=st.booleans())
@examples(400)
def test_a_record_is_right_where_no_object_has_a_key_twice(value, blank, escaped):
    text = text_of(value, blank, escaped).encode()
    assert (Unique(None).in_text(text, json.loads(text)) is not None) == repeats(value)


@given(values=st.lists(objects(VALUES), min_size=1, max_size=4), blank=BLANKS)
def test_of_many_records_those_are_found(values, blank):
    text = ",".join(text_of(value, blank, False) for value in values)
    found = Unique(None).in_elements(text.encode(), json.loads(f"[{text}]"))
    assert set(found) == {index for index, value in enumerate(values) if repeats(value)}
    assert all(found[index][1].decode() == text_of(values[index], blank, False) for index in found)
    assert len(elements(text.encode())) == len(values)


def reader_of(columns="a:int", keys="reject", mode="auto_widen", arrays=(), **options):
    declared = tuple(Column(*column.split(":")) for column in columns.split())
    return formats.reader("json", {"duplicate_keys": keys, **options}, ReadPlan(declared, on_unmapped=mode, array_paths=tuple(ArrayPath(*one) for one in arrays)))


def outcome(reader, text, target=None):
    """The number of each record, with its column `a` or the message of its reject."""
    data = text.encode()
    whole = reader.with_undeclared(reader.undeclared(data, "f.json"))
    rows = records_of(whole, data, target, "f.json")
    return [(row.number, row.data["a"] if row.error is None else json.loads(row.error)["detail"].partition(";")[0]) for row in rows]


TWICE = "the member '{}' comes twice"
LINES = '{"a": 1}\n{"a": 2, "a": 3}\n{"a": 4, "z": {"q": 1, "q": 2}}\n{"a": 5, "z": [{"k": 0}, {"\\u006b": 1, "k": 2}]}\n{"a": 6, "y": 1, "y": 1}\n{"a": 7}\n'
REJECTED = [(1, 1), (2, TWICE.format("a")), (3, TWICE.format("z.q")), (4, TWICE.format("z.k")), (5, TWICE.format("y")), (6, 7)]
DROPPED = [(1, 1), (2, TWICE.format("a")), (3, 4), (4, 5), (5, 6), (6, 7)]
LAST = [(1, 1), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]


@pytest.mark.parametrize("form", ["ndjson", "ndjson line by line", "array", "object"])
@pytest.mark.parametrize(("keys", "mode", "expected"), [("reject", "auto_widen", REJECTED), ("reject", "drop", DROPPED), ("last", "auto_widen", LAST), ("last", "drop", LAST)])
def test_what_becomes_of_them(form, keys, mode, expected, monkeypatch):
    form, _, slowly = form.partition(" ")
    if slowly:
        monkeypatch.setattr(read, "flat_batch", lambda *_, **__: None)
        monkeypatch.setattr(read, "records_with_all_members", lambda *_: None)
    array = f"[{LINES.strip().replace(chr(10), ',')}]"
    text = {"ndjson": LINES, "array": array, "object": f'{{"r": {array}}}'}[form]
    reader = reader_of(keys=keys, mode=mode, format=form, **({"record_path": "r"} if form == "object" else {}))
    for target in (None, 1, 60):
        assert outcome(reader, text, target) == expected


def test_lines_with_one_that_repeats_are_right_on_the_quick_way_too():
    lines = [json.dumps({"a": row, "b": "x" * (row % 7), "c": {"k": row}}) for row in range(1000)]
    rnd = random.Random(5)
    for mode in ("auto_widen", "drop"):
        for bad in ('{"a": 1, "b": "", "b": "y"}', '{"a": 1, "c": {"k": 1, "k": 2}}', '{"a": null, "a": null}'):
            at = rnd.randrange(1000)
            found = outcome(reader_of(mode=mode), "\n".join([*lines[:at], bad, *lines[at:]]))
            wrong = [number for number, value in found if not isinstance(value, int)]
            assert wrong == ([] if mode == "drop" and '"a": 1' in bad else [at + 1])


def test_an_object_that_is_the_record():
    assert outcome(reader_of(format="object"), '{"a": 1,\n "b": 2,\n "b": 3}') == [(1, TWICE.format("b"))]
    (row,) = records_of(reader_of(format="object"), b'{"a": 1,\n "a": 3}')
    assert json.loads(row.error)["raw"] == '{"a": 1,  "a": 3}'


def test_a_line_with_records_in_it():
    text = '{"r": [{"a": 1}]}\n{"r": [{"a": 2, "z": 1, "z": 2}]}\n{"r": [], "r": [{"a": 3}]}\n'
    lines = {"format": "ndjson", "record_path": "r"}
    assert outcome(reader_of(**lines), text) == [(1, 1), (2, TWICE.format("r.z")), (3, TWICE.format("r"))]
    assert outcome(reader_of(mode="drop", **lines), text) == [(1, 1), (2, 2), (3, TWICE.format("r"))]
    assert outcome(reader_of(keys="last", **lines), text) == [(1, 1), (2, 2), (3, 3)]


def test_a_member_around_the_records_that_comes_twice_ends_the_file():
    text = b'{"r": [{"a": 1}], "r": [{"a": 2}, {"a": 3}]}'
    with pytest.raises(InputError, match=r"the member 'r' of the document comes twice; options\.duplicate_keys: last takes the last one"):
        records_of(reader_of(record_path="r"), text)
    assert [row.data["a"] for row in records_of(reader_of(record_path="r", keys="last"), text)] == [2, 3]


def test_deep_values_are_looked_at_too():
    deep = '{"a": 1, "z": ' + '{"k": ' * 400 + '{"q": 1, "q": 2}' + "}" * 400 + "}"
    ((_, message),) = outcome(reader_of(), deep)
    assert message.startswith("the member 'z.k.k.")
    assert message.endswith(".k.q' comes twice")


def test_what_a_dotted_column_or_an_array_is_read_from_counts():
    reader = reader_of("a:int m.q:int", mode="drop", arrays=[("$.items", "join", ",")])
    for bad in ('{"a": 1, "m": {"q": 1, "q": 2}, "items": []}', '{"a": 1, "m": {"q": 1}, "items": [], "items": [1]}'):
        assert isinstance(outcome(reader, bad)[0][1], str)
    assert outcome(reader, '{"a": 1, "m": {"q": 1}, "items": [1], "z": 1, "z": 2}') == [(1, 1)]


def test_pages_of_a_service_keep_the_text_of_such_a_record():
    lines = list(reader_of(format="array").lines(b'[{"a": 1},\n{"a": 2,\n "a": 3}]', "f.json"))
    assert lines == [b'{"a":1}', b'{"a": 2,  "a": 3}']
