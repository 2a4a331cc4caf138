"""Random pipelines of all node types over CSV sources, and random change scripts of their files.

A pipeline grows node by node: each node reads rows that are there already, written as `node` or `node.port`, of which it knows columns and
what they come from. Everything is drawn by hypothesis, so a failing pipeline shrinks to a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import yaml
from hypothesis import strategies as st

Record = dict[str, Any]
Files = dict[str, list[Record]]
"""The records of each file of a source, by the file's name."""

Columns = Mapping[str, str]
"""Types by column name."""

EVENTS: Columns = {"id": "int", "k": "string", "g": "int", "v": "float", "w": "int", "ts": "date_time"}
ITEMS: Columns = {"no": "int", "k": "string", "low": "int", "high": "int", "label": "string"}
NAMES = ("a.csv", "b.csv", "c.csv")
UNEDITED, EDITED = 2, 3
"""What stands for EDIT in the programs of a pipeline."""
KEYS = {"events": "id", "more": "id", "items": "no"}

_keys = st.sampled_from(["x", "y", "z", "", "x-y"])
_small = st.sampled_from([None, 0, 1, 2, 3, 5])
_moments = st.one_of(st.none(), st.integers(0, 90).map(lambda minute: (datetime(2026, 3, 2) + timedelta(minutes=minute)).isoformat()))
_events = st.fixed_dictionaries({
    "id": st.just(0), "k": _keys, "g": st.one_of(_small, st.just("no number")), "v": st.sampled_from([None, 0.0, 0.1, 0.2, -7.25, 1e16, -1e16, 50.0]),
    "w": st.sampled_from([None, -3, 0, 1, 2, 4, 4]), "ts": _moments,
})  # fmt: skip
_items = st.fixed_dictionaries({"no": st.just(0), "k": _keys, "low": _small, "high": _small, "label": st.sampled_from(["one", "two", ""])})


# Change scripts -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Source:
    """A source of a pipeline: its columns, how its files change, a column that the schema does not name, whether it has a watermark.

    `then`: its merge strategy once the pipeline is edited.
    """

    name: str
    columns: Columns
    merge: str
    extra: bool
    marked: bool = False
    then: str = ""

    @property
    def keyed(self) -> bool:
        """Whether its records ever have a primary key."""
        return "keyed" in (self.merge, self.then)

    @property
    def key(self) -> str:
        """The column that numbers the records."""
        return KEYS[self.name]

    @property
    def records(self) -> st.SearchStrategy[Record]:
        """One record, its number left out."""
        return _events if self.name != "items" else _items

    def node(self, *, edited: bool) -> Record:
        """The node as the pipeline has it."""
        wanted = self.then if edited and self.then else self.merge
        merge: Any = {"strategy": "snapshot", "primary_key": [self.key]} if wanted == "keyed" else wanted
        watermark = {"watermark": {"column": "ts", "delay": "2m"}} if self.marked else {}
        schema = [{"name": name, "type": type_} for name, type_ in self.columns.items()]
        files = {"on_no_match": "skip"}
        config = {"name": self.name, "type": "csv", "glob": f"{self.name}/*.csv", "files": files, "merge": merge, **watermark, "schema": schema}
        return {"type": "source", "name": self.name, "config": config}

    @property
    def header(self) -> list[str]:
        """The columns of its files."""
        return [*self.columns, *(["note"] if self.extra else [])]


@st.composite
def scripts(draw: st.DrawFn, sources: Sequence[Source], steps: int) -> list[dict[str, Files]]:
    """The files of each source, step by step."""
    numbers = iter(range(1, 100_000))
    now = {one.name: {"b.csv": [_record(draw, one, numbers) for _ in range(draw(st.integers(0, 7)))]} for one in sources}
    script = [_copied(now)]
    for _ in range(steps):
        for _ in range(draw(st.integers(1, 4))):
            one = draw(st.sampled_from(sources))
            (_append if one.merge == "append" else _change)(draw, one, now[one.name], numbers)
        script.append(_copied(now))
    return script


def _record(draw: st.DrawFn, source: Source, numbers: Iterator[int], number: int | None = None) -> Record:
    record = {**draw(source.records), source.key: next(numbers) if number is None else number}
    return record | ({"note": draw(st.sampled_from(["p", "q"]))} if source.extra else {})


def _append(draw: st.DrawFn, source: Source, files: Files, numbers: Iterator[int]) -> None:
    """Records at the end of the last file, or of one behind it."""
    name = draw(st.sampled_from([name for name in NAMES if name >= max(files, default="a.csv")]))
    files.setdefault(name, []).extend(_record(draw, source, numbers) for _ in range(draw(st.integers(0, 3))))


def _change(draw: st.DrawFn, source: Source, files: Files, numbers: Iterator[int]) -> None:
    """Records that come anywhere, go, are corrected, change places or files, or come again; files that come and go."""
    kind = draw(st.sampled_from(["insert", "insert", "remove", "correct", "touch", "touch", "swap", "again", "move", "file"]))
    name = draw(st.sampled_from(NAMES))
    if kind == "file":
        files.pop(name, None)
        return
    rows = files.setdefault(name, [])
    at = draw(st.integers(0, len(rows)))
    if kind == "insert" or not rows:
        rows.insert(at, _record(draw, source, numbers))
        return
    at = min(at, len(rows) - 1)
    if kind == "remove":
        del rows[at]
    elif kind == "correct":
        rows[at] = _record(draw, source, numbers, rows[at][source.key])
    elif kind == "touch":
        column = draw(st.sampled_from([name for name in source.columns if name != source.key]))
        rows[at] = {**rows[at], column: draw(source.records)[column]}
    elif kind == "swap":
        rows[0], rows[at] = rows[at], rows[0]
    elif kind == "move":
        files.setdefault(draw(st.sampled_from(NAMES)), []).append(rows.pop(at))
    elif not source.keyed:
        rows.append(dict(rows[at]))


def _copied(now: Mapping[str, Files]) -> dict[str, Files]:
    return {source: {name: [dict(row) for row in rows] for name, rows in files.items()} for source, files in now.items()}


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
    """A pipeline in the making. `EDIT` in a program is a number that a later version of the pipeline changes."""

    sources: list[Source]
    nodes: list[Record] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    bodies: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Record] = field(default_factory=dict)
    persist: str = "all"

    def name(self, kind: str) -> str:
        """A name for the next node."""
        return f"{kind}{len(self.nodes)}"

    def text(self, edit: int) -> str:
        """The pipeline as YAML."""
        scopes = {"pipeline": {}, "source": {}, "record": {}} if not self.variables else self.variables
        document = {
            "pipeline": {"name": "random", "vars": scopes},
            "error_handling": {"strategy": "continue", "dlq": {"path": "out/dlq.csv", "include_reason": True, "include_source_row": True}},
            "changelog": {"persist": self.persist},
            "nodes": [*(one.node(edited=edit != UNEDITED) for one in self.sources), *self.nodes],
        }
        return yaml.safe_dump(document, sort_keys=False, width=200).replace("EDIT", str(edit))

    def files(self, edit: int) -> dict[str, str]:
        """The pipeline's files."""
        return {"pipeline.yaml": self.text(edit), **{name: text.replace("EDIT", str(edit)) for name, text in self.bodies.items()}}


@dataclass(frozen=True)
class Story:
    """A pipeline and what happens to it: the files of each step, and the number that stands for EDIT."""

    pipeline: Pipeline
    steps: Sequence[tuple[Mapping[str, Files], int]]


@st.composite
def stories(draw: st.DrawFn, most: int = 6) -> Story:
    """A pipeline of up to so many nodes besides sources and outputs, and one to three changes."""
    pipeline = Pipeline(_sources(draw), persist=draw(st.sampled_from(["all", "all", "boundaries"])))
    pipeline.streams = [Stream(one.name, one.columns, timed=one.marked, variables=frozenset({"source"}), widened=one.extra) for one in pipeline.sources]
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from(KINDS))(draw, pipeline)
    for stream in pipeline.streams[len(pipeline.sources) :]:
        _output(draw, pipeline, stream)
    steps = draw(scripts(pipeline.sources, draw(st.integers(1, 3))))
    edited = draw(st.sampled_from([None, None, *range(1, len(steps))]))
    return Story(pipeline, [(files, UNEDITED if edited is None or at < edited else EDITED) for at, files in enumerate(steps)])


def _sources(draw: st.DrawFn) -> list[Source]:
    marked, extra = draw(st.booleans()), draw(st.booleans())
    merges = st.sampled_from([("snapshot", ""), ("snapshot", ""), ("keyed", ""), ("append", ""), ("snapshot", "keyed"), ("keyed", "snapshot")])
    found = []
    for name in (*("events", "more")[: draw(st.integers(1, 2))], "items"):
        merge, then = draw(merges)
        found.append(Source(name, ITEMS if name == "items" else EVENTS, merge, extra and name != "items", marked and name != "items", then))
    return found


def _add(pipeline: Pipeline, node: Record, *streams: Stream) -> None:
    pipeline.nodes.append(node)
    pipeline.streams += streams


def _chosen(draw: st.DrawFn, names: Sequence[str], most: int) -> list[str]:
    return draw(st.lists(st.sampled_from(sorted(names)), max_size=most, unique=True)) if names else []


def _stream(draw: st.DrawFn, pipeline: Pipeline) -> Stream:
    """Any rows, the newest most often."""
    streams = pipeline.streams
    return streams[-1 - min(draw(st.integers(0, 2 * len(streams) - 1)), len(streams) - 1)] if draw(st.booleans()) else draw(st.sampled_from(streams))


# Transforms ---------------------------------------------------------------------------------------------------------------
def _statements(draw: st.DrawFn, stream: Stream, columns: dict[str, str]) -> list[str]:
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
    found = []
    for name in _chosen(draw, list(menu), 3):
        expression, type_ = menu[name]
        found.append(f"emit {name} = {expression}")
        columns[name] = type_
    if draw(st.booleans()):
        found.append(draw(st.sampled_from([f"filter {a} != 1", f"filter ({b} ?? EDIT) > 0", f'filter {text} != "z"', f"filter 10 / {a} > 2"])))
    return found


def _transform(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream, columns = _stream(draw, pipeline), {}
    name, columns = pipeline.name("transform"), dict(stream.columns)
    statements = _statements(draw, stream, columns)
    kind = draw(st.sampled_from(["plain", "each", "outer", "validated", "meta"]))
    texts, numbers = stream.of("string"), stream.of("int")
    more: Record = {}
    if kind in ("each", "outer") and texts:
        statements.append(f'emit each it in {texts[0]}.split("-") {"outer " if kind == "outer" else ""}{{ emit part = it }}')
        columns["part"] = "any"
    elif kind == "validated" and numbers:
        more["validations"] = [{"field": texts[0] if texts else numbers[0], "check": "not_empty"}, {"check": f"{numbers[0]} >= 0", "severity": "warn"}]
    elif kind == "meta" and numbers:
        statements.append(f"emit meta mark = {numbers[0]}")
    cxl = "\n".join(statements) or "emit same = 1"
    if cxl == "emit same = 1":
        columns["same"] = "int"
    _add(pipeline, {"type": "transform", "name": name, "input": stream.ref, "config": {"cxl": cxl, **more}}, replace(stream, ref=name, columns=columns))


def _distinct(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream = _stream(draw, pipeline)
    name, columns = pipeline.name("distinct"), dict(stream.columns)
    statements = _statements(draw, stream, columns)
    for one in _chosen(draw, [name for name, type_ in columns.items() if type_ != "any"], 2):
        statements.append(f"distinct by {one}")
    if draw(st.booleans()) or not any(line.startswith("distinct") for line in statements):
        first = next(iter(stream.columns))
        statements += [f"emit {first} = {first}", "distinct"]
    _add(pipeline, {"type": "transform", "name": name, "input": stream.ref, "config": {"cxl": "\n".join(statements)}}, replace(stream, ref=name, columns=columns))


def _analytic(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream = _stream(draw, pipeline)
    name, columns = pipeline.name("window"), dict(stream.columns)
    groups = _chosen(draw, stream.of("int", "string"), 2)
    order = [{"field": one, "order": draw(st.sampled_from(["asc", "desc"]))} for one in _chosen(draw, stream.of("int", "float", "string", "date_time"), 2)]
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
    statements = [f"emit {one} = {menu[one][0]}" for one in wanted]
    columns |= {one: menu[one][1] for one in wanted}
    if draw(st.booleans()):
        statements.append("emit nth = $window.row_number()\nfilter nth <= EDIT")
        columns["nth"] = "int"
    if draw(st.integers(0, 3)) == 0:
        statements.append(f"distinct by {draw(st.sampled_from([one for one, type_ in columns.items() if type_ != 'any']))}")
    config = {"analytic_window": {"partition_by": groups, "sort_by": order}, "cxl": "\n".join(statements)}
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
    conditions = {f"c{at}": draw(st.sampled_from(menu)) for at in range(draw(st.integers(1, 2)))}
    config = {"mode": draw(st.sampled_from(["exclusive", "inclusive"])), "conditions": conditions, "default": "rest"}
    ports = [replace(stream, ref=f"{name}.{port}") for port in (*conditions, "rest")]
    _add(pipeline, {"type": "route", "name": name, "input": stream.ref, "config": config}, *ports)


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
    _add(pipeline, {"type": "merge", "name": name, "inputs": [one.ref for one in inputs], "config": draw(st.sampled_from(modes))}, found)


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
    match = draw(st.sampled_from(["first", "all", "collect"])) if len(others) == 1 else draw(st.sampled_from(["first", "all"]))
    config = {"where": " and ".join(parts), "match": match, "on_miss": draw(st.sampled_from(["null_fields", "skip"])), "propagate_ck": "driver"}
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
def _calls(draw: st.DrawFn, stream: Stream) -> tuple[list[str], dict[str, str]]:
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
    return [f"emit {name} = {menu[name][0]}" for name in wanted], {name: menu[name][1] for name in wanted}


def _grouping(draw: st.DrawFn, stream: Stream) -> list[str]:
    return _chosen(draw, stream.of("int", "string", "bool", "float"), 2)


def _aggregate(draw: st.DrawFn, pipeline: Pipeline) -> None:
    stream, name = _stream(draw, pipeline), pipeline.name("aggregate")
    groups = _grouping(draw, stream)
    lines, columns = _calls(draw, stream)
    numbers = stream.of("int")
    if numbers and draw(st.booleans()):
        lines.insert(0, f"filter {draw(st.sampled_from(numbers))} != EDIT")
    node = {"type": "aggregate", "name": name, "input": stream.ref, "config": {"group_by": groups, "cxl": "\n".join(lines)}}
    data = {**{one: stream.columns[one] for one in groups}, **{one: type_ for one, type_ in columns.items() if one not in groups}}
    _add(pipeline, node, Stream(name, data, single=False))


def _time_window(draw: st.DrawFn, pipeline: Pipeline) -> None:
    timed = [one for one in pipeline.streams if one.timed]
    if not timed:
        return
    stream, name = draw(st.sampled_from(timed)), pipeline.name("timed")
    groups = _grouping(draw, stream)
    lines, columns = _calls(draw, stream)
    window = draw(st.sampled_from([{"tumbling": {"size": "10m"}}, {"hopping": {"size": "20m", "slide": "15m"}}, {"session": {"gap": "8m"}}]))
    late = draw(st.sampled_from([{}, {"allowed_lateness": "EDITm"}, {"allowed_lateness": "forever"}]))
    lines.append("emit begins = $window.start")
    config = {"group_by": groups, "time_window": window, **late, "cxl": "\n".join(lines)}
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
    config = {"scope": scope, "set": [{"var": variable, "cxl": draw(st.sampled_from(expressions))}]}
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
    """A call of a body with a transform and either an aggregate, a distinct or a route behind it."""
    stream = _stream(draw, pipeline)
    numbers = stream.of("int")
    if not numbers:
        return
    number, name = draw(st.sampled_from(numbers)), pipeline.name("composition")
    kind = draw(st.sampled_from(["transform", "aggregate", "distinct", "route"]))
    last: Record = {
        "transform": {"type": "transform", "config": {"cxl": "emit plus = scaled + 1"}},
        "aggregate": {"type": "aggregate", "config": {"group_by": [number], "cxl": "emit top = max(scaled)\nemit n = count(*)"}},
        "distinct": {"type": "transform", "config": {"cxl": "distinct by scaled"}},
        "route": {"type": "route", "config": {"conditions": {"big": "scaled > 4"}, "default": "small"}},
    }[kind]
    outputs = {"big": "last.big", "small": "last.small"} if kind == "route" else {"out": "last"}
    body = {
        "_compose": {
            "name": name, "inputs": {"rows": {"schema": [{"name": number, "type": "int"}]}}, "outputs": outputs,
            "config_schema": {"factor": {"type": "int", "default": 2}},
        },
        "nodes": [
            {"type": "transform", "name": "scale", "input": "rows", "config": {"cxl": f"emit scaled = {number} * $vars.factor + EDIT"}},
            {"name": "last", "input": "scale", **last},
        ],
    }  # fmt: skip
    pipeline.bodies[f"{name}.comp.yaml"] = yaml.safe_dump(body, sort_keys=False, width=200)
    scaled = {**stream.columns, "scaled": "int"}
    columns = {"transform": {**scaled, "plus": "int"}, "aggregate": {number: "int", "top": "int", "n": "int"}, "distinct": scaled, "route": scaled}[kind]
    node = {"type": "composition", "name": name, "input": stream.ref, "use": f"./{name}.comp.yaml", "config": {"factor": draw(st.integers(2, 3))}}
    found = Stream(name, columns, single=False) if kind == "aggregate" else replace(stream, columns=columns)
    refs = [f"{name}.big", f"{name}.small"] if kind == "route" else [name]
    _add(pipeline, node, *(replace(found, ref=ref) for ref in refs))


# Outputs ------------------------------------------------------------------------------------------------------------------
def _output(draw: st.DrawFn, pipeline: Pipeline, stream: Stream) -> None:
    name = f"out_{stream.ref.replace('.', '_')}"
    form = "json" if "any" in stream.columns.values() or draw(st.booleans()) else "csv"
    plain = stream.of("int", "string", "float", "date_time")
    config: Record = {"name": name, "type": form, "path": f"out/{stream.ref.replace('.', '-')}.{form}"}
    if form == "json":
        config |= {"options": {"format": "ndjson"}, "preserve_nulls": draw(st.booleans())}
    options = _chosen(draw, ["sorted", "split", "grouped", "mapped", "excluded", "emitted", "metadata", "by_file"], 2)
    if "sorted" in options and plain:
        config["sort_order"] = [{"field": one, "order": draw(st.sampled_from(["asc", "desc"])), "null_order": draw(st.sampled_from(["first", "last", "drop"]))} for one in _chosen(draw, plain, 2)]
    if "split" in options:
        config["split"] = draw(st.sampled_from([{"max_records": 2}, {"max_bytes": 60}, {"max_records": 3, "max_bytes": 90, "naming": "{stem}-{seq:02}.{ext}"}]))
    elif "grouped" in options and plain:
        config["split"] = {"max_records": 2, "group_key": draw(st.sampled_from(plain)), "oversize_group": "allow", "repeat_header": False}
    if "mapped" in options:
        config["mapping"] = {"renamed": draw(st.sampled_from(list(stream.columns)))}
    if "excluded" in options and len(stream.columns) > 1:
        config["exclude"] = [draw(st.sampled_from([one for one in stream.columns if one not in config.get("mapping", {}).values()]))]
    if "emitted" in options:
        config["include_unmapped"] = False
    if "metadata" in options:
        config["include_metadata"] = "all"
    if "by_file" in options and stream.single and not stream.ref.startswith("aggregate"):
        config["path"] = f"out/{stream.ref.replace('.', '-')}-{{source_file}}.{form}"
    pipeline.nodes.append({"type": "output", "name": name, "input": stream.ref, "config": config})


KINDS: Sequence[Callable[[st.DrawFn, Pipeline], None]] = (
    _transform, _transform, _distinct, _analytic, _lookup, _route, _merge, _merge, _combine, _combine, _aggregate, _aggregate, _time_window, _time_window,
    _state, _init, _composition,
)  # fmt: skip
