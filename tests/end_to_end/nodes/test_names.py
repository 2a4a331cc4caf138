"""A name that passes from a node of one type to one of another, with or without an epoch in between that has none of the name: nothing stays of the one before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from errata.core.failures import Usage
from errata.core.options import EngineOptions, RunOptions
from tests.support.pipelines import Folder

FIELDS = "schema: [{name: k, type: string}, {name: v, type: int}]"
OTHER = f"  - {{type: source, name: other, config: {{name: other, type: csv, path: rows.csv, {FIELDS}}}}}\n"
OUTPUT = "  - {type: output, name: out, input: %s, config: {name: out, type: csv, path: out.csv, if_exists: overwrite}}\n"
NAMED = {
    "transform": f'{OTHER}  - {{type: transform, name: x, input: other, config: {{cxl: "emit k = k\\nemit v = v"}}}}\n',
    "output": f"{OTHER}  - {{type: output, name: x, input: other, config: {{name: x, type: csv, path: x.csv}}}}\n",
    "places": f"  - {{type: source, name: x, config: {{name: x, type: csv, path: rows.csv, {FIELDS}}}}}\n",
    "keys": f"  - {{type: source, name: x, config: {{name: x, type: csv, path: rows.csv, {FIELDS}, merge: {{strategy: snapshot, primary_key: [k]}}}}}}\n",
    "table": f"  - {{type: source, name: x, config: {{name: x, type: delta, path: table, {FIELDS}}}}}\n",
    "gone": OTHER,
}
WALK = ["transform", "places", "keys", "output", "table", "places", "gone", "keys", "transform", "gone", "table"]
VERSIONS = ([("a", 1), ("b", 2)], [("b", 2), ("c", 1), ("d", 3)], [("a", 3)])


def test_nothing_stays_of_a_node_of_another_type(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for number, kind in enumerate(WALK):
        rows = VERSIONS[number % len(VERSIONS)]
        folder.write("rows.csv", "\n".join(["k,v", *(f"{k},{v}" for k, v in rows), ""]))
        write_deltalake(str(tmp_path / "table"), pa.table({"k": [k for k, _ in rows], "v": [v for _, v in rows]}), mode="overwrite")
        read = "other" if kind in ("output", "gone") else "x"
        folder.write("pipeline.yaml", f"pipeline: {{name: names}}\nnodes:\n{NAMED[kind]}{OUTPUT % read}")
        folder.run()
        assert [(row["k"], int(row["v"])) for row in folder.rows("out.csv")] == rows, (number, kind)
    assert folder.violations() == []


@pytest.mark.parametrize("kind", ["transform", "keys", "table"])
def test_rows_under_other_keys_do_not_come_back(tmp_path: Path, kind: str) -> None:
    """A revert cannot make a source's records of what a node of another type, or a source of another kind, had under its name."""
    folder = Folder(tmp_path)
    folder.write("rows.csv", "k,v\na,1\n")
    write_deltalake(str(tmp_path / "table"), pa.table({"k": ["a"], "v": [1]}))
    for one in (kind, "places"):
        folder.write("pipeline.yaml", f"pipeline: {{name: names}}\nnodes:\n{NAMED[one]}{OUTPUT % 'x'}")
        folder.run()
    with pytest.raises(Usage, match=r"epoch 1 knows the records of 'x' by .*, epoch 2 by their places in files"):
        folder.load().revert(1, RunOptions(engine=EngineOptions("sail")))
