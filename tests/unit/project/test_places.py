"""Places: spans of values and keys, and the map from a scalar's text to the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.yaml import Document, parse_yaml

TEXT = """\
pipeline:
  name: "a\\tb${X}c"   # ${NOPE}
  count: ${N}
nodes:
  - cxl: |

      emit a = 1
        emit b = ${X}
    quoted: 'it''s
      folded'
    folded: >
      one
      two

      three
        more
      four
    plain: plain ${X:-d}
      text  here # c
    anchored: &one "x"
    again: *one
    flow: {a: ${X}, b: [1, 2.5, yes, ~]}
"""
ENV = {"X": "xx yy", "N": "5"}


def _document() -> Document:
    document = parse_yaml(TEXT, file="p.yaml", env=ENV)
    assert not document.diagnostics
    return document


def _at(document: Document, path: tuple[str | int, ...], text: str, needle: str) -> tuple[int, int]:
    place = document.origin(path).locate(text.index(needle))
    return place.line, place.column


def test_values_are_yaml_1_2_with_references_replaced() -> None:
    node = _document().value["nodes"][0]  # type: ignore[index]
    assert _document().value["pipeline"] == {"name": "a\tbxx yyc", "count": 5}  # type: ignore[index]
    assert node["cxl"] == "\nemit a = 1\n  emit b = xx yy\n"
    assert node["folded"] == "one two\nthree\n  more\nfour\n"
    assert node["flow"] == {"a": "xx yy", "b": [1, 2.5, "yes", None]}
    assert (node["anchored"], node["again"]) == ("x", "x")


@pytest.mark.parametrize(
    ("key", "needle", "line", "column"),
    [
        ("cxl", "emit a", 7, 7),
        ("cxl", "emit b", 8, 9),
        ("cxl", "xx yy", 8, 18),
        ("quoted", "it's", 9, 14),
        ("quoted", "s folded", 9, 18),
        ("quoted", "folded", 10, 7),
        ("folded", "two", 13, 7),
        ("folded", "three", 15, 7),
        ("folded", "more", 16, 9),
        ("folded", "four", 17, 7),
        ("plain", "xx", 18, 18),
        ("plain", "here", 19, 13),
        ("anchored", "x", 20, 21),
    ],
)
def test_a_place_in_a_scalar(key: str, needle: str, line: int, column: int) -> None:
    document = _document()
    text = document.value["nodes"][0][key]  # type: ignore[index]
    assert _at(document, ("nodes", 0, key), text, needle) == (line, column)


def test_escapes_of_a_double_quoted_scalar() -> None:
    text = 'a: "\\u0041\\x42\\n\\U0001F600z\\\n   next"'
    document = parse_yaml(text)
    assert document.value == {"a": "AB\n\U0001f600znext"}
    places = [document.origin(("a",)).locate(index) for index in range(9)]
    assert [(place.line, place.column) for place in places] == [(1, 5), (1, 11), (1, 15), (1, 17), (1, 27), (2, 4), (2, 5), (2, 6), (2, 7)]


def test_spans_of_keys_and_values() -> None:
    document = _document()
    span, key = document.span(("pipeline", "count")), document.key_span(("pipeline", "count"))
    assert (span.file, span.line, span.column, span.length) == ("p.yaml", 3, 10, 4)
    assert (key.line, key.column, key.length) == (3, 3, 5)


def test_a_path_that_is_not_there_has_the_place_of_what_is_above_it() -> None:
    document = _document()
    assert document.span(("pipeline", "memory", "limit")) == document.span(("pipeline",))
    assert document.key_span(("pipeline", "memory")) == document.span(("pipeline",))
    assert not document.has(("pipeline", "memory"))
    assert document.has(("nodes", 0, "flow", "b", 3))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_kind(ending: str) -> None:
    document = parse_yaml("a: 1\nb:\n  c: |\n    x = 1\n    y = 2\n".replace("\n", ending))
    place = document.origin(("b", "c")).locate(6)
    assert (place.line, place.column) == (5, 5)
    assert document.source.line_text(5) == "    y = 2"


def test_a_byte_order_mark_is_not_a_column() -> None:
    assert parse_yaml("\ufeffa: 1\na: 2".encode()).diagnostics[0].line == 2
    assert parse_yaml("\ufeffa: 1").key_span(("a",)).column == 1


WORDS = st.text("ab {}'\":#-é\U0001f600", min_size=1, max_size=12)


@given(st.lists(WORDS.filter(str.strip), min_size=1, max_size=5), st.integers(1, 4), st.sampled_from("|>"))
def test_characters_of_a_block_stand_where_the_map_says(lines: list[str], indent: int, mark: str) -> None:
    body = "\n".join(" " * indent + line.strip() for line in lines)
    document = parse_yaml(f"k: {mark}\n{body}\n")
    value = document.value["k"]  # type: ignore[index]
    _all_found(document, value)


@given(st.text("ab\"\\\n\té'$ ", max_size=30))
def test_characters_of_a_quoted_scalar_stand_where_the_map_says(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("$", "$$")
    document = parse_yaml(f'k: "{escaped}"')
    assert document.value == {"k": value}
    _all_found(document, value)


def _all_found(document: Document, value: str) -> None:
    """Each character that is not white space is in the file at its place, or an escape of it begins there."""
    origin = document.origin(("k",))
    last = (0, 0)
    for index, character in enumerate(value):
        place = origin.locate(index)
        assert (place.line, place.column) >= last
        last = (place.line, place.column)
        there = origin.line_text(place.line)[place.column - 1 : place.column]
        assert character.isspace() or there in (character, "\\", "$")
