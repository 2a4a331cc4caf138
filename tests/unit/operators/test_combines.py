"""Combines, as text tables: what deltas of the driver and of builds do to the joined rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changelog.rows import Limits
from operators.testing import Memory, bound, check

INPUTS = ("l", "r")


def joined(**config):
    settings = {"where": "l.k == r.k", "propagate_ck": "driver", "cxl": "emit id = l.id\nemit label = r.label", **config}
    return bound("combine", settings, "id:int, k:int", "k:int, label:string", qualifiers=INPUTS)


def test_a_corrected_build_row_touches_the_rows_of_its_key_alone(sail):
    check(sail, joined(), """
        l      | op | key | id | k
        before | +A | 1   | 1  | 1
        before | +A | 2   | 2  | 2
        r      | op | key | k | label
        before | +A | a   | 1 | one
        before | +A | b   | 2 | two
        delta  | -C | a   | 1 | one
        delta  | +C | a   | 1 | uno
        output | op | id | label
        expect | -C | 1  | one
        expect | +C | 1  | uno
    """, inputs=INPUTS)  # fmt: skip


def test_drivers_of_all_kinds_of_change(sail):
    check(sail, joined(), """
        l      | op | key | id | k
        before | +A | 1   | 1  | 1
        before | +A | 2   | 2  | 2
        r      | op | key | k | label
        before | +A | a   | 1 | one
        l      | op | key | id | k
        delta  | +A | 3   | 3  | 1
        delta  | -C | 1   | 1  | 1
        delta  | +C | 1   | 1  | 2
        delta  | -R | 2   | 2  | 2
        r      | op | key | k | label
        delta  | +A | b   | 2 | two
        output | op | id | label
        expect | -C | 1  | one
        expect | +C | 1  | two
        expect | -R | 2  |
        expect | +A | 3  | one
    """, inputs=INPUTS)  # fmt: skip


def test_the_first_build_row_in_build_order_is_the_match(sail):
    check(sail, joined(), """
        l      | op | key | id | k
        before | +A | 1   | 1  | 1
        r      | op | key | k | label
        before | +A | b   | 1 | second
        delta  | +A | a   | 1 | first
        delta  | +A | c   | 1 | third
        output | op | id | label
        expect | -C | 1  | second
        expect | +C | 1  | first
    """, inputs=INPUTS)  # fmt: skip


def test_all_matches_come_and_go_by_themselves(sail):
    check(sail, joined(match="all", on_miss="skip"), """
        l      | op | key | id | k
        before | +A | 1   | 1  | 1
        r      | op | key | k | label
        before | +A | a   | 1 | one
        delta  | +A | b   | 1 | two
        output | op | id | label
        expect | +A | 1  | two
        r      | op | key | k | label
        delta  | -R | a   | 1 | one
        output | op | id | label
        expect | -R | 1  | one
    """, inputs=INPUTS)  # fmt: skip


@pytest.mark.parametrize(("miss", "rows"), [("null_fields", "expect | +A | 1  |"), ("skip", "")])
def test_a_driver_without_match(sail, miss, rows):
    check(sail, joined(on_miss=miss), f"""
        l      | op | key | id | k
        delta  | +A | 1   | 1  |
        r      | op | key | k | label
        delta  | +A | a   |   | null equals nothing
        output | op | id | label
        {rows}
    """, inputs=INPUTS)  # fmt: skip


THREE = {
    ("first", "skip"): ["O1 | New | Office"],
    ("first", "error"): ["O1 | New | Office"],
    ("first", "null_fields"): ["O1 | Old | ", "O2 | |"],
    ("all", "skip"): ["O1 | New | Office"],
    ("all", "null_fields"): ["O1 | Old |", "O1 | New | Office", "O2 | |"],
}


@pytest.mark.parametrize(("match", "miss"), THREE)
def test_the_first_match_of_three_inputs_is_one_of_all_of_them(sail, match, miss):
    """A row of one input that has no counterpart in the next is none."""
    config = {"where": "o.pid == p.pid and p.cat == c.cat", "match": match, "on_miss": miss, "propagate_ck": "driver", "cxl": "emit oid = o.oid emit t = p.title emit l = c.label"}
    operator = bound("combine", config, "oid:string, pid:string", "pid:string, title:string, cat:int", "cat:int, label:string", qualifiers=("o", "p", "c"))
    expected = "\n".join(f"expect | +A | {row}" for row in THREE[match, miss])
    other = "" if miss == "error" else "delta | +A | 2 | O2 | P2"
    check(sail, operator, f"""
        o      | op | key | oid | pid
        delta  | +A | 1   | O1  | P1
        {other}
        p      | op | key | pid | title | cat
        delta  | +A | 1   | P1  | Old   | 7
        delta  | +A | 2   | P1  | New   | 1
        c      | op | key | cat | label
        delta  | +A | 1   | 1   | Office
        output | op | oid | t | l
        {expected}
    """, inputs=("o", "p", "c"))  # fmt: skip


@pytest.mark.parametrize("where", ["l.k == r.k", "l.k == r.k and l.id >= r.since"])
@pytest.mark.parametrize("builds", [[("b", 1, 3), ("a", 2, 0), ("c", None, 0)], [("b", 1, 0), ("a", 1, 3), ("c", 1, 0), ("d", 2, 9)]], ids=["one row a key", "several"])
def test_many_drivers_meet_the_first_build_row_of_their_key(sail, where, builds):
    settings = {"where": where, "propagate_ck": "driver", "on_miss": "skip", "cxl": "emit id = l.id\nemit since = r.since"}
    memory = Memory(sail, bound("combine", settings, "id:int, k:int", "k:int, since:int", qualifiers=INPUTS), Limits(small_rows=0))
    drivers = [(number, (1, 2, 3, None)[number % 4]) for number in range(12)]
    found = memory.answer([appended(id=[id_ for id_, _ in drivers], k=[k for _, k in drivers]), appended([key for key, _, _ in builds], k=[k for _, k, _ in builds], since=[s for _, _, s in builds])])
    met = {id_: [since for _, key, since in sorted(builds) if key == k and k is not None and ("since" not in where or id_ >= since)] for id_, k in drivers}
    assert {row["id"]: row["since"] for row in found.to_pylist()} == {id_: sinces[0] for id_, sinces in met.items() if sinces}


def appended(keys: list[str] | None = None, **columns: list[int | None]) -> pa.Table:
    """Rows that come, by key or in order."""
    count = len(next(iter(columns.values())))
    keys = keys or [f"{number:02d}" for number in range(count)]
    fixed = {"_op": pa.array([0] * count, pa.int8()), "_key": pa.array([key.encode() for key in keys], pa.binary()), "_cause": pa.array(["ingest"] * count)}
    return pa.table({**fixed, **{name: pa.array(values, pa.int64()) for name, values in columns.items()}})
