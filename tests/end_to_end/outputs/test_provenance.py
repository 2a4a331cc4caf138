"""`with_provenance`: each row of a file says when and why it last changed."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from errata.core.diagnostics import PipelineErrors
from errata.core.options import Correction
from tests.support.pipelines import Folder, limited

PIPELINE = """
pipeline: { name: dated }
nodes:
  - type: source
    name: orders
    config: { name: orders, type: csv, glob: "in/*.csv", merge: { strategy: upsert, primary_key: [id] }, schema: [{ name: id, type: int }, { name: v, type: int }] }
  - { type: output, name: all, input: orders, config: { name: all, type: csv, path: all.csv, with_provenance: true } }
"""
NAMES = ("provenance.epoch", "provenance.cause", "provenance.reason")


def folder(path: Path, pipeline: str = PIPELINE) -> Folder:
    made = Folder(path)
    made.write("pipeline.yaml", pipeline)
    made.write("in/a.csv", "id,v\n1,1\n2,2\n3,3\n")
    return made


def origins(made: Folder) -> dict[str, tuple[str, ...]]:
    """By record its value and where it came from; the time of each row is that of its epoch's run."""
    rows = made.rows("all.csv")
    begun = {str(row["epoch"]): row["started"] for row in made.load().runs()}
    for row in rows:
        assert datetime.fromisoformat(f"{row['provenance.changed_at']}+00:00") == begun[row["provenance.epoch"]]
    return {row["id"]: (row["v"], *(row[name] for name in NAMES)) for row in rows}


@pytest.mark.parametrize("small", [True, False], ids=["on the driver", "in the engine"])
def test_each_row_says_when_and_why_it_changed(small: bool, tmp_path: Path) -> None:
    made = folder(tmp_path)
    with limited(**({} if small else {"small_rows": 0, "driver_rows": 0})):
        made.run()
        assert origins(made) == {key: (key, "1", "ingest", "") for key in "123"}
        made.write("in/b.csv", "id,v\n2,20\n4,4\n")
        made.run()
        assert origins(made) == {"1": ("1", "1", "ingest", ""), "2": ("20", "2", "correction", ""), "3": ("3", "1", "ingest", ""), "4": ("4", "2", "ingest", "")}
        list(made.load().correct(Correction("orders", {"id": "3"}, {"v": "30"}, "counted again"))[0])
        assert origins(made)["3"] == ("30", "3", "correction", "counted again")
        (tmp_path / "all.csv").unlink()
        made.run()
        assert origins(made)["3"] == ("30", "3", "correction", "counted again")
    assert made.violations() == []


def test_a_full_refresh_begins_anew(tmp_path: Path) -> None:
    made = folder(tmp_path)
    made.run()
    made.write("in/b.csv", "id,v\n2,20\n")
    made.run()
    made.run(full_refresh=True)
    assert {row[1] for row in origins(made).values()} == {"1"}


@pytest.mark.parametrize(
    ("before", "after"),
    [("type: csv, path: all.csv", "type: delta, path: all"), ("type: csv, path: all.csv", "type: csv, path: all.csv, history: { key: [id] }"), ("with_provenance: true", 'with_provenance: true, mapping: { "provenance.epoch": v }')],
)  # fmt: skip
def test_where_there_is_no_place(before: str, after: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineErrors, match="E475"):
        folder(tmp_path, PIPELINE.replace(before, after)).load()
