"""Transforms, routes and merges, as text tables."""

from __future__ import annotations

from operators.testing import bound, check


def test_a_transform_maps_both_images_and_equal_ones_vanish(sail):
    check(sail, bound("transform", {"cxl": "filter v > 0\nemit half = v / 2"}, "g:string, v:int"), """
        input  | op | key | g | v
        before | +A | 1   | x | 4
        before | +A | 2   | x | 6
        before | +A | 3   | x | -1
        delta  | -C | 1   | x | 4
        delta  | +C | 1   | x | 5
        delta  | -C | 2   | x | 6
        delta  | +C | 2   | x | -6
        delta  | -C | 3   | x | -1
        delta  | +C | 3   | x | 9
        output | op | g | v | half
        expect | -C | x | 4 | 2
        expect | +C | x | 5 | 2
        expect | -R | x | 6 | 3
        expect | +A | x | 9 | 4
    """)  # fmt: skip


def test_a_failing_record_is_a_reject_and_its_repair_a_row(sail):
    check(sail, bound("transform", {"cxl": "emit part = 12 / v"}, "v:int"), """
        input  | op | key | v
        delta  | +A | 1   | 3
        delta  | +A | 2   | 0
        output | op | part | error
        expect | +A | 4    |
        expect | +A |      | type_coercion_failure
        input  | op | key | v
        delta  | -C | 2   | 0
        delta  | +C | 2   | 6
        output | op | part | error
        expect | +A | 2    |
        expect | -R |      | type_coercion_failure
    """)  # fmt: skip


def test_a_check_rejects_a_record_once_and_whole(sail):
    checks = [{"check": "n > 0", "name": "pos"}, {"check": 'v != "3"', "name": "three"}]
    config = {"cxl": 'emit id = id\nemit each it in q.split("-") {\nemit v = it\n}', "validations": checks}
    check(sail, bound("transform", config, "id:int, n:int, q:string"), """
        input  | op | key | id | n  | q
        delta  | +A | 1   | 1  | 1  | 1-2
        delta  | +A | 2   | 2  | -1 | 3-4-5
        delta  | +A | 3   | 3  | 1  | 4-3
        output | op | id | v   | error
        expect | +A | 1  | "1" |
        expect | +A | 1  | "2" |
        expect | +A |    |     | validation_failure
        expect | +A |    |     | validation_failure
    """)  # fmt: skip


def test_a_record_that_changes_its_branch_is_retracted_and_appended(sail):
    check(sail, bound("route", {"conditions": {"big": "v > 5"}, "default": "rest"}, "v:int"), """
        input  | op | key | v
        before | +A | 1   | 9
        delta  | -C | 1   | 9
        delta  | +C | 1   | 2
        output | op | v | _port
        expect | -C | 9 | big
        expect | +C | 2 | rest
    """)  # fmt: skip


def test_a_merge_keeps_rows_of_its_inputs_apart(sail):
    check(sail, bound("merge", {}, "v:int", "v:float"), """
        l      | op | key | v
        before | +A | 1   | 1
        r      | op | key | v
        before | +A | 1   | 2.5
        l      | op | key | v
        delta  | -R | 1   | 1
        r      | op | key | v
        delta  | +A | 2   | 3
        output | op | v
        expect | -R | 1
        expect | +A | 3
    """, inputs=("l", "r"))  # fmt: skip
