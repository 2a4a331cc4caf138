"""A small project with a history, for tests of the audit: two sources, a filter, a join, sums, a window; three epochs of corrections."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.pipelines import Folder

PIPELINE = """\
pipeline:
  name: audited
nodes:
  - type: source
    name: lines
    config:
      name: lines
      type: csv
      path: lines.csv
      merge: {strategy: snapshot, primary_key: [line]}
      schema:
        - { name: line, type: string }
        - { name: sku, type: string }
        - { name: qty, type: int }
  - type: source
    name: prices
    config:
      name: prices
      type: csv
      path: prices.csv
      schema:
        - { name: sku, type: string }
        - { name: label, type: string }
        - { name: price, type: int }
  - type: transform
    name: wanted
    input: lines
    config:
      cxl: |
        filter qty > 0
        emit twice = qty * 2
  - type: combine
    name: priced
    input: { wanted: wanted, prices: prices }
    config:
      where: "wanted.sku == prices.sku"
      match: all
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit line = wanted.line
        emit label = prices.label
        emit cost = wanted.qty * prices.price
  - type: aggregate
    name: totals
    input: priced
    config:
      group_by: [label]
      cxl: |
        emit cost = sum(cost)
        emit n = count(*)
  - type: transform
    name: running
    input: wanted
    config:
      analytic_window:
        group_by: [sku]
        sort_by: [{ field: line }]
      cxl: |
        emit so_far = $window.sum(qty)
  - type: transform
    name: kinds
    input: wanted
    config:
      cxl: |
        distinct by sku
        emit kind = sku
  - type: output
    name: costs
    input: totals
    config: { name: costs, type: csv, path: costs.csv }
  - type: output
    name: runs
    input: running
    config: { name: runs, type: csv, path: runs.csv }
"""
BRIEF = """\
pipeline:
  name: audited
nodes:
  - type: source
    name: lines
    config:
      name: lines
      type: csv
      path: lines.csv
      merge: {strategy: snapshot, primary_key: [line]}
      schema:
        - { name: line, type: string }
        - { name: sku, type: string }
        - { name: qty, type: int }
  - type: aggregate
    name: totals
    input: lines
    config:
      group_by: [sku]
      cxl: emit cost = sum(qty)
  - type: output
    name: costs
    input: totals
    config: { name: costs, type: csv, path: costs.csv }
"""
"""A node of each kind: what is killed at every step is run a hundred times."""
LINES, PRICES = ("line", "sku", "qty"), ("sku", "label", "price")
NODES = ("wanted", "priced", "totals", "running", "kinds")
SKUS = ("a", "b", "c", "d")


def lines(seed: int, count: int = 12) -> list[dict[str, object]]:
    """Records of the keyed source."""
    chance = random.Random(seed)
    return [{"line": f"l{number:02}", "sku": chance.choice(SKUS), "qty": chance.randint(-1, 9)} for number in range(count)]


def prices(seed: int) -> list[dict[str, object]]:
    """Records of the other: a label has several kinds, a kind has several labels."""
    chance = random.Random(seed)
    return [{"sku": sku, "label": chance.choice(("x", "y", "z")), "price": chance.randint(1, 9)} for sku in (*SKUS, chance.choice(SKUS))]


def project(path: Path, seed: int = 0, pipeline: str = PIPELINE) -> Folder:
    """The project, not run yet."""
    folder = Folder(path)
    folder.write("pipeline.yaml", pipeline)
    folder.write_csv("lines.csv", LINES, lines(seed))
    folder.write_csv("prices.csv", PRICES, prices(seed))
    return folder


def with_history(path: Path, seed: int = 0, pipeline: str = PIPELINE) -> Folder:
    """The project after three epochs."""
    folder = project(path, seed, pipeline)
    folder.run()
    for epoch in (1, 2):
        changed = lines(seed)
        changed[epoch] = {**changed[epoch], "qty": 40 + epoch}
        folder.write_csv("lines.csv", LINES, changed[: 12 - epoch])
        folder.run()
    return folder
