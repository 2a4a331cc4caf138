"""From rejects back to what they roll back: the source record behind a key, or all records behind the row of an aggregate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import polars as pl

from changelog.keys.decode import KeyBytes, bare_keys
from changelog.keys.encoding import bare
from changelog.lazy_imports import F, pa
from errata.plan.correlation import key_fields
from errata.plan.plan import Node, Plan
from errata.rollback.categories import GROUP_REJECT, LATE
from errata.state.run_state import RunState
from errata.state.suppressed_rows import IS_SUPPRESSED
from operators.aggregate.operator import Aggregate
from operators.combine.operator import Combine
from operators.core.row_type import KeyShape


@dataclass(frozen=True, slots=True)
class Lead:
    """The record of a source behind a key, or (`grouped`) the row of an aggregate; `key` is its key there."""

    node: str
    key: bytes
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A reject of a node: its key there, its error, and what it leads back to."""

    node: str
    key: bytes
    error: Mapping[str, Any]
    lead: Lead


@dataclass(slots=True)
class Leads:
    """Follows rejects upstream while a run is under way."""

    run: RunState
    plan: Plan

    def failures(self, node: Node) -> Iterator[Failure]:
        """The live rejects of a node that lead back to something, by key; records that are suppressed already or came late are passed over."""
        rejects = self.run.tables.rejects(self.run.engine, node)
        return self.of_rows(node, (rejects.where(~IS_SUPPRESSED) if node.is_source else rejects).as_table())

    def of_rows(self, node: Node, rejects: pa.Table) -> Iterator[Failure]:
        """The same of rejects that a node would keep (`_key`, `_error`)."""
        table = rejects.select(["_key", "_error"]).sort_by("_key")
        errors = list(_errors(table.column("_error")))
        found = leads_of_rejects(node, pl.Series(table.column("_key")), pl.Series([is_group_reject(error) for error in errors], dtype=pl.Boolean))
        for key, error, lead in zip(table.column("_key").to_pylist(), errors, _each(found), strict=True):
            if lead is not None and error.get("category") != LATE:
                yield Failure(node.name, key, error, lead)

    def resolved(self, failures: Sequence[Failure]) -> tuple[dict[str, dict[bytes, Failure]], list[Failure]]:
        """The source records that failures roll back, each with its first failure, by source; and the failures that are rows of aggregates.

        What leads to records of a source without a key stays a reject of its own, unless it does so through an aggregate that reads
        correlated records.
        """
        records: dict[str, dict[bytes, Failure]] = {}
        grouped: list[Failure] = []
        for one in failures:
            if one.lead.grouped:
                grouped += [one] if self._is_correlated(one.lead.node) else []
            elif key_fields(self.plan[one.lead.node]):
                records.setdefault(one.lead.node, {}).setdefault(one.lead.key, one)
        behind = {(one.lead.node, one.lead.key): one for one in reversed(grouped)}
        for lead, failure in self.contributors(behind):
            records.setdefault(lead.node, {}).setdefault(lead.key, failure)
        return records, grouped

    def _is_correlated(self, aggregate: str) -> bool:
        return any(key_fields(self.plan[name]) for name in self.plan.sources_of(aggregate))

    def contributors(self, behind: Mapping[tuple[str, bytes], Failure]) -> Iterator[tuple[Lead, Failure]]:
        """The source records behind rows of aggregates, through any number of aggregates."""
        work, seen = dict(behind), set(behind)
        while work:
            name = next(iter(work))[0]
            groups = {key: work.pop((node, key)) for node, key in list(work) if node == name}
            for lead, failure in self._members(self.plan[name], groups):
                if not lead.grouped:
                    yield lead, failure
                elif (lead.node, lead.key) not in seen:
                    seen.add((lead.node, lead.key))
                    work[lead.node, lead.key] = failure

    def builds(self, node: Node, failures: Sequence[Failure]) -> Iterator[Failure]:
        """The build rows that failed rows of a combine met, each as a failure that leads to them."""
        operator = cast("Combine", node.operator)
        lookups = {bare(one.key) for one in failures if one.key[0] == operator.driver}
        if not lookups:
            return
        run = self.run
        asked = run.engine.keys_frame(lookups, "_lookup")
        inputs = [run.live_input(node, at) for at in range(len(node.inputs))]
        for at, keys in operator.builds_of(asked, inputs, run.values_of(node)).items():
            found = leads_of(operator.inputs[at].key, pl.Series(run.engine.to_arrow(keys).column("_key")))
            yield from (replace(failures[0], lead=lead) for lead in _each(found) if lead is not None)

    def _members(self, node: Node, groups: Mapping[bytes, Failure]) -> Iterator[tuple[Lead, Failure]]:
        """The records or rows behind the input rows of an aggregate's groups."""
        run = self.run
        wanted = run.engine.keys_frame(groups, "_lookup")
        members = cast("Aggregate", node.operator).members(run.live_input(node, 0), run.values_of(node))
        found = members.select("_key", "_lookup").join(F.broadcast(wanted), "_lookup", "left_semi")
        table = run.engine.to_arrow(found.select("_key", "_lookup")).sort_by([("_lookup", "ascending"), ("_key", "ascending")])
        leads = leads_of(node.operator.inputs[0].key, pl.Series(table.column("_key")))
        for lead, group in zip(_each(leads), table.column("_lookup").to_pylist(), strict=True):
            if lead is not None:
                yield lead, groups[group]


def _errors(column: pa.ChunkedArray) -> Iterator[Mapping[str, Any]]:
    """The errors of rejected rows; the members of a group share one text, which is read once."""
    read: dict[str, Mapping[str, Any]] = {}
    for text in column.to_pylist():
        if text not in read:
            read[text] = json.loads(text)
        yield read[text]


def _each(leads: pl.DataFrame) -> Iterator[Lead | None]:
    """The leads of keys one by one, None where nothing is behind one."""
    return (None if node is None else Lead(node, key, grouped) for node, key, grouped in leads.iter_rows())


LEADS = {"lead": pl.String, "record": pl.Binary, "grouped": pl.Boolean}
"""The columns of a lead: the node, the key there, and whether it is a row of an aggregate; all null where nothing is behind a key."""


def leads_of(shape: KeyShape, keys: pl.Series) -> pl.DataFrame:
    """The records or the aggregates' rows inside keys of a shape, a row of `LEADS` each."""
    if shape.kind == "merge":
        return _by_part(shape, keys)
    if shape.parts:
        return leads_of(shape.parts[0], keys)
    if not shape.source or not len(keys):
        return pl.DataFrame({name: [None] * len(keys) for name in LEADS}, schema=LEADS)
    found = pl.DataFrame({"key": keys, "end": _own_ends(shape, KeyBytes.of(keys))})
    lead, grouped = pl.lit(shape.source).alias("lead"), pl.lit(shape.kind == "group").alias("grouped")
    return found.select(lead, pl.col("key").bin.slice(0, pl.col("end")).alias("record"), grouped)


def _by_part(shape: KeyShape, keys: pl.Series) -> pl.DataFrame:
    """The first byte of a key chooses the shape of the rest."""
    rows = pl.DataFrame({"key": keys}).with_row_index("at").with_columns(part=pl.col("key").bin.head(1), key=pl.col("key").bin.slice(1))
    found = [pl.DataFrame(schema={"at": pl.UInt32, **LEADS})]
    for number, part in enumerate(shape.parts):
        own = rows.filter(pl.col("part") == bytes([number]))
        found.append(own.select("at").hstack(leads_of(part, own["key"])))
    return rows.select("at").join(pl.concat(found), on="at", how="left", maintain_order="left").drop("at")


def _own_ends(shape: KeyShape, keys: KeyBytes) -> pl.Series:
    """Where the key of the record (or of the group) at the head of each key ends; other operators may have put more behind it."""
    if shape.types is not None:
        return pl.Series(keys.value_ends(keys.start(), shape.types))
    return pl.Series(keys.label_ends(keys.label_ends(keys.start() + 1)))


def leads_of_rejects(node: Node, keys: pl.Series, of_groups: pl.Series) -> pl.DataFrame:
    """The leads of a node's rejects. An aggregate rejects records, and groups that cannot be finalized (`of_groups`)."""
    plain = bare_keys(keys)
    if node.is_source:
        return pl.DataFrame({"lead": [node.name] * len(keys), "record": plain, "grouped": [False] * len(keys)}, schema=LEADS)
    if not of_groups.any():
        return leads_of(node.operator.reject_shape, plain)
    rows = pl.DataFrame({"key": plain, "group": of_groups}).with_row_index("at")
    found = []
    for shape, own in ((node.operator.output.key, rows.filter("group")), (node.operator.reject_shape, rows.filter(~pl.col("group")))):
        found.append(own.select("at").hstack(leads_of(shape, own["key"])))
    return pl.concat(found).sort("at").drop("at")


def branches(plan: Plan, node: Node, keys: pl.Series) -> pl.Series:
    """`branch_of` each of many keys: it reads no more of a key than a byte for each merge and combine, and few keys differ in these."""
    heads = keys.bin.head(sum(one.operator.joins_inputs for one in (node, *plan.upstream(node.name))))
    known = {head: branch_of(plan, node, head) for head in heads.unique().to_list()}
    return heads.replace_strict(list(known), list(known.values()), return_dtype=pl.String) if known else pl.Series([], dtype=pl.String)


def branch_of(plan: Plan, node: Node, key: bytes) -> str:
    """The branch of the nearest route above a node through which a row of this key came; empty where there is none."""
    rejecting = True
    while node.inputs:
        index, key = node.operator.input_of(key, reject=rejecting)
        name, port = node.inputs[index]
        if plan[name].operator.ports():
            return port or ""
        node, rejecting = plan[name], False
    return ""


def is_group_reject(error: Mapping[str, Any]) -> bool:
    """Whether a whole group was rejected, not one of its records."""
    return error.get("category") == GROUP_REJECT
