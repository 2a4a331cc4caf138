"""Refused pipeline files: the code, the message and the place of each problem; nothing is touched."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

import errata
from tests.support.pipelines import Folder

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


BRANCH = """\
pipeline: { name: branch, NOTHING }
error_handling: { strategy: continue, dlq: { paths: x } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [{ name: id, type: int }] } }
  - { type: transform, name: first, input: s, config: { cxl: "emit a = nowhere" } }
  - { type: transform, name: second, input: first, config: { cxl: "emit b = a + 1 emit c = length(a" } }
  - { type: aggregate, name: third, input: second, config: { group_by: [b], cxl: "emit n = sum(a) emit m = 'x' - 1" } }
  - { type: transform, name: away, input: gone, config: { cxl: "emit d = whatever.uper()" } }
  - { type: transform, name: ring, input: round, config: { cxl: "emit e = 1" } }
  - { type: transform, name: round, input: ring, config: { cxl: "emit e = 1" } }
  - { type: transform, name: behind, input: round, config: { cxl: "emit f = " } }
  - { type: merge, name: x, inputs: [p, q] }
  - { type: merge, name: p, inputs: [p2, s] }
  - { type: merge, name: p2, inputs: [p, s] }
  - { type: transform, name: q, input: x, config: { cxl: "emit g = 1" } }
  - { type: aggregate, name: empty, input: , config: { group_by: [id], cxl: "emit n = count(*)" } }
  - { type: output, name: none, input: empty, config: { name: none, type: csv, path: none.csv } }
  - { type: merge, name: both, inputs: [second, s] }
  - { type: output, name: out, input: third, config: { name: out, type: cvs, path: out.csv, sort_order: [n, other] } }
"""


def test_every_problem_is_told_and_none_that_follows_from_another(tmp_path: Path) -> None:
    """All problems of a pipeline are reported at once. A node downstream of a mistake has mistakes of its own."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", BRANCH.replace("NOTHING", "nothing: 1"))
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [(one.node, one.code) for one in caught.value.diagnostics] == [
        ("", "CFG-001"), ("", "CFG-001"),
        ("first", "CXL-R001"), ("second", "CXL-P001"), ("third", "CXL-T004"),
        ("away", "E004"), ("away", "CXL-T001"), ("ring", "E003"), ("behind", "CXL-P010"),
        ("x", "E003"), ("p", "E003"), ("empty", "E014"), ("out", "E217"),
    ]  # fmt: skip


def test_a_mistake_in_one_node_makes_no_other_of_those_below_it(tmp_path: Path) -> None:
    """Whatever they ask of their rows: fields, types, an order, event time, variables, records of single sources."""
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", """\
pipeline: { name: below, vars: { record: { seen: { type: bool } } } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, zzz: 1 } }
  - { type: state, name: noted, input: s, config: { scope: record, set: [{ var: seen, cxl: "v > 1" }] } }
  - { type: transform, name: t, input: noted, config: { cxl: "emit w = v.upper() + $doc.head.day\\nemit x = $meta.kind\\nemit y = $record.seen" } }
  - { type: merge, name: m, inputs: [t, s] }
  - { type: combine, name: c, input: { l: m, r: s }, config: { where: "l.id == r.id", match: first, on_miss: null_fields, cxl: "emit id = l.id\\nemit z = r.anything", propagate_ck: driver } }
  - { type: transform, name: ranked, input: c, config: { cxl: "emit n = $window.lag(1).z", analytic_window: { group_by: [id], sort_by: [z] } } }
  - { type: route, name: parted, input: m, config: { conditions: { high: "v > 10" }, default: low } }
  - { type: aggregate, name: hourly, input: parted.high, config: { group_by: [k], time_window: { tumbling: { size: 1h } }, cxl: "emit total = sum(v)\\nemit at = $window.start" } }
  - { type: aggregate, name: streamed, input: s, config: { group_by: [k], strategy: streaming, cxl: "emit n = count(*)" } }
  - { type: output, name: o, input: parted.low, config: { name: o, type: csv, path: "o_{source_file}.csv", sort_order: [f], mapping: { f: g }, exclude: [h] } }
  - { type: output, name: p, input: ranked, config: { name: p, type: csv, path: p.csv } }
""")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [(one.node, one.code) for one in caught.value.diagnostics if one.is_error] == [("s", "CFG-002"), ("s", "CFG-001")]


@pytest.mark.parametrize(
    ("header", "codes"),
    [
        ("pipeline: { name: p, vars: [1] }", ["CFG-003"]),
        ("pipeline: 5", ["CFG-003"]),
        ("pipeline: { name: p, nothing: 1, vars: { rate: { type: int, default: 1 } } }", ["CFG-001"]),
        ("pipeline: { name: p, nothing: 1 }", ["CFG-001", "E200"]),
    ],
)
def test_variables_are_not_missed_where_it_cannot_be_read_what_is_declared(tmp_path: Path, header: str, codes: list[str]) -> None:
    folder = Folder(tmp_path)
    read = '  - { type: transform, name: rated, input: s, config: { cxl: "emit r = id * $vars.rate" } }\n'
    folder.write("pipeline.yaml", f"{header}\nnodes:\n" + SOURCES.replace("nodes:\n", "") + read + OUT.replace("input: s", "input: rated"))
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [one.code for one in caught.value.diagnostics] == codes


def test_variables_of_an_input_are_not_missed_below_a_join_that_cannot_be_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", """\
pipeline: { name: below, vars: { source: { label: { type: string } } } }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [{ name: id, type: int }] } }
  - { type: source, name: u, config: { name: u, type: csv, path: u.csv, schema: [{ name: id, type: int }] } }
  - { type: combine, name: c, input: { l: s, r: u }, config: { where: "l.id == r.id", cxl: "emit id = l.id", propagate_ck: driver, zzz: 1 } }
  - { type: transform, name: shown, input: c, config: { cxl: "emit a = $source.l.label\\nemit b = $source.file.file_stem()\\nemit c = $source.l.other" } }
  - { type: output, name: o, input: shown, config: { name: o, type: csv, path: o.csv } }
""")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [("CFG-001", "unknown key 'zzz'"), ("E200", "unknown source member '$source.l.other'")]


CHAIN = """\
pipeline: { name: chain }
nodes:
  - { type: source, name: s, config: { name: s, type: csv, path: s.csv, schema: [{ name: id, type: int }, { name: region, type: string }, { name: v, type: float }] } }
  - { type: source, name: u, config: { name: u, type: csv, path: u.csv, schema: [{ name: id, type: int }, { name: title, type: string }] } }
  - { type: transform, name: t, input: s, config: { cxl: "emit w = v * 2.0", validations: [{ check: "w >= 0.0" }] } }
  - { type: combine, name: c, input: { l: t, r: u }, config: { where: "l.id == r.id", match: first, propagate_ck: driver, cxl: "emit region = l.region\\nemit w = l.w\\nemit title = r.title" } }
  - { type: aggregate, name: a, input: c, config: { group_by: [region], cxl: "emit total = sum(w)" } }
  - { type: route, name: parted, input: a, config: { conditions: { high: "total > 10.0" }, default: low } }
  - { type: output, name: o, input: parted.high, config: { name: o, type: csv, path: o.csv } }
  - { type: output, name: p, input: parted.low, config: { name: p, type: csv, path: p.csv } }
"""
MISTAKES = {
    "a key of a source": ("path: u.csv,", "path: u.csv, colour: red,", "CFG-001"),
    "a path": ("path: s.csv,", "path: /s.csv,", "E231"),
    "a correlation key": ("schema: [{ name: id, type: int }, { name: region", "correlation_key: nope, schema: [{ name: id, type: int }, { name: region", "E153"),
    "a primary key": ("schema: [{ name: id, type: int }, { name: title", "merge: { primary_key: [oid] }, schema: [{ name: id, type: int }, { name: title", "E215"),
    "a severity": ('{ check: "w >= 0.0" }', '{ check: "w >= 0.0", severity: erorr }', "CFG-004"),
    "a field": ("emit w = v * 2.0", "emit w = amunt * 2.0", "CXL-R001"),
    "an input": ("name: t, input: s,", "name: t, input: sales,", "E004"),
    "a match": ("match: first", "match: frist", "CFG-004"),
    "a field of an input": ("emit title = r.title", "emit title = r.titel", "CXL-R001"),
    "a group": ("group_by: [region]", "group_by: [regoin]", "E240"),
    "an expression": ("sum(w)", "sum(w", "CXL-P001"),
    "a key of a node": ("type: route, name", "type: route, colour: red, name", "CFG-001"),
    "a condition": ("total > 10.0", "total.uper() == 1", "CXL-T001"),
    "a port": ("input: parted.low", "input: parted.lo", "E006"),
    "a format": ("name: o, type: csv", "name: o, type: cvs", "E217"),
    "a token": ("path: p.csv", "path: 'p{nope}.csv'", "E324"),
    "a size": ("path: o.csv", "path: o.csv, split: { max_record: 3 }", "CFG-001"),
}
FOLLOWING = {("a condition", "a port"), ("a field", "an input")}
"""Pairs whose second mistake cannot be found: the conditions name the branches, and the rows of a missing input are unknown."""


def test_any_two_mistakes_are_told_together(tmp_path: Path) -> None:
    """All independent errors are reported at once, in whatever nodes they are."""
    folder = Folder(tmp_path)

    def found(*names: str) -> list[str]:
        text = CHAIN
        for name in names:
            old, new, _ = MISTAKES[name]
            assert old in text
            text = text.replace(old, new, 1)
        folder.write("pipeline.yaml", text)
        with pytest.raises(errata.PipelineErrors) as caught:
            folder.load()
        return sorted(one.code for one in caught.value.diagnostics if one.is_error)

    codes_of = {pair: found(*pair) for pair in combinations(MISTAKES, 2) if pair not in FOLLOWING}
    assert {pair: codes for pair, codes in codes_of.items() if codes != sorted(MISTAKES[name][2] for name in pair)} == {}


READ = "".join(
    f"  - {{ type: source, name: {name}, config: {{ name: {name}, type: csv, path: {name}.csv, schema: [{{ name: id, type: int }}, {{ name: v, type: int }}] }} }}\n" for name in "so"
)
WITHIN = {
    "a transform": (
        "  - { type: transform, name: n, input: s, config: { cxl: 'emit a = id', validations: [CHECKS], log: [LINES], KEYS } }\n",
        {
            "a program's field": ("'emit a = id'", "'emit a = nope'", "CXL-R001"),
            "a program's text": ("'emit a = id'", "'emit a = length(id'", "CXL-P001"),
            "a check": ("CHECKS", "{ check: 'v >> 0' }, CHECKS", "CXL-P010"),
            "a field that is checked": ("CHECKS", "{ field: zz, check: not_empty }, CHECKS", "E250"),
            "a severity": ("CHECKS", "{ check: 'v > nope', severity: erorr }, CHECKS", "CFG-004 CXL-R001"),
            "a field of the log": ("LINES", "{ level: info, when: per_record, message: x, fields: [zz] }, LINES", "E250"),
            "a condition of the log": ("LINES", "{ level: info, when: per_record, message: x, every: 0, condition: 'v > ' }, LINES", "CFG-004 CXL-P010"),
            "a field of the window": ("KEYS", "analytic_window: { group_by: [zz] }, KEYS", "E252"),
            "an order of the window": ("KEYS", "analytic_window: { group_by: [id], sort_by: [zz] }, KEYS", "E253"),
            "a key": ("KEYS", "colour: red, KEYS", "CFG-001"),
            "an input": ("input: s", "input: nowhere", "E004"),
        },
        {*(("a program's text", name) for name in ("a field that is checked", "a severity", "a field of the log")), *((name, "an input") for name in ("a program's field", "a field that is checked", "a severity", "a field of the log", "a field of the window", "an order of the window"))},
    ),
    "a window that a program reads": (
        "  - { type: transform, name: n, input: s, config: { cxl: 'emit a = $window.lag(1).v', analytic_window: { group_by: [id] }, KEYS } }\n",
        {
            "a place": ("lag(1)", "lag(id)", "E255"),
            "a field of the window": ("group_by: [id]", "group_by: [zz]", "E252"),
            "a check": ("KEYS", "validations: [{ check: 'v >> 0' }], KEYS", "CXL-P010"),
        },
        set(),
    ),
    "a combine": (
        "  - { type: combine, name: n, input: { s: s, o: o }, config: { where: 's.id == o.id', cxl: 'emit a = s.v', propagate_ck: driver, KEYS } }\n",
        {
            "no key": (", propagate_ck: driver", "", "CFG-002"),
            "a match": ("KEYS", "match: frist, KEYS", "CFG-004"),
            "a miss": ("KEYS", "on_miss: never, KEYS", "CFG-004"),
            "a strategy": ("KEYS", "strategy: fast, KEYS", "CFG-004"),
            "a driver": ("KEYS", "drive: x, KEYS", "E306"),
            "a predicate": ("'s.id == o.id'", "'s.id == o.nope'", "CXL-R001"),
            "inputs that nothing relates": ("'s.id == o.id'", "'s.id == 1'", "E305"),
            "a bare field": ("'emit a = s.v'", "'emit a = v'", "CXL-R010"),
            "no body": ("cxl: 'emit a = s.v'", "cxl: ''", "E309"),
            "an input": ("s: s", "s: nowhere", "E004"),
        },
        {("a match", "no body")},
    ),
    "a state": (
        "  - { type: state, name: n, input: s, config: { scope: pipeline, set: [{ var: one, cxl: 'v' }, { var: two, cxl: 'v' }], KEYS } }\n",
        {
            "a variable": ("var: one, cxl: 'v'", "var: undeclared, cxl: 'nope'", "E200 CXL-R001"),
            "another": ("var: two, cxl: 'v'", "var: undeclared2, cxl: '\"x'", "E200 CXL-P003"),
            "a variable that it reads": ("var: two, cxl: 'v'", "var: undeclared3, cxl: '$pipeline.undeclared3 + v'", "E200"),
            "a key": ("KEYS", "colour: red, KEYS", "CFG-001"),
        },
        set(),
    ),
    "an output": (
        "  - { type: output, name: n, input: s, config: { name: n, type: csv, path: n.csv, include_unmapped: false, split: { max_records: 5, group_key: id }, KEYS } }\n",
        {
            "a size": ("max_records: 5", "max_records: 0", "CFG-004"),
            "a name of parts": ("max_records: 5", "max_records: 5, naming: '{bad}{seq}'", "E218"),
            "a group": ("group_key: id", "group_key: nope", "E251"),
            "an order": ("KEYS", "sort_order: [zz], KEYS", "E251"),
            "a path": ("path: n.csv", "path: 'n{nope}.csv'", "E324"),
            "a format": ("type: csv", "type: cvs", "E217"),
            "an option": ("KEYS", "options: { colour: red }, KEYS", "E218"),
            "two columns of one name": ("KEYS", "mapping: { v: id }, KEYS", "E326"),
            "changes": ("KEYS", "changelog: { path: /n.jsonl }, KEYS", "E231"),
        },
        {("a size", "a name of parts"), ("a format", "an option")},
    ),
    "a composition": (
        "  - { type: composition, name: n, use: ./twice.comp.yaml, inputs: { input: s }, KEYS }\n",
        {
            "a port": ("input: s }", "input: s, order: s }", "E103"),
            "a node": ("inputs: { input: s", "inputs: { input: nowhere", "E004"),
            "a parameter": ("KEYS", "config: { faktor: 2 }, KEYS", "E103"),
            "a consumer": ("KEYS", "outputs: { output: nobody }, KEYS", "E004"),
        },
        set(),
    ),
    "a node that is no more than its wiring": (
        "  - { type: transform, name: n, input: s, config: { cxl: 'emit a = id' } }\n",
        {"a program": ("'emit a = id'", "5", "CFG-003"), "an input": ("input: s", "input: nowhere", "E004")},
        set(),
    ),
}  # fmt: skip
"""By kind of node: its text, mistakes with their codes, and pairs where one mistake hides the other for a reason."""


@pytest.mark.parametrize("kind", WITHIN)
def test_any_two_mistakes_of_one_node_are_told_together(kind: str, tmp_path: Path) -> None:
    """A mistake in one place of a node hides none in another."""
    node, mistakes, related = WITHIN[kind]
    folder = Folder(tmp_path)
    folder.write("twice.comp.yaml", BODY.replace("TYPE", "int"))

    def found(*names: str) -> list[str]:
        text = node
        for name in names:
            old, new, _ = mistakes[name]
            text = text.replace(old, new, 1)
        text = "pipeline: { name: p, vars: { pipeline: { one: { type: int }, two: { type: int } } } }\nnodes:\n" + READ + re.sub("(, )?(KEYS|CHECKS|LINES)", "", text)
        folder.write("pipeline.yaml", text + OUT)
        with pytest.raises(errata.PipelineErrors) as caught:
            folder.load()
        return sorted(one.code for one in caught.value.diagnostics if one.is_error)

    def apart(one: str, other: str) -> bool:
        """Whether two mistakes stand in two places."""
        old, new, _ = mistakes[one]
        return mistakes[other][0] in node.replace(old, new, 1) and not (old == "KEYS" == mistakes[other][0] and new.split(":")[0] == mistakes[other][1].split(":")[0])

    singles = {name: found(name) for name in mistakes}
    assert {name: codes for name, codes in singles.items() if codes != sorted(mistakes[name][2].split())} == {}
    codes_of = {pair: found(*pair) for pair in combinations(mistakes, 2) if pair not in related and apart(*pair)}
    assert {pair: codes for pair, codes in codes_of.items() if codes != sorted(" ".join(mistakes[name][2] for name in pair).split())} == {}


def test_an_input_that_a_composition_names_beside_its_ports_is_a_node(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("twice.comp.yaml", BODY.replace("TYPE", "int"))
    call = "  - { type: composition, name: c, input: INPUT, inputs: { input: s }, use: ./twice.comp.yaml }\n"
    folder.write("pipeline.yaml", PIPELINE + SOURCES + call.replace("INPUT", "t") + OUT.replace("input: s", "input: c"))
    folder.load()
    folder.write("pipeline.yaml", PIPELINE + SOURCES + call.replace("INPUT", "nowhere") + OUT.replace("input: s", "input: c"))
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert [(one.code, one.message) for one in caught.value.diagnostics] == [("E004", "there is no node 'nowhere'")]


@pytest.mark.parametrize("key", ["log: {level: info, message: hi}", "validations: {field: z, check: not_null}"])
def test_a_map_in_the_place_of_a_list_is_told(tmp_path: Path, key: str) -> None:
    folder = Folder(tmp_path)
    nodes = "  - {type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: id, type: int}]}}\n"
    folder.write("pipeline.yaml", f"pipeline: {{name: p}}\nnodes:\n{nodes}  - {{type: transform, name: t, input: s, config: {{cxl: emit id = id, {key}}}}}\n")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert {(one.code, one.line) for one in caught.value.diagnostics if one.is_error}  == {("CFG-003", 4)}


def test_a_file_without_a_pipeline_block_is_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", "nodes:\n  - {type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: id, type: int}]}}\n")
    with pytest.raises(errata.PipelineErrors) as caught:
        folder.load()
    assert "pipeline" in str(caught.value)
