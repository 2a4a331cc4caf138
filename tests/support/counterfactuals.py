"""A pipeline of independent blocks and its plain Python model, for what would be without some of the records.

Rows of one block come from records of that block alone, so one question to `why` about all blocks is as many questions, and taking records of
every block away is as many experiments.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]
Records = Mapping[str, list[Record]]
"""The records of each source by its name."""

Rows = Mapping[tuple[Any, ...], Record]
"""Rows by what tells them apart."""

HEADERS = {"lines": ("line", "block", "no", "sku", "qty"), "prices": ("block", "sku", "label", "price")}
TOLD_APART = {"wanted": ("block", "no"), "priced": ("block", "no", "label"), "totals": ("block", "label"), "pieces": ("block", "sku")}
BLOCKS, LINES, SKUS, LABELS = 40, 8, ("a", "b", "c"), ("x", "y")

PIPELINE = """\
pipeline: { name: blocks }
nodes:
  - type: source
    name: lines
    config:
      name: lines
      type: csv
      path: lines.csv
      merge: { strategy: snapshot, primary_key: [line] }
      schema: [{ name: line, type: string }, { name: block, type: int }, { name: no, type: int }, { name: sku, type: string }, { name: qty, type: int }]
  - type: source
    name: prices
    config:
      name: prices
      type: csv
      path: prices.csv
      schema: [{ name: block, type: int }, { name: sku, type: string }, { name: label, type: string }, { name: price, type: int }]
  - type: transform
    name: wanted
    input: lines
    config:
      cxl: |
        filter qty > 0
        emit twice = qty * 2
  - type: route
    name: size
    input: wanted
    config: { conditions: { big: 'twice >= 6' }, default: small }
  - type: combine
    name: priced
    input: { w: size.big, p: prices }
    config:
      where: "w.block == p.block and w.sku == p.sku"
      match: all
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit block = w.block
        emit no = w.no
        emit label = p.label
        emit cost = w.qty * p.price
  - type: aggregate
    name: totals
    input: priced
    config:
      group_by: [block, label]
      cxl: |
        emit cost = sum(cost)
        emit n = count(*)
        emit top = max(cost)
  - type: aggregate
    name: pieces
    input: size.small
    config:
      group_by: [block, sku]
      cxl: |
        emit n = count(*)
        emit least = min(qty)
  - { type: output, name: costs, input: totals, config: { name: costs, type: csv, path: costs.csv } }
  - { type: output, name: small, input: pieces, config: { name: small, type: csv, path: small.csv } }
"""


def records(seed: int) -> Records:
    """Records of all blocks: a sku has a price for one label, for both or for none."""
    chance = random.Random(seed)
    places = [(block, no) for block in range(BLOCKS) for no in range(LINES)]
    lines = [{"line": f"{block}-{no}", "block": block, "no": no, "sku": chance.choice(SKUS), "qty": chance.randint(-1, 9)} for block, no in places]
    offers = [(block, sku, label) for block in range(BLOCKS) for sku in SKUS for label in LABELS if chance.random() < 0.7]
    return {"lines": lines, "prices": [{"block": block, "sku": sku, "label": label, "price": chance.randint(1, 9)} for block, sku, label in offers]}


def of_block(everything: Records, block: int) -> Records:
    """The records of one block."""
    return {source: [one for one in found if one["block"] == block] for source, found in everything.items()}


def model(everything: Records) -> dict[str, Rows]:
    """The rows of each node."""
    wanted = [{**line, "twice": line["qty"] * 2} for line in everything["lines"] if line["qty"] > 0]
    big, small = ([row for row in wanted if (row["twice"] >= 6) == large] for large in (True, False))
    offers = defaultdict(list)
    for price in everything["prices"]:
        offers[price["block"], price["sku"]].append(price)
    priced = [
        {"block": row["block"], "no": row["no"], "label": offer["label"], "cost": row["qty"] * offer["price"]}
        for row in big
        for offer in offers[row["block"], row["sku"]]
    ]
    totals = [
        {**group, "cost": sum(row["cost"] for row in rows), "n": len(rows), "top": max(row["cost"] for row in rows)} for group, rows in _groups(priced, "label")
    ]
    pieces = [{**group, "n": len(rows), "least": min(row["qty"] for row in rows)} for group, rows in _groups(small, "sku")]
    return {node: told_apart(node, rows) for node, rows in {"wanted": wanted, "priced": priced, "totals": totals, "pieces": pieces}.items()}


def _groups(rows: Iterable[Record], name: str) -> Iterable[tuple[Record, list[Record]]]:
    found: dict[tuple[Any, Any], list[Record]] = defaultdict(list)
    for row in rows:
        found[row["block"], row[name]].append(row)
    return [({"block": block, name: value}, group) for (block, value), group in found.items()]


def told_apart(node: str, rows: Iterable[Record]) -> Rows:
    """Rows of a node by what tells them apart."""
    return {tuple(row[name] for name in TOLD_APART[node]): dict(row) for row in rows}
