"""What a pipeline file may not say: its code, its message and where it stands; nothing is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

import errata
from tests.pipelines import Folder

SOURCES = "".join(
    f"  - {{ type: source, name: {name}, config: {{ name: {name}, type: csv, path: {name}.csv, schema: [{{ name: id, type: int }}] }} }}\n" for name in ("s", "t")
)
OUT = "  - { type: output, name: out, input: s, config: { name: out, type: csv, path: out.csv } }\n"
BOTH = "  - { type: merge, name: both, inputs: [s, t] }\n"
BODY = """\
composition: { name: twice, params: [{ name: factor, type: TYPE, default: 2 }] }
nodes:
  - { type: transform, name: doubled, input: input, config: { cxl: "emit id = id * 2" } }
"""
PIPELINE = "pipeline: { name: p }\nnodes:\n"
REFUSED = {
    "no nodes": ("pipeline: { name: p }\nnodes: []\n", "CFG-004", "'nodes' must be a list of at least 1 entry, not an empty list", "[]"),
    "a variable's key": ("pipeline: { name: p, vars: { n: { type: int, defualt: 1 } } }\nnodes:\n" + SOURCES + OUT, "CFG-001", "unknown key 'defualt'", "defualt"),
    "a scoped variable's key": ("pipeline: { name: p, vars: { pipeline: { n: { type: int, defualt: 1 } } } }\nnodes:\n" + SOURCES + OUT, "CFG-001", "unknown key 'defualt'", "defualt"),
    "the scope of a variable that a transform declares": (
        PIPELINE + SOURCES + OUT + "  - { type: transform, name: w, input: s, config: { cxl: emit r = 1, declares: [{ name: n, scope: recrod, type: int }] } }\n",
        "CFG-004", "'scope' must be 'pipeline', 'source' or 'record', not the text 'recrod'", "recrod",
    ),
    "no scope of a variable that a transform declares": (
        PIPELINE + SOURCES + OUT + "  - { type: transform, name: w, input: s, config: { cxl: emit r = 1, declares: [{ name: n, type: int }] } }\n",
        "CFG-002", "missing key 'scope'", "{ name: n",
    ),
    "a check without its argument": (
        PIPELINE + SOURCES + OUT + "  - { type: transform, name: w, input: s, config: { cxl: emit r = 1, validations: [{ field: id, check: min }] } }\n",
        "CFG-002", "check 'min' needs the argument 'value'", "{ field: id",
    ),
    "a check with another argument": (
        PIPELINE + SOURCES + OUT + "  - { type: transform, name: w, input: s, config: { cxl: emit r = 1, validations: [{ field: id, check: range, args: { min: 1 } }] } }\n",
        "CFG-002", "check 'range' needs the argument 'max'", "{ min: 1 }",
    ),
    "a list of no paths": (PIPELINE + SOURCES.replace("path: t.csv", "paths: []") + OUT, "E211", "source 't' names no files", "[]"),
    "metadata by a word": (
        PIPELINE + SOURCES + OUT.replace("out.csv", "out.csv, include_metadata: al"), "CFG-004", "'include_metadata' must be 'all', 'none' or a list, not the text 'al'", "al",
    ),
    "a window's field": (
        PIPELINE + SOURCES + OUT + "  - { type: transform, name: w, input: s, config: { cxl: emit r = 1, analytic_window: { group_by: [zz] } } }\n",
        "E252", "partition field 'zz' is not in the rows of the window", "[zz]",
    ),
    "a window that nothing reads": (
        PIPELINE + SOURCES + OUT + "  - { type: transform, name: w, input: s, config: { cxl: emit r = 1, analytic_window: { source: t, on: id, group_by: [id] } } }\n",
        "E255", "no $window call reads the rows of this window", "t,",
    ),
    "one name of two sources, in the path of changes": (
        PIPELINE + SOURCES + BOTH + OUT.replace("input: s", "input: both").replace("path: out.csv", "path: out.csv, changelog: { path: '{source_name}' }"),
        "E324", "'{source_name}' could be any of s, t: write '{source_name:s}'", "{ path: '{source_name}' }",
    ),
    "one name of two sources": (
        PIPELINE + SOURCES + BOTH + OUT.replace("input: s", "input: both").replace("out.csv", "'{source_name}.csv'"),
        "E324", "'{source_name}' could be any of s, t: write '{source_name:s}'", "'{source_name}.csv'",
    ),
    **{
        f"{keys} of a {strategy}": (PIPELINE + SOURCES.replace("t.csv", f"t.csv, merge: {{ strategy: {strategy}, primary_key: {keys} }}") + OUT, "CFG-004", f"'primary_key': {why}", keys)
        for strategy in ("snapshot", "ledger", "upsert") for keys, why in (("[id, id]", "a field stands twice"), ("[]", "a key needs a field"))
    },
    "a compared field twice": (
        PIPELINE + SOURCES.replace("t.csv", "t.csv, merge: { primary_key: [id], compare: [id, id] }") + OUT, "CFG-004", "'compare': a field stands twice", "[id, id]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_told_where_it_stands(case: str, tmp_path: Path) -> None:
    text, code, message, marked = REFUSED[case]
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", text)
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    (wrong,) = caught.value.diagnostics
    assert (wrong.code, wrong.message) == (code, message)
    line = text.splitlines()[wrong.line - 1]
    assert line[wrong.column - 1 :].startswith(marked)


def test_what_does_not_go_together_is_told_beside_all_else(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    service = "{ kind: rest, url: 'http://h/x', max_pages: 1, pagination: { limit: 5 }, auth: { scheme: bearer } }"
    config = f"name: s, type: csv, path: s.csv, transport: {service}, merge: {{ strategy: append, primary_key: [no], op: id }}, schema: [{{ name: id, type: int }}]"
    folder.write("pipeline.yaml", f"{PIPELINE}  - {{ type: source, name: s, config: {{ {config} }} }}\n{OUT}")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert sorted((one.code, one.message) for one in caught.value.diagnostics) == [
        ("CFG-004", "'auth': scheme 'bearer' needs token"),
        ("CFG-004", "'merge': 'op' belongs to strategy 'changelog', not 'append'"),
        ("CFG-004", "'merge': strategy 'append' takes no primary_key"),
        ("CFG-004", "'pagination': 'limit' belongs to strategy 'offset', not 'none'"),
        ("CFG-004", "'transport': an http URL is not encrypted: use https, or say allow_http: true"),
        ("E215", "there is no column 'no' in the schema"),
        ("E219", "source 's' reads a service; path names files"),
        ("E220", "source 's' reads a service, whose answers cannot be csv"),
    ]


def test_the_type_of_a_parameter(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("twice.comp.yaml", BODY.replace("TYPE", "integer"))
    folder.write("pipeline.yaml", PIPELINE + SOURCES + "  - { type: composition, name: c, input: s, use: ./twice.comp.yaml }\n" + OUT.replace("input: s", "input: c"))
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    (wrong,) = caught.value.diagnostics
    assert (wrong.code, Path(str(wrong.file)).name) == ("CFG-004", "twice.comp.yaml")
    assert wrong.message.startswith("'type': unknown type 'integer'; there are bool, int")
    folder.write("twice.comp.yaml", BODY.replace("TYPE", "int"))
    folder.load()
