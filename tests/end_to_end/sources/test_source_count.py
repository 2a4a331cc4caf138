"""`$source.count`: null while records come, the source's total behind its end; another total is a correction of every row that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder, command, standing_in

PIPELINE = """
pipeline: {name: counted}
error_handling: {strategy: continue}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, glob: in/*.csv, schema: [{name: g, type: string}, {name: v, type: int}, {name: t, type: date_time}],
      watermark: {column: t}}}
  - {type: transform, name: each, input: s, config: {cxl: "emit n = $source.count"}}
  - {type: output, name: records, input: each, config: {name: records, type: csv, path: records.csv, exclude: [t]}}
  - {type: transform, name: some, input: s, config: {cxl: "filter g != \\"c\\""}}
  - {type: aggregate, name: sums, input: some, config: {group_by: [g], cxl: "emit rows = count(*)\\nemit of = $source.count\\nemit inside = max($source.count)"}}
  - {type: output, name: groups, input: sums, config: {name: groups, type: csv, path: groups.csv}}
  - {type: transform, name: shares, input: sums, config: {cxl: "emit share = rows * 100 / $source.count"}}
  - {type: output, name: shares_out, input: shares, config: {name: shares_out, type: csv, path: shares.csv, exclude: [rows, of, inside]}}
  - {type: aggregate, name: highest, input: s, config: {group_by: [g], cxl: "emit top = max(v)\\nemit of = $source.count"}}
  - {type: output, name: tops, input: highest, config: {name: tops, type: csv, path: tops.csv}}
  - {type: aggregate, name: days, input: s, config: {group_by: [g], time_window: {tumbling: {size: 1d}}, allowed_lateness: 30d, cxl: "emit of = $source.count"}}
  - {type: output, name: daily, input: days, config: {name: daily, type: csv, path: days.csv}}
"""
TIME = "2024-01-05T10:00:00"


def rows(*cells: str) -> str:
    return "g,v,t\n" + "".join(f"{cell},{TIME}\n" for cell in cells)


def run(folder: Folder, *words: str) -> int:
    with standing_in(folder.path):
        return command("run", "pipeline.yaml", "--quiet", *words)[0]


def column(folder: Folder, name: str, at: int) -> list[str]:
    return [line.split(",")[at] for line in folder.text(name).splitlines()[1:]]


def test_the_total_of_a_source(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("in/a.csv", rows("a,1", "b,2", "a,3"))
    assert run(folder) == 0
    assert folder.text("records.csv") == "g,v,n\na,1,\nb,2,\na,3,\n"
    assert folder.text("groups.csv") == "g,rows,of,inside\na,2,3,3\nb,1,3,3\n"
    assert column(folder, "tops.csv", 2) == ["3", "3"]

    folder.write("in/b.csv", rows("c,1", "c,x"))  # one record is rejected: it was read
    assert run(folder) == 2
    assert folder.text("groups.csv") == "g,rows,of,inside\na,2,5,5\nb,1,5,5\n"
    assert folder.text("shares.csv") == "g,share\na,40\nb,20\n"
    assert column(folder, "tops.csv", 2) == ["5", "5", "5"]
    assert set(column(folder, "days.csv", -1)) == {"5"}

    folder.write("in/a.csv", rows("a,1", "b,2", "b,3"))  # other values, as many records
    assert run(folder) == 2
    assert folder.text("groups.csv") == "g,rows,of,inside\na,1,5,5\nb,2,5,5\n"
    written = {name: folder.text(name) for name in ("records.csv", "groups.csv", "shares.csv", "tops.csv", "days.csv")}
    assert run(folder, "--full-refresh") == 2
    assert {name: folder.text(name) for name in written} == written
    assert folder.violations() == []


SUMS = """
pipeline: {name: sums}
error_handling: {strategy: continue}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: g, type: string}, {name: v, type: float}]}}
  - {type: aggregate, name: sums, input: s, config: {group_by: [g], cxl: "emit total = sum(v)\\nemit of = $source.count"}}
  - {type: output, name: out, input: sums, config: {name: out, type: csv, path: out.csv}}
"""


def test_sums_stay_exact_where_the_total_changes(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", SUMS)
    folder.write("s.csv", "g,v\na,1.5\n")
    assert run(folder) == 0
    folder.write("s.csv", "g,v\na,1.5\na,1e-30\n")  # further apart than the limbs of a sum hold
    assert run(folder) == 0
    assert folder.text("out.csv") == "g,total,of\na,1.5,2\n"


TWO = """
pipeline: {name: two}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: g, type: string}]}}
  - {type: source, name: r, config: {name: r, type: csv, path: r.csv, schema: [{name: g, type: string}]}}
  - {type: merge, name: both, inputs: [s, r], config: {}}
  - {type: aggregate, name: sums, input: both, config: {group_by: [g], cxl: "emit of = $source.count"}}
  - {type: output, name: out, input: sums, config: {name: out, type: csv, path: out.csv}}
"""


def test_several_sources_have_no_single_total(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", TWO)
    folder.write("s.csv", "g\na\n")
    folder.write("r.csv", "g\na\nb\n")
    assert run(folder) == 0
    assert folder.text("out.csv") == "g,of\na,\nb,\n"


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.spark)])
def test_on_spark(engine: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("in/a.csv", rows("a,1", "b,2", "a,3"))
    assert run(folder, "--engine", engine) == 0
    assert folder.text("groups.csv") == "g,rows,of,inside\na,2,3,3\nb,1,3,3\n"
