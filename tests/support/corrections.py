"""Plain Python models of deliveries that correct others: groups of operations, versions, change feeds, scopes. Random histories for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

Record = dict[str, Any]
Files = dict[str, list[Record]]
"""The records of each file, by name."""
NAMES = ("a", "b", "c", "d", "e", "f")
COLUMNS = ("id", "code", "of", "v", "w")
SOURCES = {
    "plain": "{strategy: changelog, primary_key: [id], op: code, ops: {append: [N], correct: [C], retract: [X], ignore: [I]}}",
    "strict": "{strategy: changelog, primary_key: [id], op: code, on_unknown: reject, ops: {append: [N], correct: [C], patch: [P], retract: [X], ignore: [I]}}",
    "lax": "{strategy: changelog, primary_key: [id], op: code, on_unknown: {retract: ignore}, ops: {append: [N], correct: [C], patch: [P], retract: [X], ignore: [I]}}",
    "named": "{strategy: changelog, primary_key: [id], op: code, of: {id: of}, ops: {append: [N], correct: [C], patch: [P], retract: [X], ignore: [I]}}",
    "replaced": "{strategy: changelog, primary_key: [id], op: code, of: {id: of}, on_unknown: reject, ops: {append: [N], correct: [C], patch: [P], retract: [X], ignore: [I]}}",
    "versions": "{strategy: changelog, primary_key: [id], op: code, version_field: v, ops: {append: [N], correct: [C], retract: [X], ignore: [I, P]}}",
    "checked": "{strategy: changelog, primary_key: [id], op: code, of: {id: of}, version_field: v, on_unknown: reject, ops: {append: [N], correct: [C], retract: [X], ignore: [I, P]}}",
    "newest": "{strategy: upsert, primary_key: [id], version_field: v, deleted: 'code == \"X\"'}",
}
"""The `merge` of each source."""
VERSIONED = ("versions", "checked", "newest")
KNOWN = {"N", "C", "P", "X", "I"}

_SOURCE = """\
  - type: source
    name: NAME
    config:
      name: NAME
      type: csv
      glob: NAME/*.csv
      files: { on_no_match: skip }
      on_unmapped: { mode: drop }
      merge: MERGE
      schema: [{ name: id, type: int }, { name: code, type: string }, { name: of, type: int }, { name: v, type: int }, { name: w, type: string }]
  - type: output
    name: NAME_out
    input: NAME
    config: { name: NAME_out, type: csv, path: out/NAME.csv }
"""


def pipeline(names: Sequence[str] = tuple(SOURCES)) -> str:
    """The text of a pipeline with some of the sources."""
    sources = "".join(_SOURCE.replace("NAME", name).replace("MERGE", SOURCES[name]) for name in names)
    return f"pipeline: {{ name: corrections }}\nnodes:\n{sources}error_handling: {{ strategy: continue, dlq: {{ path: out/rejected.csv }} }}\n"


records = st.fixed_dictionaries(
    {
        "id": st.sampled_from([1, 2, 3, 1, 2, 3, None]),
        "code": st.sampled_from(["N", "N", "C", "C", "P", "X", "X", "I", "?"]),
        "of": st.sampled_from([None, None, 1, 2, 3]),
        "v": st.sampled_from([None, 0, 1, 2, 3, 4]),
        "w": st.sampled_from(["", "x", "y"]),
    }
)


@st.composite
def deliveries(draw: st.DrawFn, most: int = 5) -> list[Files]:
    """The deliveries of each run: files in any order, none of them twice."""
    names = draw(st.permutations(NAMES[: draw(st.integers(2, most))]))
    cuts = sorted(draw(st.sets(st.integers(1, len(names) - 1), max_size=3)))
    files = {name: draw(st.lists(records, min_size=1, max_size=4)) for name in names}
    return [{name: files[name] for name in names[start:end]} for start, end in zip([0, *cuts], [*cuts, len(names)], strict=True)]


@dataclass(frozen=True)
class Outcome:
    """The content of a source: live records by key, and rejects (file, row, category)."""

    live: dict[int, Record]
    rejects: set[tuple[str, int, str]]


def replayed(source: str, files: Files) -> Outcome:
    """The content of a source after a full run over files."""
    events = [(name, row, record) for name in sorted(files) for row, record in enumerate(files[name], 1)]
    events.sort(key=lambda event: event[2]["v"] or 0 if source in VERSIONED else 0)
    live, wrong = replayed_in_order(source, [record for *_, record in events])
    return Outcome(live, {(name, row, category) for (name, row, _), category in zip(events, wrong, strict=True) if category})


def replayed_in_order(source: str, records: Sequence[Record]) -> tuple[dict[int, Record], list[str]]:
    """The content of a source after records in this order: the live ones by key, and why each is rejected; empty for the others."""
    live: dict[int, Record] = {}
    versioned = source in VERSIONED
    wrong = []
    for record in records:
        found = _wrong(source, record, versioned=versioned)
        wrong.append(found or ("" if _passed(source, record) else _apply(source, live, record, versioned=versioned)))
    return live, wrong


def _passed(source: str, record: Record) -> bool:
    passed = {"versions": "IP", "checked": "IP", "newest": ""}.get(source, "I")
    return record["code"] in passed


def _wrong(source: str, record: Record, *, versioned: bool) -> str:
    """Why a record is rejected whatever is live."""
    if source != "newest" and (record["code"] not in KNOWN or (source == "plain" and record["code"] == "P")):
        return "unknown_operation"
    if _passed(source, record):
        return ""
    if versioned and record["v"] is None:
        return "null_version"
    return "null_primary_key" if _key(source, record) is None or (record["code"] in "NC" and record["id"] is None) else ""


def _key(source: str, record: Record) -> int | None:
    """The key that a record acts on."""
    names = source in ("named", "replaced", "checked") and record["code"] in ("X", "P")
    found = record["of"] if names and record["of"] is not None else record["id"]
    return None if found is None else int(found)


def _apply(source: str, live: dict[int, Record], record: Record, *, versioned: bool) -> str:
    """Apply a record; why it is rejected."""
    strict = source in ("strict", "replaced", "checked")
    key, code = _key(source, record), record["code"]
    assert key is not None
    if code == "X":
        gone = live.pop(key, None)
        return "retraction_of_unknown_key" if gone is None and not versioned and source != "lax" else ""
    if code == "P" and source != "newest":
        return _patch(live, key, record, strict=strict)
    meant = record["of"] if source in ("named", "replaced", "checked") and code == "C" and record["of"] is not None else key
    if code == "C" and strict and meant not in live:
        return "correction_of_unknown_key"
    if code == "C":
        live.pop(meant, None)
    live[key] = record
    return ""


def _patch(live: dict[int, Record], key: int, record: Record, *, strict: bool) -> str:
    if key not in live and strict:
        return "correction_of_unknown_key"
    old = live.get(key, {})
    live[key] = {name: old.get(name) if record[name] is None or (record[name] == "" and old.get(name) is not None) else record[name] for name in record} | {"id": key}
    return ""


Deliveries = dict[str, list[dict[str, Any]]]
"""The messages of each file of a change feed, by name."""
UNAVAILABLE = "__debezium_unavailable_value"


@dataclass(frozen=True)
class FeedOutcome:
    """The content of a change feed: the values of live rows by key, and rejects (file, row, category)."""

    live: dict[int, tuple[str, int]]
    rejects: set[tuple[str, int, str]]


@st.composite
def feed_deliveries(draw: st.DrawFn) -> list[Deliveries]:
    """The deliveries of a Debezium feed in each run: files in any order, full of messages. Some lack values, some truncate, some are rejected."""
    names = draw(st.permutations(NAMES[: draw(st.integers(3, 5))]))
    cuts = sorted(draw(st.sets(st.integers(1, len(names) - 1), min_size=1, max_size=3)))
    dice = Random(draw(st.integers(0, 1 << 32)))
    files = {name: [_change(dice) for _ in range(dice.randint(3, 8))] for name in names}
    return [{name: files[name] for name in names[start:end]} for start, end in zip([0, *cuts], [*cuts, len(names)], strict=True)]


def _change(dice: Random) -> dict[str, Any]:
    op = dice.choices("udtx", [24, 4, 1, 1])[0]
    row = {"id": dice.randint(1, 5), "v": dice.choice(["a", "b", UNAVAILABLE]), "w": dice.choice([1, 2, 3, 4, UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, "bad"])}
    key = row["id"] if op == "d" else dice.randint(1, 5) if op == "u" and dice.random() < 0.1 else None
    lsn = None if dice.random() < 0.05 else dice.randint(1, 20)
    return {"op": op, "before": key and {"id": key, "w": UNAVAILABLE}, "after": row if op == "u" else None, "source": {"lsn": lsn}}


def of_feed(files: Deliveries, *, versioned: bool) -> FeedOutcome:
    """The content of a change feed after a full run over its files."""
    rejects, events = set[tuple[str, int, str]](), []
    for name in sorted(files):
        for row, message in enumerate(files[name], 1):
            lsn = message["source"]["lsn"]
            wrong = _wrong_in_feed(message, is_null=versioned and lsn is None)
            if wrong:
                rejects.add((name, row, wrong))
            else:
                behind = message["op"] == "t"  # a truncation comes behind all that has its version
                events.append(((lsn, behind) if versioned else (0, False), name, row, message))
    live: dict[int, tuple[str, int]] = {}
    for _, name, row, message in sorted(events, key=lambda event: event[:3]):
        if not _apply_change(live, message):
            rejects.add((name, row, "unavailable_value"))
    return FeedOutcome(live, rejects)


def _wrong_in_feed(message: dict[str, Any], *, is_null: bool) -> str:
    """Why a message is rejected whatever is live."""
    if message["op"] == "x":
        return "unknown_operation"
    if message["op"] == "u" and message["after"]["w"] == "bad":
        return "type_coercion_failure"
    return "null_version" if is_null else ""


def _apply_change(live: dict[int, tuple[str, int]], message: dict[str, Any]) -> bool:
    """Apply a message; whether its values are known."""
    if message["op"] == "t":
        live.clear()
        return True
    if message["op"] == "d":
        live.pop(message["before"]["id"], None)
        return True
    after, key = message["after"], message["after"]["id"]
    if UNAVAILABLE in (after["v"], after["w"]):
        if key not in live:
            return False
        v, w = live[key]
        live[key] = (v if after["v"] == UNAVAILABLE else after["v"], w if after["w"] == UNAVAILABLE else after["w"])
        return True
    if message["before"]:
        live.pop(message["before"]["id"], None)
    live[key] = (after["v"], after["w"])
    return True


def shown(live: Mapping[int, Record]) -> list[dict[str, str]]:
    """Records as the output file has them."""
    return [{name: "" if value is None else str(value) for name, value in live[key].items()} for key in sorted(live)]


def json_lines(messages: Sequence[Any]) -> str:
    """Messages as a file."""
    return "".join(json.dumps(message) + "\n" for message in messages)
