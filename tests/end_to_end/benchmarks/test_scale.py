"""The figures of a plan for more rows, over few of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.scale import main, measured

if TYPE_CHECKING:
    import pytest


def test_two_runs_are_measured_and_their_totals_are_right(tmp_path: Path) -> None:
    first, corrected = measured(2_000, "sail", tmp_path)
    assert (first["step"], corrected["step"]) == ("first run", "corrected")
    for one in (first, corrected):
        assert all(one[name] > 0 for name in ("seconds", "microseconds", "written", "files", "commits", "memory"))
    assert list(tmp_path.iterdir()) == []


def test_a_line_for_each_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["500", "--folder", str(tmp_path), "--here"])
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [["500", "sail"], ["500", "sail"]]
