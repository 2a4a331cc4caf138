"""`errata why`: the source records behind live rows, and the changes of each.

Each operator leads the keys of its rows to the keys of its input rows, from node to node upstream. At a source the keys are
records, and its changelog has their corrections.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.lazy_imports import F, pl
from changelog.ops import SYMBOLS, Op
from changelog.rows import Rows, is_null
from cxl.types.types import STRING, Kind, Type
from cxl.values.dynamic import canonical
from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.inspect.corrections import applied_to, marks_of
from errata.inspect.dlq import rejects_of
from errata.inspect.snapshot import Snapshot
from errata.plan.plan import Node, Plan
from errata.rollback.dead_letters import FIELD
from errata.rollback.record_locations import Places, SourceState
from errata.state.committed_node import CommittedNode
from errata.state.node_tables import Tables, qualify_input, visible_rows
from operators.core.provenance import ASKER
from operators.core.row_type import by_value, physical_type
from operators.core.run_values import RunValues
from storage.values.decimals import DIGITS, DecimalType, plain_digits, unscaled, value_at
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import Column

Row = Mapping[str, Any]


def why(reading: Snapshot, name: str, conditions: Mapping[str, str]) -> Iterator[Row]:
    """One row for each version of each source record behind the live rows that meet the conditions, by source and record.

    Below them stands one row for each correction as code that holds for these records, with the node or the source that takes it as `source`.
    Members: source, file, row (its present number in the file), epoch, op, cause, reason (of a correction), live,
    data. Raises Usage for unknown fields, and where the pipeline is not the one that last ran.
    """
    node = reading.committed(name)
    trail = LineageWalk(reading)
    last = (reading.last, reading.last)
    live = reading.with_undeclared(node, reading.live_rows(node), last, ["_key"])
    met = live.where(_meets(node, reading.undeclared(node, last), conditions)).select("_key")
    keys = {bytes(key) for key in reading.engine.to_arrow(met).column("_key").to_pylist()}
    if not keys:
        raise Usage(f"no live row of '{name}' has {', '.join(f'{field}={value}' for field, value in conditions.items())}", help=_in_dlq(reading, name, conditions))
    upstream = trail.upstream(name, keys)
    for source in trail.plan.of_kind("source"):
        if upstream.get(source.name):
            yield from record_versions(trail, source.name, upstream[source.name])
    for corrected in trail.plan:
        if upstream.get(corrected.name):
            yield from applied_corrections(trail, corrected, upstream[corrected.name])


def live_matches(reading: Snapshot, name: str, conditions: Mapping[str, str], most: int) -> list[tuple[str, Row]]:
    """Return the first live rows that meet the conditions, by key in hexadecimal. Raises Usage for unknown fields."""
    node = reading.committed(name)
    found = reading.live_rows(node).where(_meets(node, {}, conditions)).orderBy("_key").limit(most)
    rows = dictionaries(reading.engine.to_arrow(found.select("_key", *map(column, node.shown))))
    return [(bytes(row["_key"]).hex(), node.values(row)) for row in rows]


def _in_dlq(reading: Snapshot, name: str, conditions: Mapping[str, str]) -> str:
    """Where to look for a row of a node that does not stand: the dead letter queue where records of its sources are in it, those with the values that were asked for before others."""
    assert reading.plan is not None  # nothing else has the trail
    above = pl.col("source").is_in(sorted(reading.plan.sources_of(name))) | pl.col("source").is_null()
    rejects = rejects_of(reading).filter(above)
    if not rejects.height:
        return f"errata show PIPELINE {name} lists the live rows; a value is compared whole"
    matching = [pl.col(FIELD + name) == text if FIELD + name in rejects.columns else pl.lit(False) for name, text in conditions.items()]
    alike = rejects.filter(*matching).height
    count, which = (alike, " of these values") if alike else (rejects.height, "")
    subject = f"1 record{which} is" if count == 1 else f"{count:,} records{which} are"
    return f"{subject} rejected or rolled back: errata dlq lists them and says why"


def _meets(node: CommittedNode, undeclared: Mapping[str, str], conditions: Mapping[str, str]) -> Column:
    """The condition that each field has its value; an empty value stands for null and empty text, undeclared fields are texts."""
    found, known = F.lit(True), dict.fromkeys([*node.data, *undeclared], STRING) | dict(node.data)
    for name, text in conditions.items():
        if name not in known:
            raise Usage(f"node '{node.name}' has no field '{name}'", help=did_you_mean(name, list(known)) or f"its fields: {', '.join(known)}")
        found = found & value_is(column(name), known[name], text)
    return found


def value_is(value: Column, type_: Type, text: str) -> Column:
    """Whether a column has the value that a text says; empty text is null or empty. A text among dynamic values may be given without its quotes."""
    kind = physical_type(type_)
    if type_.is_dynamic:
        same = value.isin(text, json.dumps(text, ensure_ascii=False))
        if _NUMBER.fullmatch(text):
            same = same | (by_value(value, replace(type_, holds_decimals=True)) == _among_decimals(text))
        return F.coalesce(same, F.lit(not text))
    if not text:
        return value.isNull() | (value.cast("string") == "")
    given = _decimal(text, type_.scale) if type_.kind is Kind.DECIMAL else F.lit(text).try_cast(kind)
    return F.coalesce(F.isnan(value) & F.isnan(given) | (value == given) if kind == "double" else value == given, F.lit(False))


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def _among_decimals(text: str) -> str:
    """A number as `by_value` spells it in a column that holds Decimals."""
    return str(canonical(Decimal(text)))


def _decimal(text: str, scale: int) -> Column:
    """The decimal of a cell; null for a text that is none of this scale, which no value equals."""
    found = unscaled(text, DecimalType(DIGITS, scale))
    return F.lit(None if found is None else plain_digits(value_at(found, scale))).cast(f"decimal({DIGITS},{scale})")


class LineageWalk:
    """The way from a node's rows up to the sources."""

    def __init__(self, reading: Snapshot) -> None:
        self.reading = reading
        self.engine = reading.engine
        self.plan, self.values = _planned(reading)
        self.tables = Tables(reading.state.root, self.plan)

    def upstream(self, name: str, keys: set[bytes]) -> dict[str, set[bytes]]:
        """The keys of rows behind rows of a node, by node: the node itself, and all above it up to the sources."""
        wanted: dict[str, set[bytes]] = {name: keys}
        reads: dict[str, frozenset[str]] = {}
        for node in reversed([*self.plan.upstream(name), self.plan[name]]):
            if node.name not in wanted or node.is_source:
                continue
            needed = reads.get(node.name, frozenset()) | node.operator.reads_source()
            for (above, _), found in zip(node.inputs, self._above(node, wanted[node.name], needed), strict=True):
                wanted.setdefault(above, set()).update(found)
                reads[above] = reads.get(above, frozenset()) | needed
        return wanted

    def places(self, source: str, records: Mapping[bytes, Row]) -> dict[bytes, tuple[str, int | None]]:
        """File and present row number, from 1, of source records. `records`: by key the newest version of each, with its hidden columns."""
        head = self.reading.head
        assert head is not None  # a row of it stands
        known = pl.DataFrame([(row.get("_file"), row.get("_row")) for row in records.values()], schema={"file": pl.String, "row": pl.Int64}, orient="row")
        places = Places(self.plan, self.tables, self.engine, self.values, SourceState.left(head, self.plan), head.epoch)
        found = places.of(source, pl.Series(list(records), dtype=pl.Binary), known)
        return {key: (file or "", row) for key, (file, row) in zip(records, found.select("file", "row").iter_rows(), strict=True)}

    def _above(self, node: Node, keys: set[bytes], reads: frozenset[str]) -> Iterable[set[bytes]]:
        rows = self.live(node, self.reading.last).as_frame().join(self.reading.engine.keys_frame(keys), "_key", "left_semi").withColumn(ASKER, F.lit(b""))
        inputs = [qualify_input(visible_rows(self.live(self.plan[name], self.reading.last), self.plan[name], port, node), node, at).as_frame() for at, (name, port) in enumerate(node.inputs)]
        for found in node.as_operator.origins(rows, inputs, self.values, reads):
            yield {bytes(key) for key in self.engine.to_arrow(found).column("_key").to_pylist()}

    def live(self, node: Node, at: int) -> Rows:
        """The live rows of a node at an epoch, without rejects."""
        rows = self.tables.live(self.engine, node, self.values, at=at).without("_epoch")
        return rows.where(is_null("_error")) if "_error" in rows.columns else rows


def _planned(reading: Snapshot) -> tuple[Plan, RunValues]:
    """The plan, if it is the one that last ran: what leads rows back is its logic."""
    if reading.plan is None:
        raise Usage("the pipeline file cannot be planned, so nothing says how its rows came about")
    changed = [name for name, kept in (reading.head.plan if reading.head else {}).items() if not _same(reading.plan, name, kept)]
    if changed:
        raise Usage(f"the pipeline is not the one of epoch {reading.last}: {', '.join(changed)} changed", help="run it first")
    return reading.plan, reading.values()


def _same(plan: Plan, name: str, kept: Mapping[str, Any]) -> bool:
    return name in plan.nodes and plan[name].fingerprint() == kept["fingerprint"]


def record_versions(trail: LineageWalk, source: str, keys: set[bytes]) -> Iterator[Row]:
    """The versions of source records in order, with the place of each record."""
    reading = trail.reading
    node = reading.committed(source)
    kept = [name for name in ("_file", "_row") if name in node.hidden]
    rows = reading.op_rows(node).join(reading.engine.keys_frame(keys), "_key", "left_semi").where(F.col("_op") != int(Op.CORRECT_FROM))
    table = reading.engine.to_arrow(rows.select("_epoch", "_op", "_key", "_cause", *kept, *map(column, node.data)))
    found = sorted(dictionaries(table), key=lambda row: (bytes(row["_key"]), row["_epoch"], row["_op"]))
    newest = {bytes(row["_key"]): row for row in found}
    places = trail.places(source, newest)
    reasons = reading.reasons()
    for row in found:
        key = bytes(row["_key"])
        file, number = places[key]
        yield {
            "source": source, "file": file, "row": number, "epoch": row["_epoch"], "op": SYMBOLS[Op(row["_op"])], "cause": row["_cause"],
            "reason": reasons.get(row["_epoch"], "") if row["_cause"] == "correction" else "", "live": row is newest[key],
            "data": node.values(row),
        }  # fmt: skip


def applied_corrections(trail: LineageWalk, node: Node, keys: set[bytes]) -> Iterator[Row]:
    """The corrections as code that hold for rows of a corrections node, or of a source that takes corrections; none of other nodes."""
    name = marks_of(node)
    if name is None:
        return
    rows = trail.live(node, trail.reading.last).as_frame().join(trail.engine.keys_frame(keys), "_key", "left_semi").select(name).distinct()
    for one in applied_to(trail.reading, node, trail.engine.to_arrow(rows).column(name).to_pylist()):
        content, entry = one.content(), one.written.entry
        by = ", ".join(note for note in (entry.author, entry.ticket) if note)
        data = {**content["key"], "column": one.column, "from": content["from"], "to": content["to"]}
        yield {
            "source": node.name, "file": one.written.file, "row": one.written.line, "epoch": None, "op": "", "cause": "correction",
            "reason": f"{entry.reason} ({by})" if by else entry.reason, "live": True, "data": data,
        }  # fmt: skip
