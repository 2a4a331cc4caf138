"""Triage of the dead letter queue: what failed, by trigger, with the source records of each and what can be done about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.inspect.dlq import Letters, Trigger
from errata.pages.paging import Part, cut_out, part
from errata.pages.record_forms import Pairs, fields_of_form
from errata.pages.values import MOST_COLUMNS, Shown, short, shown
from errata.rollback.categories import CORRELATED

Row = Mapping[str, Any]
TRIGGERS, LETTERS = 50, 25


@dataclass(frozen=True, slots=True)
class Letter:
    """An entry with its source record.

    Attributes:
        since: When it came, with its age.
        group: What a retry takes.
        assigned: Who has it.
        waived: Who waived it, when and why; empty where nobody did.
        refused: Whether its source rejected it, so that `errata correct` does not find it.
        key, values: What a correction takes; empty where none can be made.
    """

    id: str
    source: str
    place: str
    category: str
    detail: str
    epoch: int
    since: str
    group: str
    assigned: str
    waived: str
    fields: tuple[tuple[str, Shown], ...]
    raw: str
    refused: bool
    key: Pairs
    values: Pairs


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The page: all triggers, or the records of one (`chosen`). `waived` of the entries were waived."""

    total: int
    waived: int
    triggers: tuple[Trigger, ...]
    part: Part
    chosen: Trigger | None = None
    letters: tuple[Letter, ...] = ()


def dead_letters(letters: Letters, chosen: str = "", wanted: int = 1) -> DeadLetters:
    """Return the triggers, or the records of the chosen one. A trigger that is no longer there leads to all others."""
    trigger = next((one for one in letters.triggers if one.name == chosen), None)
    if trigger is None:
        which, found = cut_out(letters.triggers, TRIGGERS, wanted)
        return DeadLetters(letters.total, letters.waived, tuple(found), which)
    which = part(trigger.records + trigger.collateral, LETTERS, wanted)
    rows = letters.of(trigger, (which.number - 1) * LETTERS, LETTERS)
    return DeadLetters(letters.total, letters.waived, (), which, trigger, tuple(_letter(letters, row) for row in rows))


def _letter(letters: Letters, row: Row) -> Letter:
    found = dict(row["fields"])
    key, values = _correctable(letters, row, found)
    file, number = row["file"] or "", row["row"]
    waived = "" if row["waived"] is None else f"waived by {row['waived_by']} on {row['waived_at'][:10]}: {row['waived']}"
    days = "" if row["days"] is None else f" ({row['days']:,} {'day' if row['days'] == 1 else 'days'})"
    since = "" if row["since"] is None else f"{row['since']:%Y-%m-%d %H:%M}{days}"
    return Letter(
        row["id"], row["source"] or "", short(f"{file}:{number}" if number is not None else file), row["category"], short(row["detail"], 300), row["epoch"], since, row["text"] or "", short(row["assigned"] or "", 80), short(waived, 300),
        tuple((short(name, 60), shown(text)) for name, text in list(found.items())[:MOST_COLUMNS]), short(row["raw"], 2000), _is_refused(row), key, values,
    )  # fmt: skip


def _is_refused(row: Row) -> bool:
    """Whether the record's source rejected it, for itself and not with its group."""
    return bool(row["stage"].startswith("source:") and row["category"] != CORRELATED)


def _correctable(letters: Letters, row: Row, found: Mapping[str, str]) -> tuple[Pairs, Pairs]:
    """The fields that name the record, and the fields that may be changed; none of a record that could not be read, or that a form cannot hold."""
    if not found or not row["source"] or row["raw"] or _is_refused(row):
        return (), ()
    return fields_of_form(found, letters.key_columns(row["source"]))
