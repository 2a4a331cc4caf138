"""The pipeline of the invariants' tests and its plain Python model: source, transform with filter and division, two aggregates, outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

HEADER = ("id", "region", "amount", "parts")

PIPELINE = """\
pipeline:
  name: sales
nodes:
  - type: source
    name: sales
    config:
      name: sales
      type: csv
      glob: data/*.csv
      files: { on_no_match: skip }
      merge: MERGE
      schema:
        - { name: id, type: int }
        - { name: region, type: string }
        - { name: amount, type: float }
        - { name: parts, type: int }
  - type: transform
    name: priced
    input: sales
    config:
      cxl: |
        filter region != "none"
        emit share = amount / parts
        emit size = if amount >= 50 then "large" else "small"
        emit rest = 100 % parts
  - type: aggregate
    name: sums
    input: priced
    config:
      group_by: [region]
      cxl: |
        emit total = sum(amount)
        emit mean = avg(amount)
        emit n = count(*)
  - type: output
    name: rows
    input: priced
    config: { name: rows, type: csv, path: out/rows.csv }
  - type: output
    name: totals
    input: sums
    config: { name: totals, type: csv, path: out/totals.csv }
EXTREMES
error_handling:
  strategy: continue
  dlq: { path: out/rejected.csv }
"""

EXTREMES = """\
  - type: aggregate
    name: extremes
    input: priced
    config:
      group_by: [size]
      cxl: |
        emit low = min(amount)
        emit high = max(amount)
        emit first_id = first(id)
  - type: output
    name: bounds
    input: extremes
    config: { name: bounds, type: csv, path: out/bounds.csv }
"""

KEYED = "{strategy: snapshot, primary_key: [id]}"
KEYLESS = "snapshot"


def pipeline(merge: str, persist: str = "all", *, extremes: bool = True) -> str:
    """The text of the pipeline with a merge strategy, with its second aggregate or not."""
    return PIPELINE.replace("MERGE", merge).replace("EXTREMES\n", EXTREMES if extremes else "") + f"changelog: {{ persist: {persist} }}\n"


def expected(records: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The result of a full run over these records, in order: rows, totals, bounds, and the ids of rejected records."""
    kept, rejected = [], []
    for record in records:
        if record["region"] == "none":
            continue
        if record["parts"] == 0:
            rejected.append({"id": record["id"]})
            continue
        kept.append(_priced(record))
    return {"rows": kept, "totals": _totals(kept), "bounds": _bounds(kept), "rejected": rejected}


def _priced(record: Mapping[str, Any]) -> dict[str, Any]:
    amount, parts = record["amount"], record["parts"]
    known = amount is not None and parts is not None
    return {
        **record, "share": amount / parts if known else None, "size": "large" if amount is not None and amount >= 50 else "small",
        "rest": None if parts is None else 100 % parts,
    }  # fmt: skip


def _totals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row["region"]].append(row["amount"])
    return [_total(region, values) for region, values in sorted(groups.items())]


def _total(region: str, values: Sequence[float | None]) -> dict[str, Any]:
    known = [Fraction(value) for value in values if value is not None]
    total = sum(known, Fraction(0))
    return {"region": region, "total": float(total) if known else None, "mean": float(total / len(known)) if known else None, "n": len(values)}


def _bounds(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["size"]].append(row)
    return [_bound(size, group) for size, group in sorted(groups.items())]


def _bound(size: str, group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = [row["amount"] for row in group if row["amount"] is not None]
    return {"size": size, "low": min(known, default=None), "high": max(known, default=None), "first_id": group[0]["id"]}


def as_text(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Rows as a CSV file holds them: null is empty, whole floats have no fraction."""
    return [{name: _text(value) for name, value in row.items()} for row in rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return str(value)
