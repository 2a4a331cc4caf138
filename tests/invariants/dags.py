"""Random pipelines of all node types, which an edit may change (`edits.py`), over random sources and change scripts (`scripts.py`).

A pipeline grows node by node: each node reads rows that are there already, written as `node` or `node.port`, and knows their columns and
what they come from. Everything is drawn by hypothesis, so a failing pipeline shrinks to a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.invariants.edits import AFTER, BEFORE, WHEN, Changed, renamed, resolved
from tests.invariants.scripts import Columns, Record, Source, Step, scripts, sources

UNEDITED, EDITED = 2, 3
"""The replacements of EDIT in the programs of a pipeline."""
CHANNEL, PASSING = "acme", "passing"
"""The channel, and the folder of outputs that only one version of a pipeline has."""
STATUSES = st.sampled_from(["active", "active", "draft"])
PLAIN_NAMES = ("twice", "share", "loud", "half", "kept", "told", "highest", "opened", "weighed", "running", "behind")
"""Fields that an edit may rename: words that pipelines have for nothing else."""


# Pipelines ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Stream:
    """Rows that a node may read. `timed`: they have an event time; `bare`: they are a source's records one by one, `merged` of several inputs."""

    ref: str
    columns: Columns
    timed: bool = False
    single: bool = True
    variables: frozenset[str] = frozenset()
    widened: bool = False

    def of(self, *types: str) -> list[str]:
        """The columns of some types, and one that every program may name where there is none."""
        return [name for name, type_ in self.columns.items() if type_ in types]


@dataclass
class Pipeline:
    """A pipeline in the making. `EDIT` in a program is a number that a later version of the pipeline changes.

    `bodies` are compositions and corrections by their file. `renames` are names that the later version has for others. `channel` says whether it runs under one.
    """

    sources: list[Source]
    nodes: list[Record] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    bodies: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Record] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    settings: Record = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    channel: bool = False

    def name(self, kind: str) -> str:
        """A name for the next node."""
        return f"{kind}{len(self.nodes)}"

    def files(self, *, edited: bool) -> dict[str, str]:
        """The texts of the pipeline's files."""
        scopes = {"pipeline": {}, "source": {}, "record": {}} if not self.variables else self.variables
        document = {
            "pipeline": {"name": "random", "vars": scopes},
            "error_handling": {"strategy": "continue", "dlq": {"path": "out/dlq.csv", "include_reason": True, "include_source_row": True}, **self.settings["errors"]},
            "changelog": {"persist": self.settings["persist"]},
            "nodes": [*(one.node(edited=edited) for one in self.sources), *self.nodes],
        }
        documents = {"pipeline.yaml": document, **self.bodies}
        if self.channel:
            documents[f"channels/{CHANNEL}.channel.yaml"] = self._overlay()
        return {name: self._text(one, edited=edited) for name, one in documents.items()}

    def _text(self, document: Any, *, edited: bool) -> str:
        text = yaml.safe_dump(resolved(document, edited=edited), sort_keys=False, width=200)
        return (renamed(text, self.renames) if edited else text).replace("EDIT", str(EDITED if edited else UNEDITED))

    def _overlay(self) -> Record:
        """A channel that changes defaults of variables and parameters of compositions."""
        overrides = {scope: {name: {**one, "default": 5} for name, one in names.items()} for scope, names in self.variables.items() if scope != "source" and names}
        config = {"config": {"default": {f"{name}.factor": Changed(4, 5) for name in self.parameters}}} if self.parameters else {}
        return {"channel": {"name": CHANNEL, "target": "../pipeline.yaml"}, **config, "vars": overrides}


@dataclass(frozen=True)
class Story:
    """A pipeline and what happens to it step by step. `large`: files count as large ones, that are read in stretches; `audited`: at last all is computed anew."""

    pipeline: Pipeline
    steps: Sequence[Step]
    large: bool = False
    audited: bool = False


@st.composite
def stories(draw: st.DrawFn, most: int = 6, changes: int = 3) -> Story:
    """A pipeline of up to `most` nodes between sources and outputs, and one or two changes, now and then `changes`."""
    pipeline = Pipeline(draw(sources()), settings=_settings(draw))
    pipeline.streams = [
        Stream(one.name, one.columns, timed=one.marked, variables=frozenset({"source"}), widened=one.extra != "no") for one in pipeline.sources
    ]
    count = draw(st.integers(1, most))
    for number in range(count):
        nodes, streams = len(pipeline.nodes), len(pipeline.streams)
        draw(st.sampled_from(KINDS))(draw, pipeline)
        passing = draw(st.sampled_from([*[None] * 7, BEFORE, AFTER])) if number == count - 1 else None
        for stream in pipeline.streams[streams:]:
            if number == count - 1 or draw(st.booleans()):
                _output(draw, pipeline, stream)
        for node in pipeline.nodes[nodes:] if passing else []:
            _only(node, passing)
    names = [*(one.name for one in pipeline.sources), *(node["name"] for node in pipeline.nodes)]
    pipeline.renames = {name: f"new_{name}" for name in _chosen(draw, [*names, *PLAIN_NAMES], 2)} if draw(st.booleans()) else {}
    pipeline.channel = bool(pipeline.variables or pipeline.parameters) and draw(st.booleans())
    return Story(pipeline, draw(scripts(pipeline.sources, changes)), draw(st.integers(0, 3)) == 0, draw(st.integers(0, 3)) == 0)


def _only(node: Record, version: str) -> None:
    """Only one version of the pipeline has the node; files of an output that is gone stay, so they lie elsewhere."""
    node[WHEN] = version
    if node["type"] == "output":
        node["config"]["path"] = node["config"]["path"].replace("out/", f"out/{PASSING}/")


def _settings(draw: st.DrawFn) -> Record:
    """The pipeline's settings of rollback and of its changelogs; only sources with a correlation key are rolled back."""
    errors = {
        "retraction_scope": draw(st.sampled_from(["group", "record", Changed("group", "record")])), "max_group_buffer": draw(st.sampled_from([100, 100, 4])),
        "correlation_fanout_policy": draw(st.sampled_from(["any", "any", "all", "primary"])),
    }  # fmt: skip
    return {"persist": draw(st.sampled_from(["all", "all", "boundaries", Changed("all", "boundaries"), Changed("boundaries", "all")])), "errors": errors}


def _either(draw: st.DrawFn, *choices: Any) -> Any:
    """One of some values, and now and then another one once the pipeline is edited."""
    first = draw(st.sampled_from(choices))
    return Changed(first, draw(st.sampled_from(choices))) if draw(st.integers(0, 5)) == 0 else first


def _add(pipeline: Pipeline, node: Record, *streams: Stream) -> None:
    pipeline.nodes.append(node)
    pipeline.streams += streams


def _chosen(draw: st.DrawFn, names: Sequence[str], most: int) -> list[str]:
    return draw(st.lists(st.sampled_from(sorted(names)), max_size=most, unique=True)) if names else []


def _program(lines: Sequence[Any]) -> Any:
    """A program of some lines. An edit may change or remove some of them."""
    before, after = ("\n".join(line for line in resolved(list(lines), edited=edited) if line) for edited in (False, True))
    return before if before == after else Changed(before, after)


def _emits(draw: st.DrawFn, menu: Mapping[str, tuple[str, str]], wanted: Sequence[str]) -> list[Any]:
    """A statement for each wanted name; an edit may give it the expression of another one of its type."""
    found: list[Any] = []
    for name in wanted:
        alike = [one for one, type_ in menu.values() if type_ == menu[name][1]]
        other = draw(st.sampled_from(alike)) if draw(st.integers(0, 9)) == 0 else menu[name][0]
        found.append(Changed(f"emit {name} = {menu[name][0]}", f"emit {name} = {other}"))
    return found


def _stream(draw: st.DrawFn, pipeline: Pipeline) -> Stream:
    """Any rows, the newest most often."""
    streams = pipeline.streams
    return streams[-1 - min(draw(st.integers(0, 2 * len(streams) - 1)), len(streams) - 1)] if draw(st.booleans()) else draw(st.sampled_from(streams))


# Transforms ---------------------------------------------------------------------------------------------------------------
def _statements(draw: st.DrawFn, stream: Stream, columns: dict[str, str]) -> list[Any]:
    """Some statements; `columns` gets what they emit."""
    numbers, texts = stream.of("int"), stream.of("string")
    a, b = (draw(st.sampled_from(numbers)) for _ in range(2)) if numbers else ("1", "0")
    text = draw(st.sampled_from(texts)) if texts else '"x"'
    menu: dict[str, tuple[str, str]] = {
        "twice": (f"{a} * EDIT", "int"), "share": (f"12 / {a}", "int"), "sum": (f"{a} + {b}", "int"), "big": (f"({a} ?? 0) >= EDIT", "bool"),
        "size": (f'if {a} > 1 then "large" else "small"', "string"), "loud": (f"{text}.upper()", "string"), "long": (f"{text}.length()", "int"),
        "half": (f"{a}.to_float() / 2.0", "float"), "kept": (f"{a} ?? -1", "int"),
    }  # fmt: skip
    if stream.single and not stream.ref.startswith("aggregate"):
        menu |= {"place": ("$source.row", "int"), "from": ("$source.file.file_stem()", "string")}
    wanted = _chosen(draw, list(menu), 3)
    columns |= {name: menu[name][1] for name in wanted}
    filters = ("", f"filter {a} != 1", f"filter ({b} ?? EDIT) > 0", f'filter {text} != "z"', f"filter 10 / {a} > 2")
    return [*_emits(draw, menu, wanted), _either(draw, *filters)]


def _transform(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream, columns = _stream(draw, pipeline), {}
    name, columns = pipeline.name("transform"), dict(stream.columns)
    statements = _statements(draw, stream, columns)
    kind = draw(st.sampled_from(["plain", "each", "outer", "checked", "validated", "meta"]))
    texts, numbers = stream.of("string"), stream.of("int")
    more: Record = {}
    if kind in ("each", "outer", "checked") and texts:
        statements.append(f'emit each it in {texts[0]}.split("-") {"outer " if kind == "outer" else ""}{{ emit part = it }}')
        columns["part"] = "any"
        more |= {"validations": [{"check": f'part != "y" and {texts[0]} != "z"'}]} if kind == "checked" else {}
    elif kind == "validated" and numbers:
        more["validations"] = [{"field": texts[0] if texts else numbers[0], "check": "not_empty"}, {"check": f"{numbers[0]} >= 0", "severity": "warn"}]
    elif kind == "meta" and numbers:
        statements.append(f"emit meta mark = {numbers[0]}")
    statements.insert(0, "emit same = 1")  # a version of the program may have no others
    columns = {**stream.columns, "same": "int", **columns}
    _add(pipeline, {"type": "transform", "name": name, "input": stream.ref, "config": {"cxl": _program(statements), **more}}, replace(stream, ref=name, columns=columns))


def _distinct(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream = _stream(draw, pipeline)
    name, columns = pipeline.name("distinct"), dict(stream.columns)
    statements = _statements(draw, stream, columns)
    for one in _chosen(draw, [name for name, type_ in columns.items() if type_ != "any"], 2):
        statements.append(f"distinct by {one}")
    if draw(st.booleans()) or not str(statements[-1]).startswith("distinct"):
        first = next(iter(stream.columns))
        statements += [f"emit {first} = {first}", "distinct"]
    _add(pipeline, {"type": "transform", "name": name, "input": stream.ref, "config": {"cxl": _program(statements)}}, replace(stream, ref=name, columns=columns))


def _analytic(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream = _stream(draw, pipeline)
    name, columns = pipeline.name("window"), dict(stream.columns)
    groups = _chosen(draw, stream.of("int", "string"), 2)
    order = [{"field": one, "order": _either(draw, "asc", "desc")} for one in _chosen(draw, stream.of("int", "float", "string", "date_time"), 2)]
    numbers = stream.of("int", "float") or ["1"]
    a = draw(st.sampled_from(numbers))
    type_ = stream.columns.get(a, "int")
    menu = {
        "running": (f"$window.sum({a})", type_), "mean": (f"$window.avg({a})", "float"), "least": (f"$window.min({a})", type_), "most": (f"$window.max({a})", type_),
        "rows": ("$window.count()", "int"), "place_in": ("$window.row_number()", "int"), "rank": ("$window.rank()", "int"), "dense": ("$window.dense_rank()", "int"),
        "before": (f"$window.lag(1).{a}", type_), "behind": (f"$window.lead(2).{a}", type_), "opening": (f"$window.first_value({a})", type_),
        "closing": (f"$window.last().{a}", type_), "some": (f"$window.any({a} > 1)", "bool"), "all_of": (f"$window.collect({a})", "any"),
        "quotient": (f"$window.sum(12 / {a})", "any"),
    }  # fmt: skip
    wanted = _chosen(draw, [one for one in menu if a != "1" or one in ("rows", "rank", "dense", "place_in")], 4) or ["rows"]
    statements = _emits(draw, menu, wanted)
    columns |= {one: menu[one][1] for one in wanted}
    if draw(st.booleans()):
        statements.append("emit nth = $window.row_number()\nfilter nth <= EDIT")
        columns["nth"] = "int"
    if draw(st.integers(0, 3)) == 0:
        statements.append(f"distinct by {draw(st.sampled_from([one for one, type_ in columns.items() if type_ != 'any']))}")
    config = {"analytic_window": {"partition_by": groups, "sort_by": order}, "cxl": _program(statements)}
    _add(pipeline, {"type": "transform", "name": name, "input": stream.ref, "config": config}, replace(stream, ref=name, columns=columns))


def _lookup(draw: st.DrawFn, pipeline: Pipeline) -> None:
    """A window over another source's rows."""
    stream = _stream(draw, pipeline)
    if stream.columns.get("k") != "string":
        return
    name = pipeline.name("lookup")
    config = {"analytic_window": {"source": "items", "on": "k", "group_by": ["k"]}, "cxl": "emit most_high = $window.max(high)\nemit first_label = $window.first().label"}
    columns = {**stream.columns, "most_high": "int", "first_label": "any"}
    _add(pipeline, {"type": "transform", "name": name, "input": stream.ref, "config": config}, replace(stream, ref=name, columns=columns, timed=False))


# Routes and merges --------------------------------------------------------------------------------------------------------
def _route(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream, name = _stream(draw, pipeline), pipeline.name("route")
    numbers, texts = stream.of("int"), stream.of("string")
    menu = [*(f"{one} > 1" for one in numbers), *(f"4 / {one} == EDIT" for one in numbers), *(f'{one} == "x"' for one in texts)] or ["1 < 2"]
    conditions = {f"c{at}": _either(draw, *menu) for at in range(draw(st.integers(1, 2)))}
    config = {"mode": _either(draw, "exclusive", "inclusive"), "conditions": conditions, "default": "rest"}
    ports = [replace(stream, ref=f"{name}.{port}") for port in (*conditions, "rest")]
    _add(pipeline, {"type": "route", "name": name, "input": stream.ref, "config": config}, *ports)


def _corrections(draw: st.DrawFn, pipeline: Pipeline) -> None:
    """Corrections of small numbers and texts, which the later version of the pipeline has otherwise. None is of a correlation key or an event time."""
    stream = _stream(draw, pipeline)
    keys = stream.of("int", "string")
    guarded = {"ts", *(name for one in pipeline.sources for name in one.together)}
    cells = [name for name in stream.of("int", "string", "float") if name not in guarded]
    if not keys or not cells:
        return
    key, name = draw(st.sampled_from(keys)), pipeline.name("corrections")
    values: Record = {"int": st.integers(0, 4), "float": st.sampled_from([0.5, 1.0, 2.0]), "string": st.sampled_from(["x", "y", ""])}
    entries: dict[object, Record] = {}
    for _ in range(draw(st.integers(1, 3))):
        column, named = draw(st.sampled_from(cells)), draw(values[stream.columns[key]])
        kind = values[stream.columns[column]]
        change: Record = {"retract": True} if column == key else {"set": {column: {"from": draw(kind), "to": Changed(draw(kind), draw(kind))}}}
        entries[named] = {"key": {key: named}, **change, "reason": "drawn", "status": Changed(draw(STATUSES), draw(STATUSES))}
    pipeline.bodies[f"{name}_file.yaml"] = list(entries.values())
    _add(pipeline, {"type": "corrections", "name": name, "input": stream.ref, "config": {"path": f"{name}_file.yaml", "key": [key]}}, replace(stream, ref=name))


def _merge(draw: st.DrawFn, pipeline: Pipeline) -> None:
    first = _stream(draw, pipeline)
    alike = [one for one in pipeline.streams if one.ref != first.ref and list(one.columns) == list(first.columns) and one.widened == first.widened]
    if not alike:
        beside = replace(first, ref=pipeline.name("beside"))
        number = (first.of("int") or ["1"])[0]
        _add(pipeline, {"type": "transform", "name": beside.ref, "input": first.ref, "config": {"cxl": f"filter {number} != EDIT"}}, beside)
        alike = [beside]
    inputs = [first, *draw(st.lists(st.sampled_from(alike), min_size=1, max_size=2, unique_by=lambda one: one.ref))]
    modes: list[Record] = [{}, {"mode": "concat"}, {"mode": "interleave"}, {"mode": "interleave", "interleave_seed": 7}]
    name = pipeline.name("merge")
    types = {column: type_ if all(one.columns[column] == type_ for one in inputs) else "any" for column, type_ in first.columns.items()}
    variables = frozenset.intersection(*(one.variables for one in inputs)) - {"source"}
    found = Stream(name, types, all(one.timed for one in inputs), False, variables, first.widened)
    _add(pipeline, {"type": "merge", "name": name, "inputs": _either(draw, *_orders([one.ref for one in inputs])), "config": _either(draw, *modes)}, found)


def _orders(refs: list[str]) -> list[list[str]]:
    return [refs, refs[::-1]]


# Combines -----------------------------------------------------------------------------------------------------------------
def _combine(draw: st.DrawFn, pipeline: Pipeline) -> None:
    inputs = {"l": _stream(draw, pipeline), "r": _stream(draw, pipeline)}
    if draw(st.booleans()):
        inputs["r"] = next(one for one in pipeline.streams if one.ref == "items")
    if draw(st.integers(0, 3)) == 0:
        inputs["t"] = _stream(draw, pipeline)
    others = [name for name in inputs if name != "l"]
    parts = []
    for other in others:
        condition = _condition(draw, inputs["l"], inputs[other], other)
        if condition is None:
            return
        parts.append(condition)
    name = pipeline.name("combine")
    match = draw(st.sampled_from(["first", "all", "collect"])) if len(others) == 1 else "first"
    config = {"where": " and ".join(parts), "match": match if match == "collect" else _either(draw, "first", "all"), "on_miss": _either(draw, "null_fields", "skip")}
    config["propagate_ck"] = draw(st.sampled_from(["driver", "driver", "all"]))
    if draw(st.booleans()):
        config["strategy"] = "grace_hash"
    if match == "collect":
        cxl, columns = "", {**inputs["l"].columns, "r": "any"}
    else:
        cxl, columns = _body(draw, inputs)
    node = {"type": "combine", "name": name, "input": {qualifier: one.ref for qualifier, one in inputs.items()}, "config": {**config, "cxl": cxl}}
    driver, timed = inputs["l"], all(one.timed for one in inputs.values())  # a time window asks each source for a watermark
    _add(pipeline, node, Stream(name, columns, timed, driver.single, frozenset({"combined"}), driver.widened))


def _condition(draw: st.DrawFn, left: Stream, right: Stream, other: str) -> str | None:
    pairs = [(one, two) for one, type_ in left.columns.items() for two, found in right.columns.items() if type_ == found and type_ in ("int", "string")]
    numbers = [(one, two) for one, two in pairs if left.columns[one] == "int"]
    if not pairs:
        return None
    one, two = draw(st.sampled_from(pairs))
    kinds = ["equal", "equal", "equal", "residual", *(["range", "between", "between", "banded", "fails"] if numbers else [])]
    kind = draw(st.sampled_from(kinds))
    low, high = draw(st.sampled_from(numbers)) if numbers else ("", "")
    until, end = draw(st.sampled_from(numbers)) if numbers else ("", "")
    return {
        "equal": f"l.{one} == {other}.{two}",
        "residual": f"l.{one} == {other}.{two} and l.{one} == {other}.{two}",
        "range": f"l.{low} >= {other}.{high}",
        "between": f"l.{low} >= {other}.{high} and l.{until} < {other}.{end}",
        "banded": f"l.{one} == {other}.{two} and l.{low} <= {other}.{high}",
        "fails": f"l.{one} == {other}.{two} and 12 / l.{low} >= {other}.{high}",
    }[kind]


def _body(draw: st.DrawFn, inputs: Mapping[str, Stream]) -> tuple[str, dict[str, str]]:
    lines, columns = [], {}
    for qualifier, one in inputs.items():
        for name in _chosen(draw, list(one.columns), 3) or [next(iter(one.columns))]:
            target = name if name not in columns else f"{qualifier}_{name}"
            lines.append(f"emit {target} = {qualifier}.{name}")
            columns[target] = one.columns[name]
    numbers = inputs["r"].of("int")
    if numbers and draw(st.booleans()):
        lines.append(f"emit part_of = 12 / r.{numbers[-1]}")
        columns["part_of"] = "int"
    return "\n".join(lines), columns


# Aggregates ---------------------------------------------------------------------------------------------------------------
def _calls(draw: st.DrawFn, stream: Stream) -> tuple[list[Any], dict[str, str]]:
    numbers, plain = stream.of("int", "float"), stream.of("int", "float", "string", "date_time")
    a, b = (draw(st.sampled_from(numbers)) for _ in range(2)) if numbers else ("1", "1")
    c = draw(st.sampled_from(plain)) if plain else "1"
    of_a, of_c = stream.columns.get(a, "int"), stream.columns.get(c, "int")
    menu = {
        "n": ("count(*)", "int"), "known": (f"count({c})", "int"), "total": (f"sum({a})", of_a), "mean": (f"avg({a})", "float"), "lowest": (f"min({c})", of_c),
        "highest": (f"max({c})", of_c), "opened": (f"first({c})", of_c), "closed": (f"last({c})", of_c), "every_one": (f"collect({c})", "any"),
        "weighed": (f"weighted_avg({a}, {b})", "float"), "mixed": (f"sum({a}) * 2 - min({b})", "any"), "ratio": (f"sum({a}) / count({b})", "any"),
        "inner": (f"sum(12 / {a})", "any"),
    }  # fmt: skip
    wanted = _chosen(draw, list(menu), 4) or ["n"]
    return _emits(draw, menu, wanted), {name: menu[name][1] for name in wanted}


def _grouping(draw: st.DrawFn, stream: Stream) -> list[str]:
    return _chosen(draw, stream.of("int", "string", "bool", "float"), 2)


def _aggregate(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream, name = _stream(draw, pipeline), pipeline.name("aggregate")
    groups = _grouping(draw, stream)
    lines, columns = _calls(draw, stream)
    numbers = stream.of("int")
    if numbers and draw(st.booleans()):
        lines.insert(0, _either(draw, "", *(f"filter {one} != EDIT" for one in numbers)))
    node = {"type": "aggregate", "name": name, "input": stream.ref, "config": {"group_by": groups, "cxl": _program(lines)}}
    data = {**{one: stream.columns[one] for one in groups}, **{one: type_ for one, type_ in columns.items() if one not in groups}}
    _add(pipeline, node, Stream(name, data, single=False))


def _time_window(draw: st.DrawFn, pipeline: Pipeline) -> None:
    timed = [one for one in pipeline.streams if one.timed]
    if not timed:
        return
    stream, name = draw(st.sampled_from(timed)), pipeline.name("timed")
    groups = _grouping(draw, stream)
    lines, columns = _calls(draw, stream)
    window = _either(draw, {"tumbling": {"size": "10m"}}, {"hopping": {"size": "20m", "slide": "15m"}}, {"session": {"gap": "8m"}})
    late = draw(st.sampled_from([{}, {"allowed_lateness": "EDITm"}, {"allowed_lateness": "forever"}]))
    lines.append("emit begins = $window.start")
    config = {"group_by": groups, "time_window": window, **late, "cxl": _program(lines)}
    data = {**{one: stream.columns[one] for one in groups}, **{one: type_ for one, type_ in columns.items() if one not in groups}, "begins": "date_time"}
    _add(pipeline, {"type": "aggregate", "name": name, "input": stream.ref, "config": config}, Stream(name, data, single=False))


# State --------------------------------------------------------------------------------------------------------------------
def _state(draw: st.DrawFn, pipeline: Pipeline) -> None:
    """A state node and a transform that reads its variable."""
    scope = draw(st.sampled_from(["pipeline", "source", "record"]))
    stream = _stream(draw, pipeline)
    numbers = stream.of("int")
    if not numbers or (scope == "source" and "source" not in stream.variables):
        return
    number, name = draw(st.sampled_from(numbers)), pipeline.name("state")
    variable = f"var_{name}"
    expressions = {
        "pipeline": [f"max({number})", f"$pipeline.{variable} + ({number} ?? EDIT)", f"first({number})"],
        "source": [f"first(this.{number})", f"$source.{variable} + 1", f"sum({number})"],
        "record": [f"{number} * EDIT", f"12 / {number}"],
    }[scope]
    scopes = pipeline.variables or {"pipeline": {}, "source": {}, "record": {}}
    scopes[scope][variable] = {"type": "int", "default": 100}
    pipeline.variables = scopes
    config = {"scope": scope, "set": [{"var": variable, "cxl": _either(draw, *expressions)}]}
    _add(pipeline, {"type": "state", "name": name, "input": stream.ref, "config": config}, replace(stream, ref=name))
    reader = pipeline.name("reader")
    columns = {**stream.columns, "told": "int"}
    body = {"type": "transform", "name": reader, "input": name, "config": {"cxl": f"emit told = ${scope}.{variable}"}}
    _add(pipeline, body, replace(stream, ref=reader, columns=columns))


def _init(draw: st.DrawFn, pipeline: Pipeline) -> None:
    """A variable that is settled before the rest begins, and a transform that reads it."""
    stream = _stream(draw, pipeline)
    name, total = pipeline.name("init"), pipeline.name("cap")
    variable = f"var_{name}"
    scopes = pipeline.variables or {"pipeline": {}, "source": {}, "record": {}}
    scopes["pipeline"][variable] = {"type": "int", "default": 7}
    pipeline.variables = scopes
    pipeline.nodes.append({"type": "aggregate", "name": total, "input": "items", "config": {"group_by": [], "cxl": "emit cap = max(high)"}})
    pipeline.nodes.append({"type": "state", "name": name, "input": total, "config": {"scope": "pipeline", "phase": "init", "set": [{"var": variable, "cxl": "cap"}]}})
    reader = pipeline.name("reader")
    node = {"type": "transform", "name": reader, "input": stream.ref, "config": {"cxl": f"emit told = $pipeline.{variable}"}}
    _add(pipeline, node, replace(stream, ref=reader, columns={**stream.columns, "told": "int"}))


# Compositions -------------------------------------------------------------------------------------------------------------
def _composition(draw: st.DrawFn, pipeline: Pipeline) -> None:
    """A call of a body with a transform and a node of another kind behind it, or another call of such a body."""
    stream = _stream(draw, pipeline)
    numbers = stream.of("int")
    if not numbers:
        return
    number, name = draw(st.sampled_from(numbers)), pipeline.name("composition")
    kind = draw(st.sampled_from(["transform", "aggregate", "distinct", "route", "joined"]))
    last: Record = {
        "transform": {"type": "transform", "config": {"cxl": "emit plus = scaled + 1"}},
        "aggregate": {"type": "aggregate", "config": {"group_by": [number], "cxl": "emit top = max(scaled)\nemit n = count(*)"}},
        "distinct": {"type": "transform", "config": {"cxl": "distinct by scaled"}},
        "route": {"type": "route", "config": {"conditions": {"big": "scaled > 4"}, "default": "small"}},
        "joined": {"type": "combine", "config": {"where": "s.scaled == p.no", "match": "first", "propagate_ck": "driver", "cxl": f"emit {number} = s.{number}\nemit found = p.label"}},
    }[kind]
    ports = {"rows": {"schema": [{"name": number, "type": "int"}]}, **({"parts": {"schema": [{"name": "no", "type": "int"}]}} if kind == "joined" else {})}
    scale = {"type": "transform", "name": "scale", "input": "rows", "config": {"cxl": f"emit scaled = {number} * $vars.factor + EDIT"}}
    outputs = {"big": "last.big", "small": "last.small"} if kind == "route" else {"out": "last"}
    body = _body_of(name, ports, outputs, [scale, {"name": "last", "input": {"s": "scale", "p": "parts"} if kind == "joined" else "scale", **last}])
    if draw(st.integers(0, 2)) == 0:
        pipeline.bodies[f"inner_{name}.comp.yaml"] = body
        inner = {"type": "composition", "name": "within", **_read(dict(zip(ports, ports, strict=True))), "use": f"./inner_{name}.comp.yaml", "config": {"factor": 3}}
        body = _body_of(name, ports, {port: f"within.{port}" for port in outputs}, [inner])
    else:
        pipeline.parameters.append(name)
    pipeline.bodies[f"{name}.comp.yaml"] = body
    scaled = {**stream.columns, "scaled": "int"}
    columns = {
        "transform": {**scaled, "plus": "int"}, "aggregate": {number: "int", "top": "int", "n": "int"}, "distinct": scaled, "route": scaled,
        "joined": {number: "int", "found": "string"},
    }[kind]  # fmt: skip
    node = {"type": "composition", "name": name, **_read(dict(zip(ports, (stream.ref, "items"), strict=False))), "use": f"./{name}.comp.yaml"}
    node["config"] = {"factor": _either(draw, 2, 3)}
    kinds = {"aggregate": Stream(name, columns, single=False), "joined": Stream(name, columns, single=stream.single, variables=frozenset({"combined"}), widened=stream.widened)}
    found = kinds.get(kind, replace(stream, columns=columns))
    refs = [f"{name}.big", f"{name}.small"] if kind == "route" else [name]
    _add(pipeline, node, *(replace(found, ref=ref) for ref in refs))


def _read(ports: Mapping[str, str]) -> Record:
    """The inputs of a composition by its ports."""
    return {"inputs": dict(ports)} if len(ports) > 1 else {"input": next(iter(ports.values()))}


def _body_of(name: str, ports: Record, outputs: Record, nodes: list[Record]) -> Record:
    parameters = {"factor": {"type": "int", "default": 2}}
    return {"_compose": {"name": name, "inputs": ports, "outputs": outputs, "config_schema": parameters}, "nodes": nodes}


# Outputs ------------------------------------------------------------------------------------------------------------------
def _output(draw: st.DrawFn, pipeline: Pipeline, stream: Stream) -> None:
    name, place = f"out_{stream.ref.replace('.', '_')}", stream.ref.replace(".", "-")
    forms = ["ndjson", "json", "parquet", "delta"] if "any" in stream.columns.values() else ["csv", "csv", "csv", "ndjson", "json", "xml", "parquet", "delta"]
    form = draw(st.sampled_from(forms))
    plain = stream.of("int", "string", "float", "date_time")
    config: Record = {"name": name, "type": "json" if form == "ndjson" else form, "path": f"out/of_{place}.{'json' if form == 'ndjson' else form}"}
    if form in ("ndjson", "json"):
        config |= {"options": {"format": "ndjson" if form == "ndjson" else "array"}, "preserve_nulls": _either(draw, True, False)}
    options = _chosen(draw, ["sorted", "split", "grouped", "mapped", "excluded", "emitted", "metadata", "by_file"], 2)
    if "sorted" in options and plain and form != "delta":
        config["sort_order"] = [
            {"field": one, "order": _either(draw, "asc", "desc"), "null_order": _either(draw, "first", "last", "drop")} for one in _chosen(draw, plain, 2)
        ]
    if form in ("csv", "ndjson"):
        config |= _split(draw, options, plain)
    if "mapped" in options:
        config["mapping"] = {"renamed": draw(st.sampled_from(list(stream.columns)))}
    if "excluded" in options and len(stream.columns) > 1:
        config["exclude"] = [draw(st.sampled_from([one for one in stream.columns if one not in config.get("mapping", {}).values()]))]
    if "emitted" in options:
        config["include_unmapped"] = _either(draw, False, True)
    if "metadata" in options:
        config["include_metadata"] = _either(draw, "all", "none")
    if "by_file" in options and stream.single and not stream.ref.startswith("aggregate") and form in ("csv", "ndjson"):
        config["path"] = f"out/of_{place}-{{source_file}}.{config['type']}"
    pipeline.nodes.append({"type": "output", "name": name, "input": stream.ref, "config": config})


def _split(draw: st.DrawFn, options: Sequence[str], plain: Sequence[str]) -> Record:
    """How an output is cut into files, if it is."""
    if "split" in options:
        return {"split": _either(draw, {"max_records": 2}, {"max_bytes": 60}, {"max_records": 3, "max_bytes": 90, "naming": "{stem}-{seq:02}.{ext}"})}
    if "grouped" in options and plain:
        return {"split": {"max_records": 2, "group_key": draw(st.sampled_from(plain)), "oversize_group": "allow", "repeat_header": False}}
    return {}


KINDS: Sequence[Callable[[st.DrawFn, Pipeline], None]] = (
    _transform, _transform, _distinct, _analytic, _lookup, _route, _merge, _merge, _combine, _combine, _aggregate, _aggregate, _time_window, _time_window,
    _state, _init, _composition, _corrections,
)  # fmt: skip
