"""States that an earlier version made are continued: what a node gives otherwise now is computed anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from cxl.compiler import compile_program
from cxl.types.types import Schema
from errata.plan.plan import Node
from tests.support.pipelines import Folder

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


@pytest.mark.parametrize("text", ["emit x = 7.max(v)", "emit x = v.min(7)", "emit x = v.clamp(0, 7)", 'emit x = "a".concat(v)'])
def test_programs_whose_values_alone_tell_what_changed_say_so_and_others_do_not(text: str) -> None:
    kinds = {"string": "any"} if "concat" in text else {"int": "any", "float": "numeric"}
    for declared, dynamic in kinds.items():
        plain, loose = (compile_program(text, Schema.of({"v": type_}), mode="row").normal_text() for type_ in (declared, dynamic))
        assert loose.startswith(f"{plain}\n# ")


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
