"""States are continued after an edit: a node whose result depends on the edit is computed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from errata.plan.plan import Node
from storage.state import ledger
from storage.state.entry import FORMAT
from tests.support.pipelines import Folder, command

if TYPE_CHECKING:
    from pathlib import Path


PIPELINE = """\
pipeline: { name: continued }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [{ name: v, type: string }] } }
  - { type: transform, name: t, input: s, config: { cxl: emit x = v.to_int() } }
  - { type: output, name: out, input: t, config: { name: out, type: csv, path: out.csv } }
"""


def test_a_node_whose_columns_have_other_types_is_computed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Node, "fingerprint", lambda node: node.name)
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("s.csv", "v\n1\n2\n")
    folder.run()
    folder.write("pipeline.yaml", PIPELINE.replace("to_int()", "to_string()"))
    folder.write("s.csv", "v\n1\n2\n3\n")
    folder.run()
    assert folder.text("out.csv") == "v,x\n1,1\n2,2\n3,3\n"
    assert folder.violations() == []


WRITER = "  - { type: state, name: st, input: s, config: { scope: record, set: [{ var: rv, cxl: v.to_int() * 2 }] } }\n"
READER = """\
  - { type: transform, name: t, input: INPUT, config: { cxl: emit a = 1 } }
  - { type: transform, name: rd, input: t, config: { cxl: emit z = $record.rv + 1 } }
  - { type: output, name: out, input: rd, config: { name: out, type: csv, path: out.csv } }
"""


def test_readers_of_a_variable_that_nobody_writes_any_more_get_its_default(tmp_path: Path) -> None:
    head, source = PIPELINE.splitlines(keepends=True)[1:3]
    start = "pipeline: { name: continued, vars: { record: { rv: { type: int, default: 0 } } } }\n" + head + source
    folder = Folder(tmp_path)
    folder.write("s.csv", "v\n1\n3\n")
    for nodes, expected in ((WRITER + READER.replace("INPUT", "st"), [3, 7]), (READER.replace("INPUT", "s"), [1, 1]), (WRITER + READER.replace("INPUT", "st"), [3, 7])):
        folder.write("pipeline.yaml", start + nodes)
        folder.run()
        assert [int(row["z"]) for row in folder.rows("out.csv")] == expected
    assert folder.violations() == []


@pytest.mark.parametrize("words", [("run",), ("run", "--full-refresh"), ("status",), ("show", "out")])
def test_a_command_refuses_a_state_of_another_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", PIPELINE)
    folder.write("s.csv", "v\n1\n")
    folder.run()
    monkeypatch.setattr(ledger, "FORMAT", FORMAT + 1)
    code, _, stderr = command(words[0], str(tmp_path / "pipeline.yaml"), *words[1:])
    assert (code, f"the format of this state has number {FORMAT}, this version of Errata reads number {FORMAT + 1}; move " in stderr) == (4, True), stderr
