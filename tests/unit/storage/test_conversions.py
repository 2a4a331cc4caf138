"""Type changes: engines and the driver read earlier values of a column alike, in its new type."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from storage.delta.changelog_table import ChangelogTable

if TYPE_CHECKING:
    from pathlib import Path

    from storage.engines import Engine

INT, FLOAT, BOOL, TEXT, DAY, TIME = pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.date32(), pa.timestamp("us", "UTC")
UTC = ZoneInfo("UTC")
MONEY, FINER = pa.decimal128(38, 2), pa.decimal128(38, 4)
NOON = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
CASES: list[tuple[pa.DataType, list[Any], pa.DataType, list[Any]]] = [
    (INT, [10, -3, None], TEXT, ["10", "-3", None]),
    (INT, [10, 2**53, None], FLOAT, [10.0, 2.0**53, None]),
    (FLOAT, [10.0, 10.5, -0.25, None], TEXT, ["10", "10.5", "-0.25", None]),
    (FLOAT, [10.0, 10.5, float("nan"), float("inf"), None], INT, [10, None, None, None, None]),
    (BOOL, [True, False, None], TEXT, ["true", "false", None]),
    (BOOL, [True, False, None], INT, [1, 0, None]),
    (TEXT, ["10", "+7", "-3", "x", "", "1.5", "99999999999999999999", None], INT, [10, 7, -3, None, None, None, None, None]),
    (TEXT, ["10", "1.5", ".5", "-2e3", "x", "", "1e400", "-1e400"], FLOAT, [10.0, 1.5, 0.5, -2000.0, None, None, None, None]),
    (TEXT, ["true", "FALSE", "1", None], BOOL, [True, False, None, None]),
    (TEXT, ["2024-02-29", "2024-02-30", "29.2.2024", None], DAY, [date(2024, 2, 29), None, None, None]),
    (TEXT, ["2024-02-29T12:30:00", "2024-02-29 12:30:00", "2024-02-29", None], TIME, [NOON, NOON, None, None]),
    (DAY, [date(2024, 2, 29), None], TEXT, ["2024-02-29", None]),
    (DAY, [date(2024, 2, 29), None], TIME, [datetime(2024, 2, 29, tzinfo=UTC), None]),
    (TIME, [NOON, None], TEXT, ["2024-02-29T12:30:00", None]),
    (TIME, [NOON, None], DAY, [date(2024, 2, 29), None]),
    (INT, [1, 0, None], BOOL, [None, None, None]),
    (FLOAT, [1.0], DAY, [None]),
    (INT, [2**62 + 1], FLOAT, [2.0**62]),
    (MONEY, [Decimal("2.50"), Decimal("-3.00"), Decimal("9" * 36 + ".99"), None], FINER, [Decimal("2.5000"), Decimal("-3.0000"), None, None]),
    (FINER, [Decimal("2.5000"), Decimal("2.5001")], MONEY, [Decimal("2.50"), None]),
    (INT, [7, -(2**63), None], MONEY, [Decimal("7.00"), Decimal(f"{-(2**63)}.00"), None]),
    (FLOAT, [0.1, 2.5, 0.125, 1e22, float("nan"), float("inf")], MONEY, [Decimal("0.10"), Decimal("2.50"), None, Decimal(f"{10**22}.00"), None, None]),
    (TEXT, ["2.5", "1e2", " 1", "1,0", "0.001", ""], MONEY, [Decimal("2.50"), Decimal("100.00"), None, None, None, None]),
    (BOOL, [True, False], MONEY, [Decimal("1.00"), Decimal("0.00")]),
    (DAY, [date(2024, 2, 29)], MONEY, [None]),
    (MONEY, [Decimal("7.00"), Decimal("7.50"), Decimal("9" * 30 + ".00")], INT, [7, None, None]),
    (MONEY, [Decimal("0.10"), Decimal("12345678901234567.89")], FLOAT, [0.1, 12345678901234567.89]),
    (MONEY, [Decimal("0.10"), Decimal("-0.05"), Decimal("0.00")], TEXT, ["0.10", "-0.05", "0.00"]),
]  # fmt: skip


COUNT = max(len(values) for _, values, _, _ in CASES)


def rows(which: int, values: int | None) -> pa.Table:
    """Return a column per case, in its earlier (0) or later (2) type, with the earlier (1) or later (3) values. None: no rows."""
    count = 0 if values is None else COUNT
    held = [[] if values is None else [*case[values], *[None] * (COUNT - len(case[values]))] for case in CASES]
    columns = {f"v{at}": pa.array(found, case[which]) for at, (case, found) in enumerate(zip(CASES, held, strict=True))}
    keys = pa.array([number.to_bytes(2, "big") for number in range(count)], pa.binary())
    return pa.table({"_op": pa.array([0] * count, pa.int8()), "_key": keys, **columns})


def values_in(table: pa.Table) -> list[str]:
    """Return the values of each case, in order."""
    found = table.sort_by([("_epoch", "ascending"), ("_key", "ascending")])
    return [repr(found.column(f"v{at}").to_pylist()) for at in range(len(CASES))]


def padded(*lists: list[Any]) -> str:
    return repr([value for values in lists for value in (*values, *[None] * (COUNT - len(values)))])


def test_values_are_read_in_the_type_that_the_column_has_now(engine: Engine, tmp_path: Path) -> None:
    ChangelogTable(str(tmp_path / "t"), rows(0, 1).schema).append(rows(0, 1), 1)
    table = ChangelogTable(str(tmp_path / "t"), rows(2, None).schema)
    wanted = [padded(after) for _, _, _, after in CASES]
    assert values_in(table.read_arrow()) == wanted
    assert values_in(engine.to_arrow(table.read(engine))) == wanted
    table.append(rows(2, 3), 2)
    twice = [padded(after, after) for _, _, _, after in CASES]
    assert values_in(table.read_arrow()) == twice
    assert values_in(engine.to_arrow(table.read(engine))) == twice
    before = [padded(values) for _, values, _, _ in CASES]
    again = ChangelogTable(str(tmp_path / "t"), rows(0, None).schema)
    assert values_in(again.read_arrow(at=1)) == before
    assert values_in(engine.to_arrow(again.read(engine, at=1))) == before
