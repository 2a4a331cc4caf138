"""`errata report`: one self-contained HTML page about a pipeline: nodes, runs, changes over time, rejects, hottest keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from changelog.columns import column
from changelog.lazy_imports import F
from errata.inspect.dlq import entries
from errata.inspect.expectations import expectations, history
from errata.inspect.snapshot import Snapshot
from errata.plan.plan import Plan
from errata.rendering.dag_svg import OPS, Box, bars, dag
from errata.rendering.html import page, table
from storage.values.python_rows import dictionaries

Row = Mapping[str, Any]
NEWEST_RUNS = 200
SHOWN_REJECTS = 100
HOTTEST = 20


def report(plan: Plan, reading: Snapshot) -> str:
    """The page. Of a pipeline that has not run yet it shows the plan."""
    runs = list(reading.runs())
    state = f"epoch {reading.last}" if reading.head else "never run"
    return page(f"{reading.name}: {state}", _sections(plan, reading, runs))


def _sections(plan: Plan, reading: Snapshot, runs: list[Row]) -> Iterator[tuple[str, str]]:
    status = reading.status()
    live = {node["name"]: node["rows_live"] for node in status["nodes"]}
    boxes = [Box(node.name, _said(node.kind, live.get(node.name, 0)), tuple(dict.fromkeys(name for name, _ in node.inputs))) for node in plan]
    yield "Nodes", dag(boxes)
    legend = ", ".join(f'<span class="{style}">■</span> {op}' for op, style in OPS.items())
    yield "Changes by epoch", f"<p>{legend}</p>\n{bars({run['epoch']: _totals(run) for run in runs[-NEWEST_RUNS:]})}" if runs else "<p>no run yet</p>"
    expected = list(expectations(plan, reading.entries))
    if expected:
        yield "Expectations", table(expected)
        yield "Expectations by epoch", table(list(history(plan, reading.entries))[-NEWEST_RUNS:][::-1], "no row ever failed")
    yield "Sources", table([{**source, "files": len(source["files"])} for source in status["sources"]])
    yield "Runs", table([{**run, "counts": _totals(run)} for run in reversed(runs[-NEWEST_RUNS:])], "no run yet")
    yield f"Rejected records: {status['rejected']:,}", table(list(islice(entries(reading), SHOWN_REJECTS)) if status["rejected"] else [])
    yield "Keys that changed most", table(hottest(reading), "no key changed more than once")


def _said(kind: str, rows: int | None) -> str:
    """The caption of a box: the type, and the rows where they are counted."""
    return kind if rows is None else f"{kind}, {rows:,} rows"


def _totals(run: Row) -> dict[str, int]:
    """The rows of each op over all nodes."""
    return {op: total for op in OPS if (total := sum(ops.get(op, 0) for ops in run["counts"].values()))}


def hottest(reading: Snapshot, most: int = HOTTEST) -> list[dict[str, Any]]:
    """The keys with the most changes: node, epochs in which the key changed, and its last row."""
    found: list[dict[str, Any]] = []
    for node in reading.nodes.values():
        if node.kind == "output" or not node.persisted:
            continue
        rows = reading.op_rows(node)
        counts = rows.groupBy("_key").agg(F.countDistinct("_epoch").alias("epochs")).where(F.col("epochs") > 1)
        top = reading.engine.to_arrow(counts.orderBy(F.col("epochs").desc(), "_key").limit(most)).to_pylist()
        last = _last_rows(reading, node.name, {bytes(row["_key"]) for row in top})
        found += [{"node": node.name, "epochs": row["epochs"], "row": last.get(bytes(row["_key"]), {})} for row in top]
    return sorted(found, key=lambda row: -row["epochs"])[:most]


def _last_rows(reading: Snapshot, name: str, keys: set[bytes]) -> dict[bytes, dict[str, Any]]:
    if not keys:
        return {}

    node = reading.nodes[name]
    rows = reading.op_rows(node).join(reading.engine.keys_frame(keys), "_key", "left_semi").select("_epoch", "_op", "_key", *map(column, node.shown))
    ordered = sorted(dictionaries(reading.engine.to_arrow(rows)), key=lambda row: (row["_epoch"], row["_op"]))
    return {bytes(row["_key"]): node.values(row) for row in ordered}
