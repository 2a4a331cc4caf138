"""The combines of `test_combine.py` in one pipeline, and what plain Python says of each: nested loops over lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Condition = Callable[..., bool]
"""Over the driver's row and the build rows so far, the last one being looked at; None is a build without match."""

HEADERS = {"orders": ("id", "k", "q"), "items": ("k", "low", "high", "v"), "tags": ("v", "label")}

SOURCES = """\
pipeline:
  name: joins
error_handling:
  strategy: continue
  dlq: { path: out/dlq.csv, include_reason: true, include_source_row: true }
nodes:
  - type: source
    name: orders
    config: { name: orders, type: csv, path: orders.csv, schema: [ { name: id, type: int }, { name: k, type: int }, { name: q, type: int } ] }
  - type: source
    name: items
    config: { name: items, type: csv, path: items.csv, schema: [ { name: k, type: float }, { name: low, type: int }, { name: high, type: int }, { name: v, type: int } ] }
  - type: source
    name: tags
    config: { name: tags, type: csv, path: tags.csv, schema: [ { name: v, type: int }, { name: label, type: string } ] }
"""


class Fails(Exception):
    """An evaluation error: the driver's record is rejected."""


def equal(left: Any, right: Any) -> bool:
    """`==` that must be true."""
    return left is not None and right is not None and left == right


def less(left: Any, right: Any) -> bool:
    """`<` that must be true."""
    return left is not None and right is not None and left < right


def at_most(left: Any, right: Any) -> bool:
    """`<=` that must be true."""
    return left is not None and right is not None and left <= right


def quotient(left: int | None, right: int | None) -> int | None:
    """Integer division as CXL has it."""
    if left is None or right is None:
        return None
    if right == 0:
        raise Fails
    return int(left / right)


def within(order: Row, item: Row | None) -> bool:
    """`i.low <= o.q and o.q < i.high`."""
    return item is not None and (equal(item["low"], order["q"]) or less(item["low"], order["q"])) and less(order["q"], item["high"])


def tried(_: Any) -> bool:
    """A value that is computed before it is compared."""
    return True


def field(row: Row | None, name: str) -> Any:
    """A field of a row that may be missing."""
    return None if row is None else row[name]


def written(value: Any) -> str:
    """A cell."""
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Join:
    """One combine: how it is written, and its model: conditions in the order of the builds, and the body's values."""

    name: str
    inputs: Mapping[str, str]
    config: str
    columns: Sequence[str]
    conditions: Sequence[Condition]
    body: Callable[..., Sequence[Any]]
    match: str = "first"
    on_miss: str = "null_fields"

    def node(self) -> str:
        """The combine and its output."""
        inputs = ", ".join(f"{qualifier}: {node}" for qualifier, node in self.inputs.items())
        modes = f"match: {self.match}, on_miss: {self.on_miss}, propagate_ck: driver"
        return (
            f"  - type: combine\n    name: {self.name}\n    input: {{ {inputs} }}\n    config: {{ {modes}, {self.config} }}\n"
            f"  - type: output\n    name: {self.name}_out\n    input: {self.name}\n"
            f"    config: {{ name: {self.name}_out, type: csv, path: out/{self.name}.csv }}\n"
        )

    def expected(self, tables: Mapping[str, Sequence[Row]]) -> tuple[list[list[str]], list[int]]:
        """The rows of the output, and the numbers of the driver's records that are rejected."""
        names = list(self.inputs.values())
        rows: list[list[str]] = []
        rejected: list[int] = []
        for number, driver in enumerate(tables[names[0]], 1):
            try:
                found = self._matches([driver], [tables[name] for name in names[1:]], list(self.conditions))
                rows += [[written(value) for value in self.body(*match)] for match in found]
            except Fails:
                rejected.append(number)
        return rows, rejected

    def _matches(self, rows: list[Row | None], builds: list[Sequence[Row]], conditions: list[Condition]) -> list[list[Row | None]]:
        if not builds:
            return [rows]
        found: list[list[Row | None]] = []
        for build in builds[0]:
            if conditions[0](*rows, build):
                found += self._matches([*rows, build], builds[1:], conditions[1:])
                if self.match == "first" and found:
                    break
        if found or self.on_miss == "skip":
            return found
        return self._matches([*rows, None], builds[1:], conditions[1:])


def same_key(order: Row, item: Row | None) -> bool:
    """`o.k == i.k`, an Int and a Float."""
    return item is not None and equal(order["k"], item["k"])


TWO = {"o": "orders", "i": "items"}
THREE = {"o": "orders", "i": "items", "t": "tags"}

JOINS = (
    Join("lookup", TWO, 'where: "o.k == i.k", cxl: "emit id = o.id emit v = i.v"', ("id", "v"), [same_key], lambda o, i: (o["id"], field(i, "v"))),
    Join(
        "every", TWO, 'where: "o.k == i.k", cxl: "emit id = o.id emit v = i.v emit low = i.low"', ("id", "v", "low"),
        [same_key], lambda o, i: (o["id"], field(i, "v"), field(i, "low")), match="all",
    ),
    Join(
        "priced", TWO, 'where: "o.k == i.k and i.low <= o.q and o.q < i.high", strategy: grace_hash, cxl: "emit id = o.id emit v = i.v"', ("id", "v"),
        [lambda o, i: same_key(o, i) and within(o, i)], lambda o, i: (o["id"], field(i, "v")), on_miss="skip",
    ),
    Join("banded", TWO, 'where: "i.low <= o.q and o.q < i.high", cxl: "emit id = o.id emit v = i.v"', ("id", "v"), [within], lambda o, i: (o["id"], field(i, "v"))),
    Join(
        "picky", TWO, 'where: "o.k == i.k and o.q > 2 and i.v > 1", strategy: grace_hash, cxl: "emit id = o.id emit v = i.v"', ("id", "v"),
        [lambda o, i: same_key(o, i) and less(2, o["q"]) and less(1, i["v"])], lambda o, i: (o["id"], field(i, "v")),
    ),
    Join(
        "chained", THREE, 'where: "o.k == i.k and i.v == t.v", cxl: "emit id = o.id emit v = i.v emit label = t.label"', ("id", "v", "label"),
        [same_key, lambda o, i, t: equal(field(i, "v"), t["v"])], lambda o, i, t: (o["id"], field(i, "v"), field(t, "label")),
    ),
    Join(
        "whole", THREE, 'where: "o.k == i.k and i.v == t.v", cxl: "emit id = o.id emit low = i.low emit label = t.label"', ("id", "low", "label"),
        [same_key, lambda o, i, t: equal(i["v"], t["v"])], lambda o, i, t: (o["id"], i["low"], t["label"]), on_miss="skip",
    ),
    Join(
        "whole_ranges", THREE, 'where: "i.low <= o.q and o.q < i.high and i.low <= t.v and t.v <= i.high", cxl: "emit id = o.id emit v = i.v emit t = t.v"', ("id", "v", "t"),
        [within, lambda o, i, t: at_most(i["low"], t["v"]) and at_most(t["v"], i["high"])],
        lambda o, i, t: (o["id"], i["v"], t["v"]), on_miss="skip",
    ),
    Join(
        "whole_fails", THREE, 'where: "o.k == i.k and i.low == t.v and o.q / t.v >= i.v / i.high", cxl: "emit id = o.id emit v = i.v emit label = t.label"', ("id", "v", "label"),
        [same_key, lambda o, i, t: equal(i["low"], t["v"]) and at_most(quotient(i["v"], i["high"]), quotient(o["q"], t["v"]))],
        lambda o, i, t: (o["id"], i["v"], t["label"]), on_miss="skip",
    ),
    Join(
        "whole_key_fails", THREE, 'where: "o.k == i.k and 6 / i.v == t.v", cxl: "emit id = o.id emit low = i.low emit label = t.label"', ("id", "low", "label"),
        [lambda o, i: same_key(o, i) and tried(quotient(6, i["v"])), lambda o, i, t: equal(quotient(6, i["v"]), t["v"])], lambda o, i, t: (o["id"], i["low"], t["label"]), on_miss="skip",
    ),
    Join(
        "crossed", THREE, 'where: "o.k == i.k and o.q == t.v", cxl: "emit id = o.id emit v = i.v emit label = t.label"', ("id", "v", "label"),
        [same_key, lambda o, i, t: equal(o["q"], t["v"])], lambda o, i, t: (o["id"], field(i, "v"), field(t, "label")), match="all",
    ),
    Join(
        "driven", {"i": "items", "o": "orders"}, 'drive: i, where: "o.k == i.k", cxl: "emit v = i.v emit id = o.id"', ("v", "id"),
        [lambda i, o: equal(o["k"], i["k"])], lambda i, o: (i["v"], field(o, "id")),
    ),
    Join(
        "selfish", {"a": "orders", "b": "orders"}, 'where: "a.k == b.q", cxl: "emit a = a.id emit b = b.id"', ("a", "b"),
        [lambda a, b: equal(a["k"], b["q"])], lambda a, b: (a["id"], b["id"]), match="all", on_miss="skip",
    ),
    Join(
        "body_fails", TWO, 'where: "o.k == i.k", cxl: "emit id = o.id emit r = 12 / i.v"', ("id", "r"),
        [same_key], lambda o, i: (o["id"], quotient(12, field(i, "v"))), match="all",
    ),
    Join(
        "pair_fails", TWO, 'where: "o.k == i.k and o.q / i.v >= 1", cxl: "emit id = o.id emit v = i.v"', ("id", "v"),
        [lambda o, i: same_key(o, i) and less(0, quotient(o["q"], i["v"]))], lambda o, i: (o["id"], field(i, "v")),
    ),
)  # fmt: skip


def pipeline(joins: Sequence[Join] = JOINS) -> str:
    """The pipeline of some joins, a collect and a combine whose build side fails."""
    return SOURCES + "".join(join.node() for join in joins) + COLLECT + BROKEN


COLLECT = """\
  - type: combine
    name: gathered
    input: { o: orders, i: items }
    config: { where: "o.k == i.k", match: collect, cxl: "", propagate_ck: driver }
  - type: output
    name: gathered_out
    input: gathered
    config: { name: gathered_out, type: json, path: out/gathered.ndjson, options: { format: ndjson }, preserve_nulls: true }
"""

BROKEN = """\
  - type: combine
    name: build_fails
    input: { o: orders, i: items }
    config: { where: "o.k == 6 / i.v", match: first, propagate_ck: driver, cxl: "emit id = o.id emit v = i.v" }
  - type: output
    name: build_fails_out
    input: build_fails
    config: { name: build_fails_out, type: csv, path: out/build_fails.csv }
"""


def gathered(tables: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """The result of the collect."""
    return [{**order, "i": [dict(item) for item in tables["items"] if same_key(order, item)]} for order in tables["orders"]]


def with_broken_builds(tables: Mapping[str, Sequence[Row]]) -> tuple[list[list[str]], list[int]]:
    """The rows of `build_fails`, and the numbers of the items that are rejected: nobody matches them."""
    good = [item for item in tables["items"] if item["v"] != 0]
    bad = [number for number, item in enumerate(tables["items"], 1) if item["v"] == 0]
    rows = []
    for order in tables["orders"]:
        match = next((item for item in good if equal(order["k"], quotient(6, item["v"]))), None)
        rows.append([written(order["id"]), written(field(match, "v"))])
    return rows, bad


FEW = tuple(join for join in JOINS if join.name in ("every", "priced", "chained", "whole_fails", "pair_fails"))
"""One of each kind, for an engine that takes its time over each."""
