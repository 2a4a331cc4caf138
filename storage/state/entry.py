"""Entries of the ledger, one per committed run, and the chain of hashes that links them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

import orjson

__all__ = ["CARRIED", "DOCUMENTS", "FORMAT", "KINDS", "NAMELESS", "NAMES", "ChainFault", "Entry", "chained", "entry_of", "row_of", "verify_chain"]

Json = dict[str, Any]

FORMAT = 6
"""Format of the state: tables, columns, keys and the JSON of entries. A change that older code cannot read, or that reads older states wrongly, counts it up."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A committed run. The mappings hold JSON values with text keys.

    Args:
        epoch: Number of the committed epoch.
        execution_id: Name of the run.
        batch_id: Name of the batch that the user gave.
        started: Start of the run, in UTC.
        finished: End of the run, in UTC.
        exit_code: 0, or 2 with rejects.
        plan: Fingerprints and columns by node.
        tables: Version of each table by its path in the state folder.
        nodes: Counts by node: `+A`, `-R`, `-C`, `+C`, `rows_in`, `rows_out`, `filtered`, `rejected`; for outputs their `files`.
        sources: Cursor and files by source.
        counters: Totals of the run. `gone` are output files to remove, `replaces` the hash of the head of a replaced chain, `base` the epoch to
            which older epochs were folded, `erased` the epoch of the last erasure. `kind` is `compact` or `erased` for maintenance, which keeps the
            epoch of the entry before and changes no row.
        files: Seals of the files that the run wrote, by table (`storage.state.integrity`).
        marks: Mark of each table (`storage.delta.marks`).
        format: Format of the state.
        previous: Hash of the entry before, empty for the first entry.
        hash: Hash of the entry, set by `sealed`.
    """

    epoch: int
    execution_id: str
    batch_id: str
    started: datetime
    finished: datetime
    exit_code: int
    plan: Json = field(default_factory=dict)
    tables: Json = field(default_factory=dict)
    nodes: Json = field(default_factory=dict)
    sources: Json = field(default_factory=dict)
    counters: Json = field(default_factory=dict)
    files: Json = field(default_factory=dict)
    marks: Json = field(default_factory=dict)
    format: int = FORMAT
    previous: str = ""
    hash: str = ""

    def sealed(self, previous: str) -> Entry:
        """Return the entry linked to the one before, with its own hash."""
        linked = replace(self, previous=previous)
        return replace(linked, hash=linked.digest())

    def digest(self) -> str:
        """Return the SHA-256, in hexadecimal, of the canonical JSON of all members but `hash`."""
        return sha256(b"\n".join(f"{name}=".encode() + _canonical(getattr(self, name)) for name in NAMES if name != "hash")).hexdigest()

    @property
    def maintains(self) -> bool:
        """Whether the entry is maintenance of the epoch before."""
        return self.counters.get("kind") in ("compact", "erased")

    @property
    def folded(self) -> Mapping[str, int]:
        """Number of op rows of each node that a compaction removed. The numbers of later rows follow them."""
        found: Mapping[str, int] = self.counters.get("folded", {})
        return found

    @property
    def place(self) -> tuple[int, datetime]:
        """Sort key of entries."""
        return self.epoch, self.finished


NAMES = tuple(member.name for member in fields(Entry))
MOMENTS = ("started", "finished")
DOCUMENTS = frozenset({"plan", "tables", "nodes", "sources", "counters", "files", "marks"})
"""Members that the table holds as JSON text."""
KINDS = {"epoch": "bigint", "exit_code": "int", "started": "timestamp", "finished": "timestamp", "format": "int"}
"""Types of the table's columns; all others are strings."""
NAMELESS = "nameless"
"""The counter with the keys of nameless rows by source."""
CARRIED = ("base", "folded", "erased", "erasing", "kept_out", NAMELESS)
"""Counters that each entry takes over from the one before."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """A fault of the ledger at an epoch: `edited`, `unlinked` (dropped, inserted or reordered) or `repeated`."""

    epoch: int
    kind: Literal["edited", "unlinked", "repeated"]
    detail: str


def chained(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries with new hashes, each linked to the one before."""
    found: list[Entry] = []
    for entry in entries:
        found.append(entry.sealed(found[-1].hash if found else ""))
    return found


def verify_chain(entries: Sequence[Entry]) -> list[ChainFault]:
    """Check that each entry, in order of epochs, has the hash of its content and names the hash of the entry before."""
    faults: list[ChainFault] = []
    previous, last = "", 0
    for entry in entries:
        if entry.hash != entry.digest():
            faults.append(ChainFault(entry.epoch, "edited", "its content does not have the hash that it was committed with"))
        if entry.epoch == last and not entry.maintains:
            faults.append(ChainFault(entry.epoch, "repeated", "the ledger has this epoch more than once"))
        elif entry.previous != previous or entry.epoch != last + (0 if entry.maintains else 1):
            faults.append(ChainFault(entry.epoch, "unlinked", f"it does not follow the entry of epoch {last}"))
        previous, last = entry.hash, entry.epoch
    return faults


def row_of(entry: Entry) -> Json:
    """Return an entry as a row of the ledger's table."""
    members = {name: getattr(entry, name) for name in NAMES}
    return {name: _canonical(value).decode() if name in DOCUMENTS else value for name, value in members.items()}


def entry_of(row: Mapping[str, Any]) -> Entry:
    """Return the entry of a row of the ledger's table."""
    read = {name: orjson.loads(value) if name in DOCUMENTS else value for name, value in row.items()}
    return Entry(**read | {name: read[name].astimezone(UTC) for name in MOMENTS})


def _canonical(value: Any) -> bytes:
    """Return JSON with sorted keys and without blanks; moments in UTC with microseconds."""
    if isinstance(value, datetime):
        value = value.astimezone(UTC).isoformat(timespec="microseconds")
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
