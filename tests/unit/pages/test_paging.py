"""Parts of long lists."""

from __future__ import annotations

import pytest

from errata.pages.paging import cut_out, part


@pytest.mark.parametrize(("wanted", "number", "items"), [(1, 1, "abc"), (2, 2, "def"), (3, 3, "g"), (0, 1, "abc"), (-5, 1, "abc"), (10**9, 3, "g")])
def test_any_number_leads_to_a_part_that_is_there(wanted, number, items):
    found, shown = cut_out("abcdefg", 3, wanted)
    assert (found.number, found.of, found.total, shown) == (number, 3, 7, items)
    assert (found.before, found.after) == (number - 1 or None, number + 1 if number < 3 else None)


def test_an_empty_list_has_one_empty_part():
    assert cut_out([], 10, 4) == (part(0, 10, 1), [])
