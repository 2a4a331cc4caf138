"""The rows that a small change reads: keys that changed their type are found among rows of all epochs, new drivers of a combine are compared with nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder, jsonl

PIPELINE = """\
pipeline: {{ name: touched }}
changelog: {{ persist: {persist} }}
nodes:
  - type: source
    name: rows
    config: {{ name: rows, type: csv, glob: "rows*.csv", schema: [{{ name: k, type: {kind} }}, {{ name: v, type: int }}] }}
  - {{ type: transform, name: doubled, input: rows, config: {{ cxl: "emit w = v * 2" }} }}
  - {{ type: aggregate, name: highest, input: doubled, config: {{ group_by: [k], cxl: "emit high = max(w)" }} }}
  - {{ type: output, name: result, input: highest, config: {{ name: result, type: json, options: {{ format: ndjson }}, path: high.ndjson }} }}
"""


@pytest.mark.parametrize("persist", ["all", "boundaries"])
def test_keys_that_changed_their_type_and_back(persist: str, tmp_path: Path) -> None:
    """A row that an epoch of another type took back does not come back when its key is touched."""
    folder = Folder(tmp_path)
    folder.write("rows1.csv", "k,v\n5,9\n6,1\n")
    for kind in ("int", "string", "int"):
        folder.write("pipeline.yaml", PIPELINE.format(kind=kind, persist=persist))
        folder.run()
    folder.write("rows1.csv", "k,v\n5,3\n6,1\n")
    folder.run()
    folder.write("rows2.csv", "k,v\n5,4\n")
    folder.run()
    assert jsonl(folder.text("high.ndjson")) == [{"k": 5, "high": 8}, {"k": 6, "high": 2}]
    assert folder.violations() == []


JOIN = """\
pipeline: { name: joined }
nodes:
  - type: source
    name: rows
    config: { name: rows, type: csv, glob: "rows*.csv", schema: [{ name: id, type: int }, { name: k, type: int }] }
  - type: source
    name: items
    config: { name: items, type: csv, path: items.csv, schema: [{ name: k, type: int }, { name: label, type: string }] }
  - type: combine
    name: labelled
    input: { r: rows, i: items }
    config: { where: "r.k == i.k", match: first, propagate_ck: driver, cxl: "emit id = r.id\\nemit label = i.label" }
  - { type: output, name: result, input: labelled, config: { name: result, type: json, options: { format: ndjson }, preserve_nulls: true, path: labels.ndjson } }
"""


def test_drivers_of_all_kinds_of_change(tmp_path: Path) -> None:
    """New drivers, corrected ones, and drivers of a changed build row, alone and in one run with changes of their own."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", JOIN)
    items = {1: "one", 2: "two"}
    files = {"rows1.csv": {1: 1, 2: 2, 3: 3}}
    for number, change in enumerate([{}, {"rows2.csv": {4: 1, 5: 3}}, {"rows2.csv": {4: 2, 5: 3}}, {3: "three"}, {1: "uno", "rows1.csv": {1: 1, 2: 1, 3: 3}, "rows3.csv": {6: 1}}]):
        files |= {name: rows for name, rows in change.items() if isinstance(name, str)}
        items |= {key: label for key, label in change.items() if isinstance(key, int)}
        for name, rows in files.items():
            folder.write_csv(name, ["id", "k"], [{"id": one, "k": key} for one, key in rows.items()])
        folder.write_csv("items.csv", ["k", "label"], [{"k": key, "label": label} for key, label in items.items()])
        folder.run()
        wanted = [{"id": one, "label": items.get(key)} for rows in files.values() for one, key in rows.items()]
        assert jsonl(folder.text("labels.ndjson")) == wanted, number
    assert {row["op"] for row in folder.log("labelled") if row["epoch"] == 2} == {"+A"}
    assert folder.violations() == []


EXTREMES = """\
pipeline: { name: corrected }
nodes:
  - type: source
    name: rows
    config: { name: rows, type: csv, path: rows.csv, schema: [{ name: id, type: int }, { name: g, type: string }, { name: v, type: int }] }
  - { type: aggregate, name: highest, input: rows, config: { group_by: [g], cxl: "emit high = max(v)" } }
  - { type: output, name: result, input: highest, config: { name: result, type: csv, path: high.csv } }
"""


def test_more_corrections_than_the_driver_holds(tmp_path: Path) -> None:
    """The touched groups are then a query of the engine, which looks for them in the table of the source."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", EXTREMES)
    for more in (0, 7):
        values = [(at, "ab"[at % 2], at + more if at < 5_200 else at - 5_200) for at in range(5_500)]
        folder.write("rows.csv", "id,g,v\n" + "".join(f"{at},{g},{v}\n" for at, g, v in values))
        folder.run()
        assert folder.text("high.csv") == f"g,high\na,{5_198 + more}\nb,{5_199 + more}\n"
