"""`id` and `ID` are two columns, as in the files that they come from: through every node, in every run, on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline: { name: letters }
nodes:
  - type: source
    name: sales
    config:
      name: sales
      type: csv
      path: sales.csv
      schema: [{ name: id, type: int }, { name: ID, type: string }, { name: x, type: int }]
  - type: source
    name: names
    config: { name: names, type: csv, path: names.csv, schema: [{ name: k, type: string }, { name: K, type: string }] }
  - { type: route, name: sizes, input: sales, config: { mode: exclusive, conditions: { large: "x > 3" }, default: small } }
  - { type: transform, name: tens, input: sizes.large, config: { cxl: "emit X = x * 10" } }
  - { type: transform, name: ones, input: sizes.small, config: { cxl: "emit X = x" } }
  - { type: merge, name: both, inputs: [tens, ones] }
  - { type: transform, name: firsts, input: both, config: { cxl: "distinct by ID" } }
  - type: combine
    name: named
    input: { sale: firsts, name: names }
    config: { propagate_ck: driver, where: "sale.ID == name.k", cxl: "emit id = sale.id\\nemit ID = name.K\\nemit X = sale.X" }
  - type: transform
    name: running
    input: named
    config: { analytic_window: { group_by: [ID], sort_by: [{ field: id }] }, cxl: "emit Id = $window.sum(X)" }
  - { type: aggregate, name: totals, input: running, config: { group_by: [ID], cxl: "emit id = sum(Id)" } }
  - { type: output, name: rows, input: running, config: { name: rows, type: csv, path: rows.csv } }
  - { type: output, name: sums, input: totals, config: { name: sums, type: csv, path: sums.csv } }
"""


@pytest.mark.parametrize("engine", ["sail", "spark"])
def test_columns_that_differ_in_case_alone(engine: str, tmp_path: Path) -> None:
    """The second run brings rows in, takes the first of a key back and corrects what a join finds."""
    folder = Folder(tmp_path, engine)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("sales.csv", "id,ID,x\n1,a,3\n2,b,5\n")
    folder.write("names.csv", "k,K\na,A\nb,B\n")
    folder.run()
    assert folder.text("rows.csv") == "id,ID,X,Id\n2,B,50,50\n1,A,3,3\n"
    assert folder.text("sums.csv") == "ID,id\nA,3\nB,50\n"
    folder.write("sales.csv", "id,ID,x\n1,a,3\n2,b,5\n3,a,1\n4,c,7\n")
    folder.write("names.csv", "k,K\na,A\nb,A\nc,B\n")
    folder.run()
    assert folder.text("rows.csv") == "id,ID,X,Id\n2,A,50,53\n4,B,70,70\n1,A,3,3\n"
    assert folder.text("sums.csv") == "ID,id\nA,56\nB,70\n"
    assert folder.violations() == []
