"""Dead letters with what people decided about them.

A decision holds for what an entry says: the fields of its record, where it failed, in which category. So it holds in every later run, also after the
record was gone and came back, and ends where the record says something else. Of entries that say the same each decision holds for one: for the entry
at the place where it was made, else for the first that no other decision holds for.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import cast

import polars as pl

from errata.rollback.categories import CORRELATED
from errata.rollback.dead_letters import FIELD
from errata.state.tally import Tally
from errata.state.triage_events import Action, standing

WAIVED = {"waiver": "name", "waived": "reason", "waived_by": "author", "waived_at": "at"}
ASSIGNED = {"assignment": "name", "assigned": "assignee", "assigned_by": "author", "assigned_at": "at"}
"""The columns that decisions give to entries, and the members of events that they come from; null where there is no decision."""


def contents_of(rejects: pl.DataFrame) -> pl.Series:
    """A digest of what each entry says: its node and category, the fields of its record, or its text."""
    fields = [
        pl.concat_str(pl.lit(f"\x1e{name.removeprefix(FIELD)}\x1f"), pl.col(name))
        for name in sorted(name for name in rejects.columns if name.startswith(FIELD))
    ]
    whole = pl.concat_str("node", pl.lit("\x1e"), "category", pl.lit("\x1e"), pl.col("source").fill_null(""), pl.lit("\x1e"), "raw", *fields, ignore_nulls=True)
    texts = rejects.select(whole.alias("text"))["text"].to_list()
    return pl.Series("contents", [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() for text in texts], dtype=pl.String)


def triaged(rejects: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The entries with the columns `contents`, WAIVED and ASSIGNED. A digest is made of an entry only where a decision of its source and category stands, else it is null.

    Args:
        rejects: The entries, as `errata.rollback.dead_letters` gives them.
        events: The events of triage, oldest first.
    """
    decisions: Mapping[Action, Mapping[str, str]] = {"waive": WAIVED, "assign": ASSIGNED}
    stand = {action: standing(events, action) for action in decisions}
    if not any(one.height for one in stand.values()):
        return rejects.with_columns(pl.lit(None, pl.String).alias(name) for name in ("contents", *WAIVED, *ASSIGNED))
    entries = _with_contents(rejects.with_row_index("__at"), pl.concat(stand.values()))
    for action, columns in decisions.items():
        entries = _joined(entries, stand[action], columns)
    return entries.drop("__at")


def _with_contents(entries: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The entries with `contents`, null where no event can be about the entry: a digest takes a step in Python."""
    about = (pl.col("source").fill_null(""), "category")
    possible = entries.select("__at", *about).join(events.select(*about), ["source", "category"], "semi")
    met = entries.filter(pl.col("__at").is_in(possible["__at"].implode()))
    return entries.join(met.select("__at", contents_of(met)), on="__at", how="left", maintain_order="left")


def _joined(entries: pl.DataFrame, events: pl.DataFrame, columns: Mapping[str, str]) -> pl.DataFrame:
    """Entries with the columns of the event that holds for each."""
    found = _met(entries.select("__at", "contents", *_PLACE), events.select("name", "contents", *_PLACE))
    own = events.select(pl.col(source).alias(name) for name, source in columns.items())
    named = next(iter(columns))
    return entries.join(found.join(own, left_on="name", right_on=named).rename({"name": named}), on="__at", how="left", maintain_order="left")


_PLACE = (pl.col("file").fill_null(""), pl.col("row").fill_null(-1))


def _met(entries: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Which event holds for which entry (`__at`, `name`): at one place first, then the others in order."""
    found = [pl.DataFrame(schema={"__at": entries.schema["__at"], "name": pl.String})]
    for by in (["contents", "file", "row"], ["contents"]):
        nth = pl.int_range(pl.len()).over(by).alias("__nth")
        met = entries.with_columns(nth).join(events.with_columns(nth), on=[*by, "__nth"], maintain_order="left").select("__at", "name")
        found.append(met)
        entries, events = entries.filter(~pl.col("__at").is_in(met["__at"].implode())), events.filter(~pl.col("name").is_in(met["name"].implode()))
    return pl.concat(found)


def tally_of(entries: pl.DataFrame, collateral: int) -> Tally:
    """The tally of triaged entries. `collateral` is the number of entries that failed only with their group."""
    left, waived = entries.filter(pl.col("waiver").is_null()), entries.filter(pl.col("waiver").is_not_null())
    counts = left.group_by("category").len().sort("category")
    categories = dict(zip(counts["category"].to_list(), counts["len"].to_list(), strict=True))
    both = waived.filter(pl.col("category") == CORRELATED).height
    return Tally(entries.height, collateral, waived.height, both, categories, cast("int | None", left["epoch"].min()))
