"""`errata dlq`: rejected and suppressed records, by record and by correlation group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, cast

import polars as pl

from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.core.options import LetterChoice
from errata.inspect.row_keys import key_columns
from errata.inspect.snapshot import Snapshot
from errata.plan.correlation import key_fields
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Plan
from errata.rollback.attribution import ROLLED_BACK
from errata.rollback.categories import CORRELATED
from errata.rollback.dead_letters import COLUMNS, FIELD, field_of, rejecting_nodes, rejects_at, source_columns
from errata.rollback.dlq_file import ids_of
from errata.rollback.triage import triaged
from errata.state.source_files import SourceFiles, files_left, keys_in, keys_of
from errata.state.tally import Tally
from errata.state.triage_events import COLUMNS as COLUMNS_OF_EVENTS
from errata.state.triage_events import TRIAGE, events_of, no_events
from operators.core.config import microseconds
from operators.source.node import SourceNode
from storage.delta.changelog_table import ChangelogTable
from storage.state.entry import Entry

Row = Mapping[str, Any]
ENTRIES = ("source", "file", "row", "category", "detail", "stage", "route", "trigger", "epoch")
"""The columns of an entry before its source fields."""
GROUPS = ("group", "source", "records", "triggers", "collateral", "trigger", "category", "stage", "detail")
"""The columns of a suppressed group."""
TRIAGE_COLUMNS = ("id", "since", "days", "group", "assigned", "waived")
"""The columns of an entry that triage shows first: since when it is there, in whole days too, who has it, why it was waived."""


def rejects_of(reading: Snapshot) -> pl.DataFrame:
    """All live rejects after the last epoch. Raises Usage where an edit since then changed the kind of the records' keys."""
    if reading.head is None or reading.plan is None:
        return pl.DataFrame(schema=COLUMNS)
    other_keys = Usage("the pipeline was edited since its last run so that records have other keys", help="run it first")
    if any(_rekeyed(reading.head, source) for source in files_left(reading.plan, reading.head).values()):
        raise other_keys
    try:
        return rejects_at(reading.head, reading.plan, reading.state, reading.engine, rejecting_nodes(reading.head, reading.plan))
    except ValueError as error:
        raise other_keys from error


def _rekeyed(head: Entry, source: SourceFiles) -> bool:
    """Whether an edit gave the records of a source other keys than in the last epoch."""
    before = head.plan.get(source.node.name)
    return before is not None and keys_of(cast("SourceNode", source.node.operator)) != keys_in(before, source.changes.now)


def decisions_of(reading: Snapshot) -> pl.DataFrame:
    """The decisions of people about dead letters, oldest first."""
    version = reading.head.tables.get(TRIAGE) if reading.head else None
    if version is None:
        return no_events()
    return events_of(ChangelogTable(f"{reading.state.root}/{TRIAGE}", COLUMNS_OF_EVENTS, pinned=version))


def letters_of(reading: Snapshot) -> pl.DataFrame:
    """All entries with what triage knows of them.

    Beside the columns of `errata.rollback.dead_letters` and of `errata.rollback.triage.triaged` these are `id`, `since` (a time), `days`, and
    `text`, the name of the group; null where there is none.
    """
    rejects = rejects_of(reading)
    known = _grouped(rejects, reading.plan).select("node", "key", "text").unique(["node", "key"])
    letters = triaged(rejects, decisions_of(reading)).join(known, ["node", "key"], how="left", maintain_order="left")
    now = datetime.now(UTC)
    moments = {entry.epoch: entry.started for entry in reversed([one for one in reading.entries if not one.maintains])} if rejects.height else {}
    times = {epoch: moments.get(epoch, now) for epoch in rejects["epoch"].unique()}
    since = pl.col("epoch").replace_strict(times, return_dtype=pl.Datetime("us", "UTC"), default=None).alias("since")
    return letters.with_columns(ids_of(rejects, times), since).with_columns((pl.lit(now) - pl.col("since")).dt.total_days().alias("days"))


def entries(reading: Snapshot) -> Iterator[Row]:
    """One row an entry of the DLQ: where the record came from, what is said of it, its source fields. Who has it and why it was waived, where some are."""
    yield from _shown(reading, triaged(rejects_of(reading), decisions_of(reading)), [])


def triage_entries(reading: Snapshot, choice: LetterChoice) -> Iterator[Row]:
    """The chosen entries, oldest first, with what triage knows of them. Raises Usage for a name that no entry has."""
    letters = chosen(letters_of(reading), choice).sort("epoch", maintain_order=True)
    columns = [pl.col("id"), _moment("since"), pl.col("days"), pl.col("text").fill_null("").alias("group"), pl.col("assigned").fill_null(""), pl.col("waived").fill_null("")]
    yield from _shown(reading, letters, columns)


def _moment(name: str) -> pl.Expr:
    return pl.col(name).dt.to_string("%Y-%m-%dT%H:%M:%SZ").alias(name)


def _shown(reading: Snapshot, letters: pl.DataFrame, first: Sequence[pl.Expr]) -> Iterator[Row]:
    columns = [*first, *(pl.col(name).fill_null("") if name in ("source", "file") else pl.col(name) for name in ENTRIES)]
    columns += [] if first else [pl.col(name).fill_null("") for name in ("assigned", "waived") if letters[name].count()]
    columns += [pl.col("raw")] if (letters["raw"] != "").any() else []
    names = {one.meta.output_name() for one in columns}
    fields = [name for name in (source_columns(reading.plan, letters) if reading.plan else ()) if name not in names]
    yield from letters.select(*columns, *(field_of(letters, name).alias(name) for name in fields)).iter_rows(named=True)


def groups(reading: Snapshot) -> Iterator[Row]:
    """One row a suppressed group: its key, its source, the record or row that failed first and why, and how many records are suppressed.

    Where some are, also how many were waived, and who has them.
    """
    letters = triaged(rejects_of(reading), decisions_of(reading))
    extra = [name for name in ("assigned", "waived") if letters[name].count()]
    yield from _groups_of(letters, reading).select(*GROUPS, *extra).iter_rows(named=True)


def triage_groups(reading: Snapshot, choice: LetterChoice) -> Iterator[Row]:
    """The suppressed groups of the chosen entries, oldest first, with what triage knows of them. Raises Usage for a name that no entry has."""
    found = _groups_of(chosen(letters_of(reading), choice), reading).sort("since", maintain_order=True)
    yield from found.select(_moment("since"), "days", *GROUPS, "assigned", "waived").iter_rows(named=True)


def _groups_of(letters: pl.DataFrame, reading: Snapshot) -> pl.DataFrame:
    failed = pl.col("category") != CORRELATED
    first = {name: pl.coalesce(pl.col(name).filter(failed).first(), pl.col(name).first()).alias(name) for name in ("category", "stage", "detail")}
    aggregates = [
        pl.len().alias("records"), failed.sum().alias("triggers"), (~failed).sum().alias("collateral"),
        pl.coalesce(_place().filter(failed).first(), pl.col("by").first().str.extract("^([^:]*)")).alias("trigger"), *first.values(),
        pl.col("assigned").drop_nulls().unique(maintain_order=True).str.join(", ").fill_null(""), pl.col("waiver").count().alias("waived"),
    ]  # fmt: skip
    aggregates += [pl.col("since").min(), pl.col("days").max()] if "since" in letters.columns else []
    found = _grouped(letters.drop("text", strict=False), reading.plan).group_by("source", "group", "text", maintain_order=True).agg(*aggregates)
    return found.drop("group").rename({"text": "group"})


LEAST_OF_ID = 8
"""How many characters of an id are enough to name it, where no other begins with them."""


def chosen(letters: pl.DataFrame, choice: LetterChoice) -> pl.DataFrame:
    """The entries that are meant. Raises Usage for a name that no entry has, or several."""
    found = letters
    if choice.names:
        ids = set(letters["id"])
        whole = pl.col("id").is_in([name for name in choice.names if name in ids])
        found = found.filter(pl.any_horizontal(whole, *(_named(letters, name) for name in choice.names if name not in ids)))
    for name in ("source", "stage", "category", "assigned"):
        wanted = getattr(choice, name)
        if wanted is not None:
            found = found.filter(pl.col(name).fill_null("") == wanted)
    if choice.older_than is not None:
        found = found.filter(pl.col("since") <= datetime.now(UTC) - _age(choice.older_than))
    return found if choice.waived is None else found.filter(pl.col("waiver").is_not_null() == choice.waived)


def _age(text: str) -> timedelta:
    """The length of a time span. Raises Usage for another text."""
    try:
        return timedelta(microseconds=microseconds(text))
    except ValueError as error:
        raise Usage(str(error)) from error


def _named(letters: pl.DataFrame, name: str) -> pl.Expr:
    """The entries with an id, or in a group."""
    if letters["text"].eq(name).any():
        return pl.col("text").eq(name)
    matches = letters.filter(pl.col("id").str.starts_with(name.lower()))["id"] if len(name) >= LEAST_OF_ID else letters["id"].clear()
    if len(matches) != 1:
        known = letters["text"].drop_nulls().unique(maintain_order=True).to_list()
        message = f"{len(matches)} entries have ids that begin with '{name}'" if len(matches) else f"no entry has the id '{name}', and no group is called so"
        raise Usage(message, help=did_you_mean(name, known) or "errata dlq PIPELINE --triage shows the ids")
    return pl.col("id").eq(matches[0])


def history(reading: Snapshot) -> Iterator[Row]:
    """The decisions of people, newest first: when, who, what, about which record, and whether it holds for an entry now."""
    events = decisions_of(reading)
    letters = triaged(rejects_of(reading), events)
    holding = set(letters["waiver"].drop_nulls()) | set(letters["assignment"].drop_nulls())
    ended = {row["ends"]: row["action"] for row in events.iter_rows(named=True)}
    for row in events.reverse().iter_rows(named=True):
        holds = row["name"] in holding if row["action"] in ("waive", "assign") and row["name"] not in ended else None
        yield {name: row[name] for name in HISTORY[:-1]} | {"holds": holds}


HISTORY = ("at", "author", "action", "reason", "assignee", "source", "file", "row", "stage", "category", "group", "holds")
"""The columns of a decision."""


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
    """Entries that have one reason at one place.

    Attributes:
        stage: The node that failed.
        category: The kind of failure; `correlated` where only records that were rolled back for it are left.
        detail: The reason.
        records: Entries that failed themselves.
        collateral: Records that were rolled back with a failed one.
        groups: The number of suppressed groups among them.
        waived: Entries that were waived.
        since: When the oldest entry came that is not waived; None where all are.
        days: Its age in whole days.
    """

    stage: str
    category: str
    detail: str
    records: int
    collateral: int
    groups: int
    waived: int = 0
    since: datetime | None = None
    days: int = 0

    @property
    def name(self) -> str:
        """A short name of place and reason, the same in every epoch."""
        return blake2b(f"{self.stage}\0{self.detail}".encode("utf-8", "replace"), digest_size=8).hexdigest()


class Letters:
    """The dead letter queue for triage: its triggers, most records first, and the entries of each. Without a plan only their number is known."""

    def __init__(self, reading: Snapshot) -> None:
        self.plan = reading.plan
        tally = Tally.noted(reading.head.counters if reading.head else {})
        found = letters_of(reading) if tally.total else pl.DataFrame(schema=COLUMNS)  # without rejects no engine is asked
        self._letters = found.with_columns(pl.col("stage").fill_null(""), why=pl.col("detail").fill_null("").str.strip_prefix(ROLLED_BACK))
        self.total = tally.total
        self.waived = tally.waived
        self.triggers = self._found() if found.height else []

    def _found(self) -> list[Trigger]:
        failed, left = pl.col("category") != CORRELATED, pl.col("waiver").is_null()
        aggregates = (
            pl.coalesce(pl.col("category").filter(failed).first(), pl.col("category").first()), failed.sum().alias("records"), (~failed).sum().alias("collateral"),
            pl.col("text").drop_nulls().n_unique().alias("groups"), pl.col("waiver").count().alias("waived"), pl.col("since").filter(left).min(),
            pl.col("days").filter(left).max().fill_null(0),
        )  # fmt: skip
        found = self._letters.group_by("stage", "why", maintain_order=True).agg(*aggregates)
        ordered = found.sort(pl.col("records") + pl.col("collateral"), descending=True, maintain_order=True)
        return [Trigger(detail=row.pop("why"), **row) for row in ordered.iter_rows(named=True)]

    def of(self, trigger: Trigger, start: int, most: int) -> list[Row]:
        """Some entries of a trigger, its own failures first, the oldest first.

        Each has id, source, file, row, stage, category, detail, epoch, since, days, raw, the group (`text`), `assigned`, what is known of its waiver, and
        `fields` of the source record.
        """
        rows = self._letters.filter(pl.col("stage") == trigger.stage, pl.col("why") == trigger.detail)
        ordered = rows.sort(pl.col("category") == CORRELATED, "epoch", maintain_order=True).slice(start, most)
        names = [name for name in ordered.columns if name.startswith(FIELD)]
        shown = ("id", "source", "file", "row", "stage", "category", "detail", "epoch", "since", "days", "raw", "text", "assigned", "waived", "waived_by", "waived_at")
        return [
            {**{name: row[name] for name in shown}, "fields": {name.removeprefix(FIELD): row[name] for name in names if row[name] is not None}}
            for row in ordered.iter_rows(named=True)
        ]

    def ids(self, trigger: Trigger) -> list[str]:
        """The ids of all entries of a trigger."""
        return self._letters.filter(pl.col("stage") == trigger.stage, pl.col("why") == trigger.detail)["id"].to_list()

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
