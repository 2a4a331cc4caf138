"""`errata verify`: the ledger's chain, the fold and pairing of every table, conservation, and a comparison with a batch run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from changelog.columns import image_columns
from changelog.equality import alike, fingerprint, parts
from changelog.lazy_imports import F, Window
from changelog.ops import is_negative, weight
from errata.core.options import EngineOptions
from errata.erasure.record import record_faults
from errata.inspect.database_tables import mirrors_compared
from errata.inspect.recompute import recomputed
from errata.inspect.snapshot import Snapshot
from errata.plan.pipeline import LoadedPipeline
from errata.state.committed_node import CommittedNode
from storage.delta.changelog_table import ChangelogTable
from storage.errors import StorageError, engine_failures, first_line
from storage.state.entry import Entry, verify_chain
from storage.state.integrity import check_ledger_end, check_ledger_files, check_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = Mapping[str, Any]


UNREADABLE = (StorageError, OSError, ValueError, TypeError, KeyError)
"""The errors of reading a ledger that somebody has damaged."""


def verify(pipeline: LoadedPipeline, recompute: bool, engine: EngineOptions) -> Iterator[Row]:
    """One row a check: check, node, epoch, verdict (`ok` or `violation`), detail. With `recompute` a batch run is made and compared."""
    entries, faults = _entries(pipeline)
    yield from faults or ([_answer("ledger")] if entries else [])
    if entries:
        yield from _tables(pipeline, entries, recompute, engine)


def _entries(pipeline: LoadedPipeline) -> tuple[list[Entry], list[Row]]:
    """The ledger's entries, none where they cannot be read, and what is wrong with them."""
    broken = [_answer("ledger", epoch=fault.epoch or None, detail=fault.detail) for fault in check_ledger_files(pipeline.state)]
    if broken:
        return [], broken
    try:
        entries = pipeline.open_ledger().entries(checked=False)
    except UNREADABLE as problem:
        return [], [_answer("ledger", detail=f"the ledger cannot be read: {problem}")]
    return entries, [*_ledger_faults(pipeline, entries)]


def _tables(pipeline: LoadedPipeline, entries: list[Entry], recompute: bool, engine: EngineOptions) -> Iterator[Row]:
    damaged = list(check_tables(pipeline.state, entries))
    yield from (_answer("table", fault.table, fault.epoch, fault.detail) for fault in damaged)
    whole = replace(entries[-1], tables={path: version for path, version in entries[-1].tables.items() if path not in {fault.table for fault in damaged}})
    reading = Snapshot(pipeline.name, pipeline.state, pipeline.plan)
    yield from _versions(reading, whole)
    for node in reading.nodes.values():
        if node.persisted and f"changelog/{node.name}" in whole.tables:
            yield from _table(reading, node, whole, _shapes(node, entries))
    if not damaged:
        yield from (_answer("database", name, detail=detail) for name, detail in mirrors_compared(pipeline, reading, entries[-1]))
    if recompute and not damaged:
        yield from _recomputed(pipeline, reading, entries[-1], engine)


def _ledger_faults(pipeline: LoadedPipeline, entries: list[Entry]) -> Iterator[Row]:
    """Violations of the chain of entries and of its end."""
    yield from (_answer("ledger", epoch=fault.epoch, detail=f"{fault.kind}: {fault.detail}") for fault in verify_chain(entries))
    yield from (_answer("ledger", epoch=fault.epoch or None, detail=fault.detail) for fault in check_ledger_end(pipeline.state, entries))
    yield from (_answer("erasure", epoch=epoch, detail=detail) for epoch, detail in record_faults(pipeline.state, entries))


def _answer(check: str, node: str = "", epoch: int | None = None, detail: str = "") -> Row:
    return {"check": check, "node": node, "epoch": epoch, "verdict": "violation" if detail else "ok", "detail": detail}


def _versions(reading: Snapshot, head: Entry) -> Iterator[Row]:
    """Every table that the ledger names is there, and that version of it is what the run committed."""
    for path, version in sorted(head.tables.items()):
        try:
            ChangelogTable(f"{reading.state.root}/{path}").check(version, head.marks.get(path, ""))
        except StorageError as problem:
            yield _answer("table", path, detail=problem.reason)


Shapes = Sequence[tuple[Mapping[str, str], Sequence[int]]]
"""The columns that a node's table had, the present ones first, and the epochs in which it had them."""


def _shapes(node: CommittedNode, entries: Sequence[Entry]) -> Shapes:
    found: dict[tuple[tuple[str, str], ...], list[int]] = {tuple(node.columns().items()): []}
    for entry in entries:
        if node.name in entry.plan:
            found.setdefault(tuple(CommittedNode.of(node.name, entry.plan[node.name]).columns().items()), []).append(entry.epoch)
    return [(dict(columns), epochs) for columns, epochs in found.items()]


def _table(reading: Snapshot, node: CommittedNode, head: Entry, shapes: Shapes) -> Iterator[Row]:
    """Fold: a key has 0 or 1 live rows. Pairing: a retraction equals the row that it retracts. Counts: as in the ledger."""
    place, version = f"{reading.state.root}/changelog/{node.name}", head.tables.get(f"changelog/{node.name}")
    tables = [ChangelogTable(place, columns, pinned=version) for columns, _ in shapes]
    if not tables[0].exists():
        yield _answer("fold", node.name, detail="the changelog table is missing")
        return
    try:
        tallies = [_tally(reading, table.read(reading.engine, at=head.epoch)) for table in tables]
    except engine_failures(StorageError) as problem:
        yield _answer("fold", node.name, detail=f"version {version} of the table cannot be read: {first_line(problem)}")
        return
    if len(shapes) > 1:  # a retraction has the columns of its own epoch
        unlike = [row for rows, (_, epochs) in zip(tallies, shapes, strict=True) for row in rows if row["_epoch"] in epochs]
    else:
        unlike = tallies[0]
    yield from _judged(node, "fold", tallies[0], "surplus", "keys with more than one live row, or none to take back")
    yield from _judged(node, "pairing", unlike, "unlike", "retractions that differ from the row they take back")
    yield _conserved(node, head, sum(row["net"] or 0 for row in tallies[0]))


def _tally(reading: Snapshot, rows: DataFrame) -> list[Row]:
    """By epoch: op rows after which a key has not 0 or 1 rows, retractions that differ from the retracted row, and the net number of rows."""
    marked = _steps(rows)
    same = alike(F.col("__before"), F.col("__print"), len(parts(rows, image_columns(rows))))
    surplus, unlike = ~F.col("__count").isin(0, 1), is_negative(F.col("_op")) & ~same
    counts = {"surplus": F.sum(surplus.cast("int")), "unlike": F.sum(unlike.cast("int")), "net": F.sum(weight(F.col("_op")))}
    tally = marked.groupBy("_epoch").agg(*(count.alias(name) for name, count in counts.items()))
    return list(reading.engine.to_arrow(tally.orderBy("_epoch")).to_pylist())


def _judged(node: CommittedNode, check: str, tally: Sequence[Row], kind: str, detail: str) -> Iterator[Row]:
    """The answers of a check of a table: how many op rows of each epoch are wrong."""
    found = [(row["_epoch"], row[kind]) for row in tally if row[kind]]
    yield from (_answer(check, node.name, epoch, f"{number} {detail}") for epoch, number in found)
    if not found:
        yield _answer(check, node.name)


def _steps(rows: DataFrame) -> DataFrame:
    """Each op row with the number of live rows of its key after it, its image's print and that of the row before it."""
    order = Window.partitionBy("_key").orderBy("_epoch", weight(F.col("_op")))
    marked = rows.select("_epoch", "_op", "_key", fingerprint(rows, image_columns(rows)).alias("__print"))
    count = F.sum(weight(F.col("_op"))).over(order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return marked.withColumns({"__count": count, "__before": F.lag("__print").over(order)})


def _conserved(node: CommittedNode, head: Entry, live: int) -> Row:
    """The live rows, rejects among them, are as many as the ledger counted."""
    counts = head.nodes.get(node.name, {})
    counted = counts.get("live", 0) + counts.get("rejected_live", 0)
    return _answer("counts", node.name, detail="" if live == counted else f"{live} live rows, the ledger says {counted}")


def _recomputed(pipeline: LoadedPipeline, reading: Snapshot, head: Entry, engine: EngineOptions) -> Iterator[Row]:
    """Compare every node's live rows with a batch run over the live source rows."""
    for name, differing, untold in recomputed(pipeline, reading, head, engine):
        if untold:
            yield {**_answer("recompute", name), "detail": f"not compared: {untold}"}
        else:
            yield _answer("recompute", name, detail=f"{differing} rows differ from a batch run over the source rows that stand" if differing else "")
