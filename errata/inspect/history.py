"""Histories of nodes and rows, epoch by epoch, from the ledger and the Delta files. An engine is asked only about nodes without a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from itertools import islice
from typing import Any

from changelog.columns import EPOCH, column
from changelog.lazy_imports import pa, pc, pl
from changelog.ops import NEGATIVE, Changed
from cxl.types.types import Kind, Type
from errata.core.options import LogFilter
from errata.inspect.row_keys import figure_columns, figures
from errata.inspect.snapshot import OP_SYMBOLS, Snapshot
from errata.state.committed_node import CommittedNode, paired, shown_value
from storage.delta.scan import Within
from storage.state.entry import Entry
from storage.values.python_rows import dictionaries

Row = Mapping[str, Any]
MOST_ROWS = 1_000_000
"""The op rows of one node in one epoch up to which causes are counted and changes come in the order of their keys."""
_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class RowChange:
    """The change of one row in an epoch. `key` is hexadecimal; `before` or `after` is None where there is no row."""

    epoch: int
    cause: str
    key: str
    before: Row | None
    after: Row | None

    @property
    def op(self) -> str:
        """`+A` for a row that came, `-R` for one that went, `+C` for one that changed."""
        return "+A" if self.before is None else "-R" if self.after is None else "+C"


@dataclass(frozen=True, slots=True)
class EpochFigures:
    """The changes of the totals of a node in an epoch: the changed columns of numbers before and after it."""

    epoch: int
    added: int
    removed: int
    corrected: int
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Known:
    """The results of reading epochs that no longer change: causes by node and epoch, figures by node."""

    causes: dict[tuple[str, int], Mapping[str, int]] = field(default_factory=dict)
    figures: dict[str, tuple[EpochFigures, ...]] = field(default_factory=dict)


class History:
    """Looks into the committed epochs of one snapshot.

    Args:
        reading: The snapshot.
        known: What an earlier history of the same chain of epochs has read.
    """

    def __init__(self, reading: Snapshot, known: Known | None = None) -> None:
        self.reading = reading
        self.known = known or Known()

    @property
    def base(self) -> int:
        """The epoch to which older ones were folded; 1 where none were."""
        head = self.reading.head
        return max(1, int(head.counters.get("base", 1))) if head else 1

    def runs(self) -> Sequence[Entry]:
        """The entries of epochs, oldest first, without maintenance."""
        return [entry for entry in self.reading.entries if not entry.maintains]

    @property
    def names(self) -> list[str]:
        """The committed nodes, each after its inputs, then nodes that the pipeline no longer has."""
        nodes, plan = self.reading.nodes, self.reading.plan
        return list(dict.fromkeys([*(name for name in (plan.nodes if plan else ()) if name in nodes), *nodes]))

    def stored(self, name: str) -> bool:
        """Whether the op rows of a node lie in a table, so that no engine is needed. Raises Usage for a node that has not run."""
        return self.reading.committed(name).persisted

    def counts(self, name: str) -> dict[int, dict[str, int]]:
        """The op rows of a node in each epoch that changed it, by op."""
        found = {entry.epoch: {op: entry.nodes[name][op] for op in OP_SYMBOLS if entry.nodes[name].get(op)} for entry in self.runs() if name in entry.nodes}
        return {epoch: ops for epoch, ops in found.items() if ops}

    # -- causes

    def causes(self, names: Iterable[str], epochs: tuple[int, int]) -> dict[tuple[str, int], Mapping[str, int]]:
        """The op rows of some nodes in some epochs, by node, epoch and kind of cause (`rollback`, not `rollback:orders:7`).

        Left out are nodes without a table, folded epochs, and epochs with more than `MOST_ROWS` op rows of the node.
        """
        found = {}
        for name in names:
            changed = [epoch for epoch, ops in self.counts(name).items() if epochs[0] <= epoch <= epochs[1] and self.base <= epoch and sum(ops.values()) <= MOST_ROWS]
            self._read_causes(name, [epoch for epoch in changed if (name, epoch) not in self.known.causes])
            found.update({(name, epoch): self.known.causes[name, epoch] for epoch in changed if (name, epoch) in self.known.causes})
        return found

    def _read_causes(self, name: str, epochs: Sequence[int]) -> None:
        node = self.reading.nodes.get(name)
        if node is None or not node.persisted or not epochs:
            return
        rows = _accepted(self.reading.table(node).part_arrow({EPOCH, "_cause", "_error"}, Within(EPOCH, min(epochs), max(epochs), epochs)))
        kinds = pc.list_element(pc.split_pattern(rows.column("_cause"), ":", max_splits=1), 0)
        counts = pa.table({EPOCH: rows.column(EPOCH), "kind": kinds}).group_by([EPOCH, "kind"]).aggregate([([], "count_all")])
        found: dict[int, dict[str, int]] = {epoch: {} for epoch in epochs}
        for row in counts.to_pylist():
            found[row[EPOCH]][row["kind"]] = row["count_all"]
        self.known.causes.update({(name, epoch): kinds for epoch, kinds in found.items()})

    # -- figures

    def figures(self, name: str) -> Sequence[EpochFigures]:
        """The totals of a node before and after each epoch that changed it, oldest first, from the base on."""
        node = self.reading.committed(name)
        done = self.known.figures.get(name, ())
        read = done[-1].epoch if done else 0
        if node.persisted and max(self.counts(name), default=0) > read:
            self.known.figures[name] = done = (*done, *self._read_figures(node, read + 1, dict(done[-1].after) if done else {}))
        return done

    def _read_figures(self, node: CommittedNode, first: int, totals: dict[str, Any]) -> Iterator[EpochFigures]:
        numbers = self._numbers(node)
        rows = _accepted(self.reading.table(node).part_arrow({EPOCH, "_op", "_error", *numbers}, Within(EPOCH, first, self.reading.last)))
        wide = {f"n{at}": _wide(rows.column(name), type_) for at, (name, type_) in enumerate(numbers.items())}
        groups = pa.table({EPOCH: rows.column(EPOCH), "_op": rows.column("_op"), **wide}).group_by([EPOCH, "_op"])
        sums = groups.aggregate([([], "count_all"), *((name, "sum") for name in wide)]).to_pylist()
        by_epoch: dict[int, list[dict[str, Any]]] = {}
        for row in sums:
            by_epoch.setdefault(row[EPOCH], []).append(row)
        for epoch in sorted(by_epoch):
            found = by_epoch[epoch]
            ops = {row["_op"]: row["count_all"] for row in found}
            before = {name: totals.get(name, 0) for name in numbers}
            for at, name in enumerate(numbers):
                totals[name] = _added(before[name], [(-1 if row["_op"] in NEGATIVE else 1, row[f"n{at}_sum"]) for row in found])
            yield EpochFigures(epoch, ops.get(0, 0), ops.get(1, 0), ops.get(3, 0), before, dict(totals))

    def _numbers(self, node: CommittedNode) -> Mapping[str, Type]:
        """The columns with totals; of a node that the pipeline no longer has, or has otherwise, the columns of numbers."""
        plan = self.reading.plan
        own = figure_columns(plan, plan[node.name]) if plan is not None and node.name in plan.nodes else None
        return {name: type_ for name, type_ in figures(node.data).items() if own is None or name in own}

    # -- rows

    def changed(self, name: str, epoch: int) -> int:
        """The number of rows of a node that an epoch changed."""
        return Changed.of(self.counts(name).get(epoch, {})).total

    def in_order(self, name: str, epoch: int) -> bool:
        """Whether the changed rows of an epoch come in the order of their keys, a part at a time. There may be too many."""
        return sum(self.counts(name).get(epoch, {}).values()) <= MOST_ROWS

    def changes(self, name: str, epoch: int, start: int = 0, most: int = 50) -> list[RowChange]:
        """Some of the rows that an epoch changed, in the order of their keys; where there are very many, the first that are found."""
        node = self.reading.committed(name)
        self.reading.known_epoch(epoch)
        if not node.persisted:
            return list(islice(self._logged(name, epoch), start, start + most))
        within = Within(EPOCH, epoch, epoch)
        table = self.reading.table(node)
        if not self.in_order(name, epoch):
            return _row_changes(_accepted(table.part_arrow(_whole(node), within, most=2 * most)), node)[:most]
        keys = pl.Series(_accepted(table.part_arrow({"_key", "_error"}, within)).column("_key"), dtype=pl.Binary).unique().sort().slice(start, most)
        if not len(keys):
            return []
        return _row_changes(_accepted(table.part_arrow(_whole(node), within, (keys[0], keys[-1]))), node)

    def _logged(self, name: str, epoch: int) -> Iterator[RowChange]:
        """The changes of a node without a table, which the engine derives."""
        kept: Row | None = None
        for row in self.reading.log(name, LogFilter(epoch=epoch)):
            if row["op"] == "-C":
                kept = row["data"]
                continue
            before = kept if row["op"] == "+C" else row["data"] if row["op"] == "-R" else None
            yield RowChange(epoch, row["cause"], row["key"], before, None if row["op"] == "-R" else row["data"])

    def row(self, name: str, key: bytes) -> list[RowChange]:
        """The changes of one row, oldest first, from the base on."""
        node = self.reading.committed(name)
        if node.persisted:
            return _row_changes(_accepted(self.reading.table(node).part_arrow(_whole(node), Within(EPOCH, 1, self.reading.last), (key, key))), node)
        engine = self.reading.engine
        rows = self.reading.op_rows(node).join(engine.keys_frame({key}), "_key", "left_semi")
        return _row_changes(engine.to_arrow(rows.select(EPOCH, "_op", "_key", "_cause", *map(column, node.shown))), node)

    def restless(self, most: int = 20) -> list[tuple[str, int, RowChange]]:
        """The rows that changed in the most epochs: the node, the number of epochs, and the row's last change. Outputs repeat other nodes and are left out."""
        found: list[tuple[int, str, bytes]] = []
        for node in self.reading.nodes.values():
            if node.kind == "output" or not node.persisted or sum(sum(ops.values()) for ops in self.counts(node.name).values()) > MOST_ROWS:
                continue
            table = self.reading.table(node).part_arrow({EPOCH, "_key", "_error"}, Within(EPOCH, self.base, self.reading.last))
            keys = pl.DataFrame(_accepted(table).select([EPOCH, "_key"])).unique().group_by("_key").len().filter(pl.col("len") > 1)
            found += [(count, node.name, key) for key, count in keys.sort("len", "_key", descending=[True, False]).head(most).iter_rows()]
        found.sort(key=lambda one: -one[0])
        return [(name, count, self.row(name, key)[-1]) for count, name, key in found[:most]]


def _whole(node: CommittedNode) -> set[str]:
    return {EPOCH, "_op", "_key", "_cause", "_error", *node.shown}


def _accepted(rows: pa.Table) -> pa.Table:
    """The rows that are no rejects."""
    return rows.filter(pc.is_null(rows.column("_error"))) if "_error" in rows.column_names else rows


def _row_changes(rows: pa.Table, node: CommittedNode) -> list[RowChange]:
    """The changes of rows, by epoch and key."""
    found: dict[tuple[int, bytes], list[dict[str, Any]]] = {}
    for row in dictionaries(rows):
        found.setdefault((row[EPOCH], bytes(row["_key"])), []).append(row)
    changes = []
    for (epoch, key), images in sorted(found.items()):
        [(before, after)] = paired(images, node)
        changes.append(RowChange(epoch, images[0]["_cause"], key.hex(), before, after))
    return changes


def _wide(values: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray:
    """Numbers whose sum does not overflow."""
    return values if type_.kind is Kind.FLOAT else values.cast(pa.decimal256(76, getattr(values.type, "scale", 0)))


def _added(total: Any, parts: Sequence[tuple[int, Any]]) -> Any:
    """A total after sums came and went; None counts as nothing."""
    for sign, part in parts:
        if isinstance(part, float) or isinstance(total, float):
            total = float(f"{float(total) + sign * float(part or 0):.12g}")
        elif part is not None:
            total = _EXACT.add(Decimal(total), _EXACT.multiply(Decimal(sign), part))
    if isinstance(total, Decimal):
        return int(total) if total == total.to_integral_value() and total.as_tuple().exponent == 0 else shown_value(total)
    return total
