"""People's decisions about dead letters: who has an entry, which ones were waived and why, which groups were tried again.

Events stand in a table of their own, `rollback/triage`. It is only appended to, so that it can be audited; it outlives a full refresh.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal

from changelog.lazy_imports import pa, pl
from changelog.ops import Op
from storage.delta.changelog_table import ChangelogTable

if TYPE_CHECKING:
    from collections.abc import Sequence

TRIAGE = "rollback/triage"
Action = Literal["assign", "waive", "end", "retry", "import"]


@dataclass(frozen=True, slots=True)
class TriageEvent:
    """One decision about one entry, or about a group.

    Attributes:
        name: The name of the event, 16 bytes in hexadecimal.
        at: When, in UTC, as RFC 3339.
        action: What was done; `end` takes another event back.
        reason: Why; empty where nobody said so.
        assignee: Who has the entry.
        ends: The event that this one takes back or takes the place of.
        contents: The digest of what the entry says (`errata.rollback.triage`).
        source, file, row: The place of the record.
        stage, category: Where and how it failed.
        group: The correlation group.
    """

    name: str
    at: str
    author: str
    action: Action
    reason: str = ""
    assignee: str = ""
    ends: str = ""
    contents: str = ""
    source: str = ""
    file: str = ""
    row: int | None = None
    stage: str = ""
    category: str = ""
    group: str = ""


_KINDS = {one.name: ("bigint" if one.name == "row" else "string") for one in fields(TriageEvent)}
COLUMNS = {"_op": "tinyint", "_key": "binary", "_cause": "string", **_KINDS}
"""The columns of the table."""


def append_events(table: ChangelogTable, events: Sequence[TriageEvent], epoch: int) -> None:
    """Append events to the table."""
    rows = [asdict(one) for one in events]
    columns = {name: pa.array([row[name] for row in rows], pa.int64() if kind == "bigint" else pa.string()) for name, kind in _KINDS.items()}
    system = {
        "_op": pa.array([int(Op.APPEND)] * len(rows), pa.int8()), "_key": pa.array([bytes.fromhex(one.name) for one in events], pa.binary()),
        "_cause": pa.array([one.action for one in events], pa.string()),
    }  # fmt: skip
    table.append(pa.table(system | columns), epoch)


def no_events() -> pl.DataFrame:
    """A frame of events without one."""
    return pl.DataFrame(schema={name: pl.Int64 if kind == "bigint" else pl.String for name, kind in _KINDS.items()})


def events_of(table: ChangelogTable) -> pl.DataFrame:
    """All events of a table, oldest first. A table that is not there has none."""
    if not table.exists() or not table.statistics.rows():
        return no_events()
    found = pl.from_arrow(table.read_arrow().select(list(_KINDS)))
    assert isinstance(found, pl.DataFrame)  # a table is no array
    return found.cast(no_events().schema).sort("at", "name")


def standing(events: pl.DataFrame, action: Action) -> pl.DataFrame:
    """The events of an action that no later event took back."""
    ended = events.filter(pl.col("ends") != "")["ends"]
    return events.filter(pl.col("action") == action, ~pl.col("name").is_in(ended.implode()))
