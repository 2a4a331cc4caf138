"""Aggregates, as text tables: what a delta of the input does to the groups."""

from __future__ import annotations

import pytest

from operators.testing import bound, check


@pytest.mark.parametrize("calls", ["emit total = sum(v)\nemit n = count(*)", "emit total = collect(v).length() * sum(v) / count(v)\nemit n = count(*)"])
def test_groups_follow_the_changes_of_their_rows(sail, calls):
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": calls}, "g:string, v:int"), """
        input  | op | key | g | v
        before | +A | 1   | x | 1
        before | +A | 3   | y | 7
        delta  | +A | 2   | x | 4
        delta  | -R | 3   | y | 7
        output | op | g | total | n
        expect | -C | x | 1     | 1
        expect | +C | x | 5     | 2
        expect | -R | y | 7     | 1
        input  | op | key | g | v
        delta  | -C | 2   | x | 4
        delta  | +C | 2   | x | 6
        output | op | g | total | n
        expect | -C | x | 5     | 2
        expect | +C | x | 7     | 2
    """)  # fmt: skip


def test_offsetting_corrections_change_nothing(sail):
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": "emit total = sum(v)"}, "g:string, v:int"), """
        input  | op | key | g | v
        before | +A | 1   | x | 1
        before | +A | 2   | x | 4
        delta  | -C | 1   | x | 1
        delta  | +C | 1   | x | 2
        delta  | -C | 2   | x | 4
        delta  | +C | 2   | x | 3
        output | op | g | total
    """)  # fmt: skip


def test_a_retracted_extreme_gives_way_to_the_next(sail):
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": "emit top = max(v)\nemit one = first(v)"}, "g:string, v:int"), """
        input  | op | key | g | v
        before | +A | 1   | x | 1
        before | +A | 2   | x | 7
        before | +A | 3   | x | 7
        delta  | -R | 2   | x | 7
        output | op | g | top | one
        input  | op | key | g | v
        delta  | -R | 3   | x | 7
        output | op | g | top | one
        expect | -C | x | 7   | 1
        expect | +C | x | 1   | 1
    """)  # fmt: skip


def test_the_group_of_zeros_is_zero_whichever_sign_they_have(sail):
    check(sail, bound("aggregate", {"group_by": ["f"], "cxl": "emit n = count(*)"}, "f:float"), """
        input  | op | key | f
        before | +A | 1   | -0.0
        before | +A | 2   | 0
        delta  | -R | 1   | -0.0
        output | op | f | n
        expect | -C | 0 | 2
        expect | +C | 0 | 1
        input  | op | key | f
        delta  | -C | 2   | 0
        delta  | +C | 2   | -0.0
        output | op | f | n
    """)  # fmt: skip


def test_means_of_no_value_are_null_and_null_is_a_group(sail):
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": "emit mean = avg(v)\nemit n = count(*)"}, "g:string, v:int"), """
        input  | op | key | g | v
        before | +A | 1   |   |
        delta  | +A | 2   |   | 4
        delta  | +A | 3   | x |
        output | op | g | mean | n
        expect | +A | x |      | 1
        expect | -C |   |      | 1
        expect | +C |   | 4    | 2
    """)  # fmt: skip


@pytest.mark.parametrize("few", [True, False], ids=["driver", "engine"])
@pytest.mark.parametrize("more", ["", "\nemit all = collect(v).length()"], ids=["sums", "rows"])
@pytest.mark.parametrize("kind", ["int", "float"])
def test_calls_of_the_same_arguments_have_results_of_their_own(sail, kind, more, few):
    calls = "emit n = count(v)\nemit s = sum(v)\nemit m = avg(v)\nemit top = max(v)\nemit a = weighted_avg(v, w)\nemit b = weighted_avg(w, v)\nemit c = weighted_avg(v, v)"
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": calls + more}, f"g:string, v:{kind}, w:{kind}"), """
        input  | op | key | g | v | w
        delta  | +A | 1   | x | 2 | 3
        delta  | +A | 2   | x | 4 | 1
        delta  | +A | 3   | x |   | 5
        output | op | g | n | s | m   | top | a   | b       | c
        expect | +A | x | 2 | 6 | 3   | 4   | 2.5 | 1.66667 | 3.33333
        input  | op | key | g | v | w
        delta  | -R | 2   | x | 4 | 1
        output | op | g | n | s | m   | top | a   | b       | c
        expect | -C | x | 2 | 6 | 3   | 4   | 2.5 | 1.66667 | 3.33333
        expect | +C | x | 1 | 2 | 2   | 2   | 2   | 3       | 2
    """, few=few)  # fmt: skip


def test_a_group_whose_statements_fail_is_a_reject_until_it_is_repaired(sail):
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": "emit part = 12 / sum(v)"}, "g:string, v:int"), """
        input  | op | key | g | v
        delta  | +A | 1   | x | 2
        delta  | +A | 2   | x | -2
        output | op | g | part | error
        expect | +A |   |      | aggregate_finalize
        input  | op | key | g | v
        delta  | +A | 3   | x | 6
        output | op | part | error
        expect | +A | 2    |
        expect | -R |      | aggregate_finalize
    """)  # fmt: skip


DECIMALS = "g:string, v:decimal(38,2), w:int"


def test_sums_and_means_of_decimals_are_exact(sail):
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": "emit total = sum(v)\nemit mean = avg(v)\nemit m = weighted_avg(v, w)"}, DECIMALS), """
        input  | op | key | g | v                     | w
        before | +A | 1   | x | 12345678901234567.89  | 3
        before | +A | 2   | x | 0.01                  | 1
        before | +A | 3   | x |                       | 9
        delta  | -R | 1   | x | 12345678901234567.89  | 3
        delta  | +A | 4   | x | 0.20                  | 2
        output | op | g | total                | mean                           | m
        expect | -C | x | 12345678901234567.90 | 6172839450617283.950000000000  | 9259259175925925.920000000000
        expect | +C | x | 0.21                 | 0.105000000000                 | 0.136666666667
        input  | op | key | g | v                     | w
        delta  | -R | 2   | x | 0.01                  | 1
        delta  | -R | 4   | x | 0.20                  | 2
        output | op | g | total | mean           | m
        expect | -C | x | 0.21  | 0.105000000000 | 0.136666666667
        expect | +C | x |       |                |
    """)  # fmt: skip


def test_a_total_of_too_many_digits_fails_its_group_until_it_fits(sail):
    check(sail, bound("aggregate", {"group_by": ["g"], "cxl": "emit total = sum(v)"}, DECIMALS), """
        input  | op | key | g | v                                       | w
        before | +A | 1   | x | 999999999999999999999999999999999999.99 | 1
        before | +A | 2   | y | 1.00                                    | 1
        delta  | +A | 3   | x | 0.01                                    | 1
        output | op | g | total                                   | error
        expect | -R | x | 999999999999999999999999999999999999.99 |
        expect | +A |   |                                         | aggregate_finalize
        input  | op | key | g | v     | w
        delta  | +A | 4   | x | -0.02 | 1
        output | op | g | total                                   | error
        expect | +A | x | 999999999999999999999999999999999999.98 |
        expect | -R |   |                                         | aggregate_finalize
    """)  # fmt: skip


def test_decimals_of_one_value_are_one_group(sail):
    check(sail, bound("aggregate", {"group_by": ["v"], "cxl": "emit n = count(*)\nemit top = max(w)"}, DECIMALS), """
        input  | op | key | g | v    | w
        before | +A | 1   | x | 2.5  | 1
        before | +A | 2   | x | 2.50 | 2
        before | +A | 3   | x | -10  | 5
        delta  | -R | 2   | x | 2.50 | 2
        output | op | v    | n | top
        expect | -C | 2.50 | 2 | 2
        expect | +C | 2.50 | 1 | 1
    """)  # fmt: skip
