"""Compositions: what a body becomes in the plan, what is refused and where, and what a change of it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.core.failures import Usage
from tests.support.pipelines import Folder, command

HEAD = """
pipeline:
  name: p
  vars: {limit: 5, pipeline: {cutoff: {type: int, default: 2}}, record: {mark: {type: string}}}
nodes:
  - {type: source, name: rows, config: {name: rows, type: csv, path: rows.csv, schema: [{name: k, type: string}, {name: v, type: int}]}}
  - {type: source, name: other, config: {name: other, type: csv, path: other.csv, schema: [{name: k, type: string}, {name: v, type: int}]}}
"""
CALL = "  - {type: composition, name: scaled, input: rows, use: parts/scaled.comp.yaml, config: {factor: 3}}\n"
AGAIN = "  - {type: transform, name: again, input: scaled, config: {cxl: emit w = v}}\n"
OUTPUT = "  - {type: output, name: result, input: scaled, config: {name: result, type: csv, path: out.csv}}\n"
SCALED = """
_compose:
  name: scaled
  inputs: {rows: {schema: [{name: v, type: int}]}}
  outputs: {all: add, big: split.big}
  config_schema:
    factor: {type: int, default: 2, range: [1, 9]}
    label: {type: string, default: none, enum: [none, some]}
nodes:
  - {type: transform, name: times, input: rows, config: {cxl: "emit w = v * $vars.factor"}}
  - {type: transform, name: add, input: times, config: {cxl: "emit w = w + 1"}}
  - {type: route, name: split, input: add, config: {conditions: {big: w > 5}, default: small}}
"""


def project(place: Path, nodes: str = CALL + OUTPUT, body: str = SCALED) -> Folder:
    folder = Folder(place)
    folder.write("pipeline.yaml", HEAD + nodes)
    folder.write("parts/scaled.comp.yaml", body)
    folder.write("rows.csv", "k,v\na,1\nb,2\n")
    folder.write("other.csv", "k,v\nc,7\n")
    return folder


def findings(folder: Folder) -> list[Diagnostic]:
    with pytest.raises(PipelineErrors) as caught:
        folder.load()
    return [one for one in caught.value.diagnostics if one.is_error]


def test_a_body_stands_in_the_plan(tmp_path: Path) -> None:
    nodes = CALL + OUTPUT + OUTPUT.replace("result", "bigs").replace("input: scaled", "input: scaled.big").replace("out.csv", "bigs.csv")
    folder = project(tmp_path, nodes)
    assert folder.load().node_names == ("rows", "other", "scaled/times", "scaled/add", "scaled/split", "result", "bigs")
    folder.run()
    assert folder.text("out.csv") == "k,v,w\na,1,4\nb,2,7\n"
    assert folder.text("bigs.csv") == "k,v,w\nb,2,7\n"
    assert (tmp_path / ".errata/p/changelog/scaled/times/_delta_log").is_dir()
    code, out, _ = command("log", str(tmp_path / "pipeline.yaml"), "scaled/times", "--format", "jsonl")
    assert (code, out.count('"node":"scaled/times"') + out.count('"node": "scaled/times"')) == (0, 2)


@pytest.mark.parametrize(("factor", "made"), [("3", ("3", "6")), ("1.5", ("1.5", "3"))])
def test_a_numeric_parameter_is_a_number_of_either_kind(factor: str, made: tuple[str, str], tmp_path: Path) -> None:
    body = PLAIN.replace("name: factor, type: int", "name: factor, type: numeric").replace("w, type: int", "w, type: any")
    folder = project(tmp_path, CALL.replace("factor: 3", f"factor: {factor}") + OUTPUT, body)
    folder.run()
    assert folder.text("out.csv") == "k,v,w\na,1,{}\nb,2,{}\n".format(*made)


def test_a_parameter_may_be_a_list_or_a_map(tmp_path: Path) -> None:
    body = PLAIN.replace("produces: [{name: w, type: int}]", "produces: []").replace("name: factor, type: int", "name: list, type: array}, {name: map, type: map}, {name: any, type: any")
    body = body.replace("v * $vars.factor", "$vars.list\\nemit x = $vars.map.b.n\\nemit y = $vars.any\\nfilter $vars.list.any(it => it == v)")
    folder = project(tmp_path, CALL.replace("{factor: 3}", "{list: [2, c], map: {b: {n: 5}}, any: [null]}") + OUTPUT.replace("csv", "json"), body)
    folder.run()
    assert json.loads(folder.text("out.json")) == [{"k": "b", "v": 2, "w": [2, "c"], "x": 5, "y": [None]}]
    folder.write("acme.channel.yaml", "channel: {name: acme, target: pipeline.yaml}\nconfig: {fixed: {scaled.list: [1]}}\n")
    assert folder.load(channel=str(tmp_path / "acme.channel.yaml")).explain_field("scaled", "list").startswith("scaled.list = [1]   (channel fixed)")


def test_a_changed_body_is_a_change_of_logic(tmp_path: Path) -> None:
    folder = project(tmp_path)
    folder.run()
    folder.write("parts/scaled.comp.yaml", "# a comment is none\n" + SCALED)
    assert not folder.run().committed
    folder.write("parts/scaled.comp.yaml", SCALED.replace("w + 1", "w + 10"))
    assert folder.run().counts == {"scaled/add": {"-C": 2, "+C": 2}, "scaled/split": {"-C": 2, "+C": 2}, "result": {"-C": 2, "+C": 2}}
    folder.write("pipeline.yaml", HEAD + CALL.replace("factor: 3", "factor: 4") + OUTPUT)
    folder.run()
    assert folder.text("out.csv") == "k,v,w\na,1,14\nb,2,18\n"
    assert {row["cause"] for row in folder.log("scaled/times")} == {"ingest", "logic"}
    assert folder.violations() == []


def test_two_calls_of_one_file_each_have_their_own_nodes(tmp_path: Path) -> None:
    second = "  - {type: composition, name: again, alias: twice, input: scaled, use: ./parts/scaled.comp.yaml}\n"
    folder = project(tmp_path, CALL + second + OUTPUT.replace("input: scaled", "input: again"))
    assert folder.load().node_names[-4:] == ("twice/times", "twice/add", "twice/split", "result")
    folder.run()
    assert folder.text("out.csv") == "k,v,w\na,1,3\nb,2,5\n"  # the second call has the default factor


def test_an_output_port_may_be_an_input_port(tmp_path: Path) -> None:
    body = SCALED.replace("outputs: {all: add, big: split.big}", "outputs: {all: rows}")
    folder = project(tmp_path, body=body)
    folder.run()
    assert folder.text("out.csv") == "k,v\na,1\nb,2\n"


PLAIN = """
composition:
  name: scaled
  requires: [{name: v, type: int}]
  produces: [{name: w, type: int}]
  params: [{name: factor, type: int}]
nodes:
  - {type: transform, name: times, input: input, config: {cxl: "emit w = v * $vars.factor"}}
"""


@pytest.mark.parametrize(
    ("call", "body", "code", "line", "says"),
    [
        (CALL.replace("parts/", "none/"), SCALED, "E101", 8, "there is no composition file"),
        (CALL, "nodes: []\n", "E101", 1, "a composition file has a '_compose:' or a 'composition:' block"),
        (CALL, SCALED.replace("all: add", "all: sum"), "E102", 5, "output port 'all' names 'sum', which is no node of the body"),
        (CALL.replace("factor: 3", "faktor: 3"), SCALED, "E103", 8, "composition 'scaled' has no parameter 'faktor'"),
        (CALL.replace("input: rows", "inputs: {row: rows}"), SCALED, "E103", 8, "composition 'scaled' has no input port 'row'"),
        (CALL.replace("input: rows, ", ""), SCALED, "E104", 8, "input port 'rows' of composition 'scaled' is not bound"),
        (CALL.replace("{factor: 3}", "{}"), PLAIN, "E104", 8, "parameter 'factor' of composition 'scaled' has no value"),
        (CALL.replace("factor: 3", "factor: three"), SCALED, "E105", 8, "parameter 'factor' of composition 'scaled' must be int, not 'three'"),
        (CALL.replace("factor: 3", "factor: '3'"), SCALED, "E105", 8, "parameter 'factor' of composition 'scaled' must be int, not '3'"),
        (CALL.replace("factor: 3", "factor: true"), SCALED, "E105", 8, "parameter 'factor' of composition 'scaled' must be int, not true"),
        (CALL, SCALED.replace("default: 2", "default: two"), "E105", 7, "parameter 'factor' of composition 'scaled' must be int, not 'two'"),
        (CALL, PLAIN.replace("type: int}]\nnodes", "type: int}, {name: factor, type: float}]\nnodes"), "CFG-004", 6, "'params': parameter 'factor' is declared twice"),
        (CALL.replace("factor: 3", "factor: null"), PLAIN, "E105", 8, "parameter 'factor' of composition 'scaled' must be int, not null"),
        (CALL.replace("factor: 3", "factor: 30"), SCALED, "E105", 8, "parameter 'factor' of composition 'scaled' must be in the range 1.0 to 9.0, not 30"),
        (CALL.replace("factor: 3", "label: any"), SCALED, "E105", 8, "parameter 'label' of composition 'scaled' must be one of none, some, not 'any'"),
        (CALL.replace("name: scaled,", "name: scaled, alias: rows,"), SCALED, "E106", 8, "the nodes of composition 'scaled' would stand under 'rows', a name that is taken"),
        (CALL, SCALED.replace("input: times", "input: other"), "E108", 11, "'other' is a node of the pipeline around composition 'scaled'; a body reads its ports"),
        (CALL, SCALED.replace("input: times", "input: tims"), "E004", 11, "there is no node 'tims' in composition 'scaled'"),
        (CALL.replace("input: rows", "input: raws"), SCALED, "E004", 8, "there is no node 'raws'"),
        (CALL.replace("input: rows", "input: rows, outputs: {big: reslt}"), SCALED, "E004", 8, "there is no node 'reslt'"),
        (CALL.replace("input: rows", "input: rows.big"), SCALED, "E006", 8, "'rows' has no port 'big'"),
        (CALL.replace("input: rows", "input: again") + AGAIN, SCALED, "E003", 9, "the nodes form a cycle: scaled/add -> again -> scaled/times -> scaled/add"),
        (CALL, SCALED.replace("name: v, type", "name: q, type"), "E112", 8, "composition 'scaled' requires field 'q'; there is k, v"),
        (CALL, SCALED.replace("name: v, type: int", "name: v, type: date"), "E112", 8, "composition 'scaled' requires field 'v' as date; it is Int"),
        (CALL, PLAIN.replace("{name: w", "{name: x"), "E113", 8, "composition 'scaled' does not produce field 'x'; there is k, v, w"),
        (CALL, SCALED.replace("$vars.factor", "$vars.limit"), "E200", 10, "unknown vars member '$vars.limit'"),
        (CALL, SCALED.replace("$vars.factor", "$pipeline.cutoff"), "E173", 10, "composition body references parent-scope variable '$pipeline.cutoff'"),
        (CALL, SCALED.replace("w + 1", "w + q"), "CXL-R001", 11, "unknown field 'q'"),
        (CALL, SCALED.replace("inputs: {", "scoped_vars: {pipeline: {cutoff: {type: date}}}\n  inputs: {"), "E174", 4, "composition 'scaled' declares '$pipeline.cutoff' as date; the pipeline declares it as Int"),
        (CALL, SCALED.replace("inputs: {", "scoped_vars: {record: {tier: {type: int}}}\n  inputs: {"), "E174", 4, "composition 'scaled' reads '$record.tier', which the pipeline around it does not declare"),
    ],
)  # fmt: skip
def test_refused(call: str, body: str, code: str, line: int, says: str, tmp_path: Path) -> None:  # noqa: PLR0917 - one a column of the table
    found = findings(project(tmp_path, call + OUTPUT, body))
    assert [(one.code, one.line) for one in found] == [(code, line)]
    assert found[0].message.startswith(says)
    assert Path(found[0].file).name == ("pipeline.yaml" if line == 8 or code == "E003" else "scaled.comp.yaml")


def test_unknown_port(tmp_path: Path) -> None:
    (found,) = findings(project(tmp_path, CALL + OUTPUT.replace("input: scaled", "input: scaled.bigg")))
    assert (found.code, found.message, found.help) == ("E006", "composition 'scaled' has no port 'bigg'", "did you mean 'big'?")


def test_cycle(tmp_path: Path) -> None:
    folder = project(tmp_path, body=SCALED + "  - {type: composition, name: in, input: split.big, use: ../parts/other.comp.yaml}\n")
    folder.write("parts/other.comp.yaml", SCALED + "  - {type: composition, name: in, input: split.big, use: scaled.comp.yaml}\n")
    (found,) = findings(folder)
    names = "pipeline.yaml -> scaled.comp.yaml -> other.comp.yaml -> scaled.comp.yaml"
    assert (found.code, found.message) == ("E107", f"composition 'in' reaches itself: {names}")


def test_calls_that_read_each_other(tmp_path: Path) -> None:
    body = SCALED.replace("outputs: {all: add, big: split.big}", "outputs: {all: rows}")
    nodes = CALL.replace("input: rows", "input: back") + "  - {type: composition, name: back, input: scaled, use: parts/scaled.comp.yaml}\n" + OUTPUT
    assert {one.code for one in findings(project(tmp_path, nodes, body))} == {"E003"}


NESTED = """
_compose:
  name: outer
  inputs: {given: {}}
  outputs: {all: inner}
  scoped_vars: {pipeline: {cutoff: {type: int}}, record: {mark: {type: string}}}
nodes:
  - {type: composition, name: inner, input: given, use: inside/inner.comp.yaml}
"""
INNER = """
_compose:
  name: inner
  inputs: {given: {}}
  outputs: {all: show}
  scoped_vars: {pipeline: {cutoff: {type: int}}, record: {mark: {type: string}}}
nodes:
  - {type: state, name: write, input: given, config: {scope: record, set: [{var: mark, cxl: 'this.k + "!"'}]}}
  - {type: transform, name: show, input: write, config: {cxl: "emit mark = $record.mark\\nemit c = $pipeline.cutoff"}}
"""


def test_opted_in_variables_through_two_levels(tmp_path: Path) -> None:
    folder = project(tmp_path, CALL.replace(", config: {factor: 3}", "") + OUTPUT, NESTED)
    folder.write("parts/inside/inner.comp.yaml", INNER)
    folder.run()
    assert folder.text("out.csv") == "k,v,mark,c\na,1,a!,2\nb,2,b!,2\n"
    folder.write("parts/scaled.comp.yaml", NESTED.replace(", record: {mark: {type: string}}", ""))
    assert {one.code for one in findings(folder)} == {"E174"}


def test_where_a_parameter_comes_from(tmp_path: Path) -> None:
    folder = project(tmp_path)
    folder.write("acme.channel.yaml", "channel: {name: acme, target: pipeline.yaml}\nconfig:\n  default: {scaled.factor: 4, scaled.label: some}\n  fixed: {scaled.factor: 7}\n")
    parts, pipe, channel = (str(tmp_path / name) for name in ("parts/scaled.comp.yaml", "pipeline.yaml", "acme.channel.yaml"))
    found = folder.load(channel=channel)
    assert found.explain_field("scaled", "factor").splitlines() == [
        "scaled.factor = 7   (channel fixed)",
        f"  composition default 2   {parts}:7",
        f"  channel default     4   {channel}:3",
        f"  call                3   {pipe}:8",
        f"  channel fixed       7   {channel}:4   <- holds",
    ]
    assert found.explain_field("scaled", "label").splitlines()[0] == "scaled.label = 'some'   (channel default)"
    assert folder.load().explain_field("scaled", "factor").splitlines()[0] == "scaled.factor = 3   (call)"
    with pytest.raises(Usage, match="no parameter"):
        found.explain_field("scaled", "fctor")


def test_a_composition_is_looked_at_by_its_name_or_port(tmp_path: Path) -> None:
    folder = project(tmp_path, CALL.replace("input: rows", "input: rows, alias: big_ones") + OUTPUT)
    folder.run()
    for name in ("scaled", "scaled.all", "big_ones", "big_ones/add"):
        code, out, err = command("show", str(tmp_path / "pipeline.yaml"), name, "--format", "jsonl")
        assert (code, out, err) == (0, '{"k":"a","v":1,"w":4}\n{"k":"b","v":2,"w":7}\n', ""), name
    assert command("log", str(tmp_path / "pipeline.yaml"), "scaled.small")[0] == 64
