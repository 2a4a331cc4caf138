"""`errata dlq`: rejected and suppressed records, by record and by correlation group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import polars as pl

from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.inspect.row_keys import key_columns
from errata.inspect.snapshot import Snapshot
from errata.plan.correlation import key_fields
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Plan
from errata.rollback.attribution import CORRELATED, ROLLED_BACK
from errata.rollback.dead_letters import COLUMNS, FIELD, field_of, rejecting_nodes, rejects_at, source_columns

Row = Mapping[str, Any]
ENTRIES = ("source", "file", "row", "category", "detail", "stage", "route", "trigger", "epoch")
"""The columns of an entry before its source fields."""
GROUPS = ("group", "source", "records", "triggers", "collateral", "trigger", "category", "stage", "detail")
"""The columns of a suppressed group."""


def rejects_of(reading: Snapshot) -> pl.DataFrame:
    """All live rejects after the last epoch. Raises Usage where an edit since then changed the kind of the records' keys."""
    if reading.head is None or reading.plan is None:
        return pl.DataFrame(schema=COLUMNS)
    try:
        return rejects_at(reading.head, reading.plan, reading.state, reading.engine, rejecting_nodes(reading.head, reading.plan))
    except ValueError as error:
        raise Usage("the pipeline was edited since its last run so that records have other keys", help="run it first") from error


def entries(reading: Snapshot) -> Iterator[Row]:
    """One row an entry of the DLQ: where the record came from, what is said of it, its source fields."""
    rejects = rejects_of(reading)
    told = [pl.col(name).fill_null("") if name in ("source", "file") else pl.col(name) for name in ENTRIES]
    told += [pl.col("raw")] if (rejects["raw"] != "").any() else []
    names = {one.meta.output_name() for one in told}
    fields = [name for name in (source_columns(reading.plan, rejects) if reading.plan else ()) if name not in names]
    yield from rejects.select(*told, *(field_of(rejects, name).alias(name) for name in fields)).iter_rows(named=True)


def groups(reading: Snapshot) -> Iterator[Row]:
    """One row a suppressed group: its key, its source, the record or row that failed first and why, and how many records are suppressed."""
    failed = pl.col("category") != CORRELATED
    first = {name: pl.coalesce(pl.col(name).filter(failed).first(), pl.col(name).first()).alias(name) for name in ("category", "stage", "detail")}
    told = (
        pl.len().alias("records"), failed.sum().alias("triggers"), (~failed).sum().alias("collateral"),
        pl.coalesce(_place().filter(failed).first(), pl.col("by").first().str.extract("^([^:]*)")).alias("trigger"), *first.values(),
    )  # fmt: skip
    found = _grouped(rejects_of(reading), reading.plan).group_by("source", "group", "text", maintain_order=True).agg(*told)
    yield from found.select(pl.col("text").alias("group"), *GROUPS[1:]).iter_rows(named=True)


def _place() -> pl.Expr:
    """File and row of a record, of a row of a table the file alone."""
    return pl.concat_str("file", pl.col("row").cast(pl.String), separator=":", ignore_nulls=True)


def _grouped(rejects: pl.DataFrame, plan: Plan | None) -> pl.DataFrame:
    """The suppressed records with their groups as people write them (`text`): the values of the key, an empty text as `""`; of a record without one its place.

    A record that its source rejected counts in the group that it took out.
    """
    rolled_back = rejects.filter(pl.col("by") != "", pl.col("source").is_not_null())
    group = pl.struct("source", "group")
    read_badly = (pl.col("node") == pl.col("source")) & group.is_in(rolled_back.select(group=group)["group"].implode())
    suppressed = rejects.filter(pl.col("source").is_not_null(), (pl.col("by") != "") | (pl.col("group").is_not_null() & read_badly))
    found = [suppressed.clear().with_columns(text=pl.lit(""))]
    for node in plan.of_kind("source") if plan else ():
        values = [field_of(suppressed, name).replace("", '""') for name in key_fields(node)] or [pl.lit("")]
        text = pl.when(pl.col("group").is_null()).then(_place()).otherwise(pl.concat_str(values, separator=","))
        found.append(suppressed.filter(pl.col("source") == node.name).with_columns(text=text))
    return pl.concat(found)


@dataclass(frozen=True, slots=True)
class Trigger:
    """Rejects that have one reason at one place.

    Attributes:
        stage: The node that failed.
        category: The kind of failure; `correlated` where only records that were rolled back for it are left.
        detail: The reason.
        records: Entries that failed themselves.
        collateral: Records that were rolled back with a failed one.
        groups: The number of suppressed groups among them.
    """

    stage: str
    category: str
    detail: str
    records: int
    collateral: int
    groups: int

    @property
    def name(self) -> str:
        """A short name of place and reason, the same in every epoch."""
        return blake2b(f"{self.stage}\0{self.detail}".encode("utf-8", "replace"), digest_size=8).hexdigest()


class Letters:
    """The dead letter queue for triage: its triggers, most records first, and the entries of each. Without a plan only their number is known."""

    def __init__(self, reading: Snapshot) -> None:
        self.plan = reading.plan
        rejected = int(reading.head.counters.get("rejected", 0)) if reading.head else 0
        rejects = rejects_of(reading) if rejected else pl.DataFrame(schema=COLUMNS)  # without rejects no engine is asked
        known = _grouped(rejects, reading.plan).select("node", "key", "text").unique(["node", "key"])
        detail = pl.col("detail").fill_null("").str.strip_prefix(ROLLED_BACK)
        self._rejects = rejects.join(known, ["node", "key"], how="left", maintain_order="left").with_columns(pl.col("stage").fill_null(""), why=detail)
        self.total = rejects.height if reading.plan is not None else rejected
        self.triggers = self._found()

    def _found(self) -> list[Trigger]:
        failed = pl.col("category") != CORRELATED
        told = (
            pl.coalesce(pl.col("category").filter(failed).first(), pl.col("category").first()), failed.sum().alias("records"), (~failed).sum().alias("collateral"),
            pl.col("text").drop_nulls().n_unique().alias("groups"),
        )  # fmt: skip
        found = self._rejects.group_by("stage", "why", maintain_order=True).agg(*told)
        ordered = found.sort(pl.col("records") + pl.col("collateral"), descending=True, maintain_order=True)
        return [Trigger(row["stage"], row["category"], row["why"], row["records"], row["collateral"], row["groups"]) for row in ordered.iter_rows(named=True)]

    def of(self, trigger: Trigger, start: int, most: int) -> list[Row]:
        """Some entries of a trigger, its own failures first: source, file, row, category, detail, epoch, raw, the group (`text`), and `fields` of the source record."""
        rows = self._rejects.filter(pl.col("stage") == trigger.stage, pl.col("why") == trigger.detail)
        ordered = rows.sort(pl.col("category") == CORRELATED, maintain_order=True).slice(start, most)
        names = [name for name in ordered.columns if name.startswith(FIELD)]
        shown = ("source", "file", "row", "category", "detail", "epoch", "raw", "text")
        return [
            {**{name: row[name] for name in shown}, "fields": {name.removeprefix(FIELD): row[name] for name in names if row[name] is not None}}
            for row in ordered.iter_rows(named=True)
        ]

    def key_columns(self, source: str | None) -> tuple[str, ...] | None:
        """The columns that name a source's records; None where only all of them do."""
        return key_columns(self.plan, self.plan[source]) if self.plan is not None and source is not None and source in self.plan.nodes else None


def require_suppressed(pipeline: LoadedPipeline, group: str) -> None:
    """Raise Usage unless a correlation group of this name is suppressed."""
    reading = Snapshot(pipeline.name, pipeline.state, pipeline.plan)
    known = _grouped(rejects_of(reading), pipeline.plan)["text"].unique(maintain_order=True).to_list()
    if group not in known:
        listed = ", ".join(known[:10]) or "none"
        raise Usage(f"no group '{group}' is suppressed", help=did_you_mean(group, known) or f"suppressed groups: {listed}")
