"""The form of a correction: no field that a browser would send back as another text."""

from __future__ import annotations

import pytest

from errata.pages.record_forms import MOST_FIELD, fields_of_form


@pytest.mark.parametrize("other", ["a\nb", "a\rb", "a\r\nb", "\n", "a\0b"])
def test_a_value_that_a_browser_alters_is_left_out(other):
    assert fields_of_form({"id": "1", "note": other, "qty": "2"}, ("id",)) == ((("id", "1"),), (("qty", "2"),))


@pytest.mark.parametrize(("texts", "named"), [({"id": "1\n", "qty": "2"}, ("id",)), ({"id": "1", "note": "a\r\nb"}, None), ({"i\nd": "1", "qty": "2"}, ("i\nd",))])
def test_a_key_that_a_browser_alters_has_no_form(texts, named):
    assert fields_of_form(texts, named) == ((), ())


def test_all_columns_name_a_record_without_a_key():
    texts = {"id": "1", "qty": "2"}
    assert fields_of_form(texts, None) == (tuple(texts.items()), tuple(texts.items()))


def test_a_record_with_a_long_value_has_no_form():
    assert fields_of_form({"id": "1", "note": "x" * (MOST_FIELD + 1)}, ("id",)) == ((), ())
