"""`errata dlq assign`, `waive` and `unwaive`: what people decide about dead letters, kept as events in an epoch of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from getpass import getuser
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import polars as pl

from errata.amend.amendment import Change
from errata.core.failures import Usage
from errata.core.options import LetterChoice, LetterDecision
from errata.inspect.dlq import chosen, letters_of
from errata.rollback.triage import contents_of
from errata.state.triage_events import Action, TriageEvent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.inspect.snapshot import Snapshot
    from errata.plan.plan import Node
    from errata.state.run_state import RunState


@dataclass(frozen=True, slots=True)
class Triage(Change):
    """Decisions about dead letters. They change no row of a source."""

    action: str
    author: str
    reason: str
    events: tuple[TriageEvent, ...]

    def sources(self, names: Sequence[str]) -> Mapping[str, str]:
        """None."""
        return {}

    def rows(self, run: RunState, node: Node) -> DataFrame:
        """No rows: no source is asked for any."""
        raise AssertionError(f"triage changes no row of '{node.name}'")

    def counters(self) -> dict[str, Any]:
        """A decision: by whom, and why."""
        return {"kind": f"dlq {self.action}", "author": self.author, "entries": len(self.events), **({"reason": self.reason} if self.reason else {})}

    def decided(self) -> Sequence[TriageEvent]:
        """The events."""
        return self.events


def decide(reading: Snapshot, choice: LetterChoice, decision: LetterDecision) -> Triage:
    """The change that a decision makes to the chosen entries. Raises Usage where it changes nothing."""
    letters = chosen(letters_of(reading), choice)
    if not letters.height:
        raise Usage("no entry is meant", help="errata dlq PIPELINE --triage lists them")
    concerned = letters.filter(_concerned(decision))
    if not concerned.height:
        raise Usage(_IN_VAIN[decision.action])
    author, moment, call = author_of(decision.author), moment_now(), token_hex(8)
    numbered = concerned.with_columns(contents_of(concerned)).with_row_index("at")  # events of one moment stay in the order of the entries
    events = [TriageEvent(f"{call}{row['at']:016x}", moment, author, **_decided(decision, row)) for row in numbered.iter_rows(named=True)]
    return Triage(decision.action, author, decision.reason, tuple(events))


_IN_VAIN = {"waive": "the entries are waived already", "unwaive": "none of the entries is waived", "assign": "nothing would change: they are assigned so already"}


def _concerned(decision: LetterDecision) -> pl.Expr:
    """The entries for which a decision changes something."""
    if decision.action == "assign":
        return pl.col("assigned").fill_null("") != decision.assignee
    return pl.col("waiver").is_null() if decision.action == "waive" else pl.col("waiver").is_not_null()


def _decided(decision: LetterDecision, row: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an event: the decision, and the entry that it is about."""
    action: Action = "waive" if decision.action == "waive" else "assign" if decision.assignee else "end"
    before = row["assignment"] if decision.action == "assign" else row["waiver"]
    about = {name: row[name] or "" for name in ("contents", "source", "file", "stage", "category")}
    said = {"action": action, "reason": decision.reason, "assignee": decision.assignee, "ends": before or ""}
    return {**said, **about, "row": row["row"], "group": row["text"] or ""}


def retried(group: str, reason: str, author: str) -> tuple[TriageEvent, ...]:
    """The event of a group that is tried again for a reason; none without one."""
    return (TriageEvent(token_hex(16), moment_now(), author_of(author), "retry", reason, group=group),) if reason else ()


def author_of(given: str) -> str:
    """Who decides: as given, else the user of the operating system."""
    if given:
        return given
    try:
        return getuser()
    except (OSError, KeyError):
        return "unknown"


def moment_now() -> str:
    """The present time as RFC 3339."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
