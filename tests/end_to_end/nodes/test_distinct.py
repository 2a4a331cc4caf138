"""`distinct`: whatever changes, each key's first record stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.csv_histories import Row, Version, follow, heading, histories, source, transform
from tests.support.examples import examples
from tests.support.pipelines import Folder, command, standing_in

COLUMNS = {"id": "int", "a": "string", "b": "float", "n": "int"}
HEADERS = {"rows": list(COLUMNS)}
record = st.fixed_dictionaries({
    "id": st.integers(1, 99), "a": st.sampled_from(["x", "y", "Z", ""]), "b": st.sampled_from([None, 0.0, -0.0, 1.5]), "n": st.sampled_from([None, 0, 1, 2, 3]),
})  # fmt: skip

PROGRAMS = {
    "by_field": "emit id = id\ndistinct by a",
    "bare": "emit low = a.lower()\nemit b = b\ndistinct",
    "between_filters": "emit id = id\nfilter n > 0\ndistinct by b\nfilter n < 3",
    "two": "emit id = id\ndistinct by a\ndistinct by b",
    "three": "emit id = id\ndistinct by a\nfilter n != 3\ndistinct by b\nemit share = 6 / n\ndistinct by share",
    "fails_behind": "emit id = id\ndistinct by a\nemit share = 6 / n",
    "fails_before": "emit id = id\nemit share = 6 / n\ndistinct by a",
}


def pipeline() -> str:
    return heading("distinct") + source("rows", COLUMNS) + "".join(transform(name, "rows", cxl) for name, cxl in PROGRAMS.items())


def firsts(rows: Iterable[Row], key: Callable[[Row], Any]) -> list[Row]:
    seen: list[Any] = []
    kept = []
    for row in rows:
        if key(row) not in seen:
            seen.append(key(row))
            kept.append(row)
    return kept


def shares(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Records with `share`, and failing records: a null divides to null, a zero fails."""
    good = [{"id": row["id"], "share": None if row["n"] is None else 6 // row["n"], "a": row["a"]} for row in rows if row["n"] != 0]
    return good, [row for row in rows if row["n"] == 0]


def model(version: Version) -> dict[str, list[Row]]:
    rows = list(version["rows"])
    ids = lambda found: [{"id": row["id"]} for row in found]  # noqa: E731 - said once
    positive = [row for row in rows if row["n"] is not None and row["n"] > 0]
    lower = [{"low": row["a"].lower(), "b": row["b"]} for row in rows]
    behind, bad_behind = shares(firsts(rows, lambda row: row["a"]))
    before, bad_before = shares(rows)
    without = lambda found: [{"id": row["id"], "share": row["share"]} for row in found]  # noqa: E731 - said once
    third, bad_third = shares(firsts((row for row in firsts(rows, lambda row: row["a"]) if row["n"] not in (None, 3)), lambda row: row["b"]))
    failures = [("three", row) for row in bad_third] + [("fails_behind", row) for row in bad_behind] + [("fails_before", row) for row in bad_before]
    return {
        "by_field": ids(firsts(rows, lambda row: row["a"])),
        "bare": firsts(lower, lambda row: (row["low"], row["b"])),
        "between_filters": ids(row for row in firsts(positive, lambda row: row["b"]) if row["n"] < 3),
        "two": ids(firsts(firsts(rows, lambda row: row["a"]), lambda row: row["b"])),
        "three": without(firsts(third, lambda row: row["share"])),
        "fails_behind": without(behind),
        "fails_before": without(firsts(before, lambda row: row["a"])),
        "rejected": [{"stage": stage, "category": "type_coercion_failure", "id": row["id"]} for stage, row in failures],
    }


@examples(24, 2, suppress_health_check=list(HealthCheck))
@given(histories({"rows": record}))
def test_every_step_is_what_python_says(history: list[Version]) -> None:
    follow(history, pipeline(), HEADERS, model)


def rows(*cells: tuple[Any, ...]) -> Version:
    return {"rows": [dict(zip(COLUMNS, row, strict=True)) for row in cells]}


FIXED = [
    rows((1, "x", 1.5, 1), (2, "x", None, 0), (3, "y", 1.5, 2), (4, "", None, None)),
    rows((2, "x", None, 0), (3, "y", 1.5, 2), (4, "", None, None), (5, "y", 0.0, 3)),
    rows((2, "x", None, 2), (5, "y", -0.0, 3), (6, "x", 0.0, 0)),
]


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_one_history_on_both_engines(engine: str) -> None:
    follow(FIXED, pipeline(), HEADERS, model, engine)


def test_the_next_record_takes_the_place_of_the_first(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", pipeline())
    for version in (FIXED[0], rows(*(tuple(row.values()) for row in FIXED[0]["rows"][1:]))):
        folder.write_csv("rows.csv", HEADERS["rows"], version["rows"])
        folder.run()
    found = [(row["op"], row["data"]["id"]) for row in folder.log("by_field") if row["epoch"] == 2]
    assert sorted(found) == [("+A", 2), ("-R", 1)]


def test_beside_emit_each_it_is_refused(tmp_path: Path) -> None:
    text = heading("refused") + source("rows", COLUMNS) + transform("parts", "rows", 'emit each part in a.split("-") {\n  emit part = part\n}\ndistinct')
    Folder(tmp_path).write("pipeline.yaml", text)
    with standing_in(tmp_path):
        code, _, stderr = command("check", "pipeline.yaml")
    assert code == 1
    assert "E254" in stderr
