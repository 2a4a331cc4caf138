"""A plain Python model of a table of change records in a database, read in portions: what was delivered, what is live, what is rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.corrections import SOURCES, Record, replayed_in_order

CREATE = 'CREATE TABLE records (seq BIGINT, id BIGINT, code VARCHAR(9), "of" BIGINT, v BIGINT, w VARCHAR(9), more VARCHAR(9))'
COLUMNS = ("seq", "id", "code", "of", "v", "w")
Row = tuple[Any, ...]
"""A row of the table, in the order of `COLUMNS`."""


@dataclass
class Table:
    """The table: what a program writes into it between runs, by statements."""

    dice: Random
    execute: Callable[[str], object]
    rows: list[Row] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """The numbers of later records: they come out of order."""

    @classmethod
    def new(cls, dice: Random, execute: Callable[[str], object]) -> Table:
        """An empty table. Numbers come a little out of order."""
        return cls(dice, execute, numbers=sorted(range(1, 30), key=lambda number: number + dice.randint(0, 8), reverse=True))

    def change(self, *, versions_are_numbers: bool) -> None:
        """Write some new records; repeat, correct and delete some."""
        self.grow(versions_are_numbers=versions_are_numbers)
        if self.rows and self.dice.random() < 0.3:
            self._insert(self.dice.choice(self.rows))
        if self.rows and self.dice.random() < 0.4:
            old = self.dice.choice(self.rows)
            new = self.dice.choice([(*old[:5], self.dice.choice(["x", "y", "z"])), (*old[:2], self.dice.choice("NCX"), *old[3:])])
            self.execute(f"UPDATE records SET code = {_literal(new[2])}, w = {_literal(new[5])} WHERE seq = {old[0]}")
            self.rows = [(*row[:2], new[2], *row[3:5], new[5]) if row[0] == old[0] else row for row in self.rows]
        if self.rows and self.dice.random() < 0.3:
            gone = self.dice.choice(self.rows)[0]
            self.execute(f"DELETE FROM records WHERE seq = {gone}")
            self.rows = [row for row in self.rows if row[0] != gone]

    def grow(self, *, versions_are_numbers: bool) -> None:
        """Write some new records."""
        for _ in range(self.dice.randint(0, 4)):
            if not self.numbers:
                break
            number = self.numbers.pop()
            version = number if versions_are_numbers else self.dice.choice([0, 1, 2, 3])
            version = None if self.dice.random() < 0.05 else version
            of = self.dice.choice([None, None, 1, 2, 3])
            self._insert((number, self.dice.choice([1, 2, 3, 1, 2, 3, None]), self.dice.choice("NNCCPXXI?"), of, version, self.dice.choice([None, "x", "y"])))

    def _insert(self, row: Row) -> None:
        values = ", ".join(map(_literal, row))
        self.execute(f'INSERT INTO records (seq, id, code, "of", v, w) VALUES ({values})')
        self.rows.append(row)


def _literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Event:
    """A record that a run read: the run, and its number among equal ones."""

    row: Row
    run: int
    nth: int

    @property
    def record(self) -> Record:
        return dict(zip(COLUMNS, self.row, strict=True))


@dataclass
class Delivered:
    """The records of a table that a source has read. `overlap`: how far ahead of the greatest number a run asks; None where it asks for everything."""

    source: str
    overlap: int | None
    events: list[Event] = field(default_factory=list)
    stale: set[Event] = field(default_factory=set)
    """Events whose records were asked for again, and were not there any more."""
    known: Counter[Row] = field(default_factory=Counter)
    last: int | None = None
    run: int = 0

    def read(self, rows: Sequence[Row]) -> None:
        """Read on."""
        self.run += 1
        floor = None if self.overlap is None or self.last is None else self.last - self.overlap
        answer = Counter(row for row in rows if floor is None or row[0] >= floor)
        for row in {*self.known, *answer}:
            before, now = self.known[row], answer[row]
            self.stale |= {event for event in self.events if event.row == row and now < event.nth <= before}
            self.events += [Event(row, self.run, nth) for nth in range(before + 1, now + 1)]
        self.last = max([row[0] for row in answer] + ([] if self.last is None else [self.last]), default=None)
        self.known = Counter({row: count for row, count in answer.items() if self.overlap is None or self.last is None or row[0] >= self.last - self.overlap})

    def read_again(self, rows: Sequence[Row]) -> None:
        """Read everything, after an edit: it counts alone."""
        run = self.run
        self.__init__(self.source, self.overlap)  # type: ignore[misc]
        self.run = run
        self.read(rows)

    @property
    def in_order(self) -> list[Event]:
        """The events in the order in which they count: by version where they have one, by number, by run."""
        versioned = "version_field" in SOURCES[self.source]
        return sorted(self.events, key=lambda one: ((one.row[4] or 0) if versioned else 0, 0 if self.overlap is None else one.row[0], one.run, one.nth))

    def outcome(self) -> tuple[dict[int, Record], Counter[tuple[int, str]]]:
        """The live records by key, and the rejects: the numbers of records with categories."""
        events = self.in_order
        live, wrong = replayed_in_order(self.source, [event.record for event in events])
        return live, Counter((event.row[0], category) for event, category in zip(events, wrong, strict=True) if category and event not in self.stale)
