"""I1 to I5 and I8: any sequence of changes ends as one full run over the last input would, and as plain Python says."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.sales import HEADER, KEYED, KEYLESS, as_text, expected, pipeline
from tests.support.examples import examples
from tests.support.pipelines import Folder

Records = list[dict[str, Any]]
Files = Mapping[str, Records]

amounts = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 10.5, 49.5, 50.0, 0.1, 0.2, -7.25, 1e16, -1e16]))
regions = st.sampled_from(["EU", "US", "none", "apac"])
parts = st.sampled_from([0, 1, 2, 3, 7])


def record(number: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"id": st.just(number), "region": regions, "amount": amounts, "parts": parts})


@st.composite
def histories(draw: st.DrawFn, *, keyed: bool) -> list[Files]:
    """Versions of up to three files: records come, go, change, swap places; files come and go."""
    numbers = iter(range(1, 1000))
    files: dict[str, Records] = {"b.csv": [draw(record(next(numbers))) for _ in range(draw(st.integers(0, 6)))]}
    versions: list[Files] = [{name: list(rows) for name, rows in files.items()}]
    for _ in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(1, 3))):
            _change(draw, files, numbers, keyed=keyed)
        versions.append({name: list(rows) for name, rows in files.items()})
    return versions


def _change(draw: st.DrawFn, files: dict[str, Records], numbers: Any, *, keyed: bool) -> None:
    name = draw(st.sampled_from(["a.csv", "b.csv", "c.csv"]))
    kind = draw(st.sampled_from(["insert", "insert", "remove", "correct", "swap", "file", "repeat"]))
    rows = files.setdefault(name, [])
    at = draw(st.integers(0, len(rows)))
    if kind == "insert":
        rows.insert(at, draw(record(next(numbers))))
    elif kind == "file":
        del files[name]
    elif rows:
        at = min(at, len(rows) - 1)
        if kind == "remove":
            del rows[at]
        elif kind == "correct":
            rows[at] = draw(record(rows[at]["id"]))
        elif kind == "swap":
            rows[at], rows[0] = rows[0], rows[at]
        elif not keyed:
            rows.insert(at, dict(rows[at]))


def lay_out(folder: Folder, files: Files) -> None:
    """Make the data folder hold exactly these files."""
    (folder.path / "data").mkdir(exist_ok=True)
    for name in ("a.csv", "b.csv", "c.csv"):
        if name in files:
            folder.write_csv(f"data/{name}", HEADER, files[name])
        else:
            folder.remove(f"data/{name}")


def in_order(files: Files, *, keyed: bool) -> Records:
    """All records in the order in which their source gives them."""
    rows = [row for name in sorted(files) for row in files[name]]
    return sorted(rows, key=lambda row: int(row["id"])) if keyed else rows


def check_outputs(folder: Folder, files: Files, *, keyed: bool, names: Sequence[str] = ("rows", "totals", "bounds")) -> None:
    """The outputs are what plain Python makes of the last version of the files."""
    want = expected(in_order(files, keyed=keyed))
    for name in names:
        assert folder.rows(f"out/{name}.csv") == as_text(want[name]), name
    ids = {row["id"] for row in want["rejected"]}
    places = [
        {"_cxl_dlq_source_file": f"data/{name}", "_cxl_dlq_source_row": str(at), "id": str(row["id"])}
        for name in sorted(files)
        for at, row in enumerate(files[name], 1)
        if row["id"] in ids
    ]
    rejected = folder.rows("out/rejected.csv") if places else []
    assert [{name: row[name] for name in ("_cxl_dlq_source_file", "_cxl_dlq_source_row", "id")} for row in rejected] == places
    assert (folder.path / "out/rejected.csv").exists() == bool(places)


def run_history(history: Sequence[Files], *, keyed: bool, persist: str = "all", engine: str = "sail") -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place), engine)
        folder.write("pipeline.yaml", pipeline(KEYED if keyed else KEYLESS, persist))
        for files in history:
            lay_out(folder, files)
            result = folder.run()
            assert result.exit_code == (2 if expected(in_order(files, keyed=keyed))["rejected"] else 0)
            check_outputs(folder, files, keyed=keyed)
        assert folder.violations() == []
        before = folder.state_files()
        assert not folder.run().committed
        assert folder.state_files() == before


@examples(24)
@given(histories(keyed=False))
def test_keyless_files_follow_every_change(history: list[Files]) -> None:
    run_history(history, keyed=False)


@examples(24)
@given(histories(keyed=True))
def test_keyed_files_follow_every_change(history: list[Files]) -> None:
    run_history(history, keyed=True)


@examples(24)
@given(histories(keyed=False))
def test_changelogs_of_boundaries_alone_give_the_same(history: list[Files]) -> None:
    run_history(history, keyed=False, persist="boundaries")


FIXED: list[Files] = [
    {"b.csv": [{"id": 1, "region": "EU", "amount": 10.5, "parts": 2}, {"id": 2, "region": "US", "amount": 1e16, "parts": 0}]},
    {
        "a.csv": [{"id": 9, "region": "US", "amount": 50.0, "parts": 3}],
        "b.csv": [{"id": 1, "region": "EU", "amount": 0.1, "parts": 2}, {"id": 2, "region": "US", "amount": 1e16, "parts": 7}],
    },
    {"b.csv": [{"id": 2, "region": "US", "amount": -1e16, "parts": 7}, {"id": 3, "region": "EU", "amount": None, "parts": 1}]},
]


@pytest.mark.parametrize("engine", ["sail", "spark"])
@pytest.mark.parametrize("keyed", [False, True])
def test_one_history_on_both_engines(engine: str, keyed: bool) -> None:
    run_history(FIXED, keyed=keyed, engine=engine)
