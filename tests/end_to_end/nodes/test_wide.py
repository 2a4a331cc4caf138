"""Nodes of very many calls, branches and fields: plans nest only so deep, whatever stands side by side in a program."""

from __future__ import annotations

import pytest

from tests.support.pipelines import Folder

COUNT = 120
COLUMNS = [f"c{at}" for at in range(COUNT)]
PIPELINE = """\
pipeline: {{ name: wide }}
nodes:
  - type: source
    name: s
    config: {{ name: s, type: csv, path: in.csv, schema: [{{ name: g, type: int }}, {schema}] }}
  - {node}
  - type: output
    name: o
    input: {read}
    config: {{ name: o, type: csv, path: o.csv }}
"""


def made(path, type_: str, node: str, read: str = "x") -> Folder:
    folder = Folder(path)
    schema = ", ".join(f"{{ name: {name}, type: {type_} }}" for name in COLUMNS)
    folder.write("pipeline.yaml", PIPELINE.format(schema=schema, node=node, read=read))
    folder.write("in.csv", "\n".join([",".join(["g", *COLUMNS]), *(",".join([str(row % 2), *(str(row * at) for at in range(COUNT))]) for row in range(4))]) + "\n")
    folder.run()
    return folder


@pytest.mark.parametrize(("call", "type_", "expected"), [("sum", "int", [2, 4]), ("avg", "float", [1, 2]), ("sum", "numeric", [2, 4])])
def test_an_aggregate_of_many_sums(tmp_path, call, type_, expected):
    emits = "\n".join(f"        emit {name} = {call}({name})" for name in COLUMNS)
    folder = made(tmp_path, type_, f"type: aggregate\n    name: x\n    input: s\n    config:\n      group_by: [g]\n      cxl: |\n{emits}")
    assert folder.rows("o.csv") == [{"g": str(group), **{name: str(of * at) for at, name in enumerate(COLUMNS)}} for group, of in enumerate(expected)]


def test_an_inclusive_route_of_many_branches(tmp_path):
    branches = "\n".join(f"        b{at}: c1 > {at}" for at in range(COUNT))
    folder = made(tmp_path, "int", f"type: route\n    name: x\n    input: s\n    config:\n      mode: inclusive\n      conditions:\n{branches}\n      default: none", "x.none")
    assert [row["c1"] for row in folder.rows("o.csv")] == ["0"]
