"""Places are counted as editors do: lines from 0, UTF-16 units."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from errata.editor.positions import offset_at, point_at
from errata.yaml import SourceText
from tests.support.examples import examples

TEXTS = st.lists(st.sampled_from(["a", "é", "\U0001f600", "\n", "\r\n", "\r", "\t", "\u2028"]), max_size=30).map("".join)


def test_a_character_beyond_the_basic_plane_counts_twice():
    source = SourceText("a: 1\nb: '\U0001f600' # c")
    assert point_at(source, source.text.index("# c")) == (1, len("b: '\U0001f600' ".encode("utf-16-le")) // 2)
    assert offset_at(source, 1, 8) == source.text.index("# c")


@given(TEXTS, st.data())
@examples(40)
def test_there_and_back(text, data):
    source = SourceText(text)
    offset = data.draw(st.integers(0, len(text)))
    point = point_at(source, offset)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert point.character <= len(lines[point.line].encode("utf-16-le")) // 2
    back = offset_at(source, *point)
    assert back == offset or (text[back : offset + 1] == "\r\n")


@given(TEXTS, st.integers(-3, 40), st.integers(-3, 40))
@examples(40)
def test_any_place_is_some_offset(text, line, character):
    assert 0 <= offset_at(SourceText(text), line, character) <= len(text)
