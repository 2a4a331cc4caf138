"""Names of the system's own columns: an error of the check wherever a pipeline gives them, and no trouble where a file has them."""

import json

import pytest

from operators.core.row_type import HIDDEN_TYPES, SYSTEM, is_reserved
from storage.formats.base import ERROR, ROW

NAMES = ["_epoch", "_op", "_key", "_cause", "_ck", "_order", "_refused", *HIDDEN_TYPES, "__rank", "_cxl_pass"]
COMBINE = "input: { a: s, b: t }\n    config:\n      where: a.id == b.id\n      propagate_ck: driver"
PLACES = {
    "transform": ("transform", "input: s\n    config:", "emit {} = id"),
    "explode": ("transform", "input: s\n    config:", 'emit each one in "1,2".split(",") {{ emit {} = one }}'),
    "aggregate": ("aggregate", "input: s\n    config:\n      group_by: [id]", "emit {} = count(*)"),
    "window": ("transform", "input: s\n    config:\n      analytic_window: { group_by: [id], sort_by: [{ field: id, order: asc }] }", "emit {} = $window.sum(id)"),
    "combine": ("combine", COMBINE, "emit {} = b.id"),
}
HEAD = """\
pipeline: { name: names }
nodes:
  - type: source
    name: s
    config: { name: s, type: json, path: in.ndjson, schema: [{ name: id, type: int }] }
  - type: source
    name: t
    config: { name: t, type: json, path: in.ndjson, schema: [{ name: id, type: int }] }
"""
OUTPUT = "  - type: output\n    name: o\n    input: {}\n    config: {{ name: o, type: json, options: {{ format: ndjson }}, path: o.ndjson{} }}\n"


def node(place: str, name: str) -> str:
    kind, keys, program = PLACES[place]
    return f"  - type: {kind}\n    name: x\n    {keys}\n      cxl: |\n        {program.format(name)}\n"


def test_the_names_are_those_that_frames_have():
    assert all(map(is_reserved, (*SYSTEM, *HIDDEN_TYPES)))
    assert not any(map(is_reserved, ("id", "_id", "_type", "op", "_Op", "_", "a_op", ROW, ERROR)))


@pytest.mark.parametrize("place", PLACES)
def test_a_program_that_emits_one(bed, place):
    for name in NAMES if place == "transform" else NAMES[1::6]:
        ended = bed.run({"pipeline.yaml": HEAD + node(place, name) + OUTPUT.format("x", "")}, ("check", "pipeline.yaml"))
        assert (ended.code, f"error[E214]: '{name}' is a name that changelogs use themselves" in ended.err) == (1, True), ended.err


def test_a_schema_or_a_mapping_that_has_one(bed):
    for name in NAMES:
        declared = HEAD.replace("{ name: id, type: int }", f"{{ name: id, type: int }}, {{ name: {name}, type: int }}", 1) + OUTPUT.format("s", "")
        mapped = HEAD + OUTPUT.format("s", f", mapping: {{ {name}: id }}")
        for text in (declared, mapped):
            ended = bed.run({"pipeline.yaml": text}, ("check", "pipeline.yaml"))
            assert (ended.code, f"error[E214]: '{name}' is" in ended.err) == (1, True), ended.err


def test_undeclared_fields_may_have_any_name(bed):
    record = {"id": 1, **{name: f"v{at}" for at, name in enumerate(dict.fromkeys(NAMES))}}
    files = {"in.ndjson": json.dumps(record) + "\n", "pipeline.yaml": HEAD + OUTPUT.format("s", "")}
    ended = bed.run(files)
    assert (ended.code, json.loads((ended.folder / "o.ndjson").read_text())) == (0, record), ended.err
