"""The texts of a command: answers go to standard output, everything else to standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from errata.core.diagnostics import Diagnostic
from errata.core.env_references import redacted
from errata.core.events import OutputChange, RunResult
from errata.core.failures import REPAIR
from errata.rendering.changes import in_short
from errata.rendering.diagnostics import as_text
from errata.rendering.event_stream import EventStream
from errata.rendering.rows import Look, render
from errata.rendering.terminal import columns_of, cut, escaped, harmless, is_terminal, ops_styled, styled, wants_color
from storage.errors import EngineUnavailable, StorageError

LEVELS = ("error", "warn", "info", "debug", "trace")
MOST_OUTPUTS = 20
"""How many outputs a run names at its end."""
NOTHING_CHANGED = "Nothing was changed."


@dataclass(slots=True)
class Console:
    """One call of the command line.

    Args:
        level: The least urgent messages that are printed: error, warn, info, debug or trace.
        color_choice: Whether text is coloured: auto, always or never.
        wide: Whether tables may be wider than the terminal.
        head_epoch: Returns the last committed epoch. Set once a command that may commit has loaded its pipeline.
        warned: The warnings printed so far.
        events: Writes events in the place of answers, where they are asked for.
    """

    level: str = "info"
    color_choice: str = "auto"
    wide: bool = False
    head_epoch: Callable[[], int | None] | None = None
    warned: set[Diagnostic] = field(default_factory=set)
    events: EventStream | None = None

    def shows(self, level: str) -> bool:
        """Whether messages of a level are printed."""
        return LEVELS.index(level) <= LEVELS.index(self.level)

    @property
    def execution_id(self) -> str | None:
        """The name of the run in its events; None without them."""
        return None if self.events is None else self.events.run

    @property
    def color(self) -> bool:
        """Whether standard error shows colour."""
        return wants_color(sys.stderr, choice=self.color_choice)

    @property
    def answer_color(self) -> bool:
        """Whether standard output shows colour."""
        return wants_color(sys.stdout, choice=self.color_choice)

    @contextmanager
    def look(self, lead: Sequence[str] = (), after: Sequence[str] = (), *, keep: bool = False) -> Iterator[Look]:
        """Yield the look of tables on standard output; afterwards print which columns were left out.

        Args:
            lead: The columns that stay whole.
            after: The columns behind them.
            keep: Whether they stay whole although a line gets longer than the terminal.
        """
        hidden: list[str] = []
        fit = None if self.wide else columns_of(sys.stdout)
        yield Look(fit, lead, after, keep, self.answer_color, hidden.extend)
        if hidden and fit is not None:
            self.note(cut(f"--wide shows {plural(len(hidden), 'more column')}: {', '.join(map(escaped, hidden))}", fit))

    def explain(self, text: str) -> None:
        """Write an answer about the pipeline itself, without its secrets."""
        self.answer([redacted(text)])

    def answer(self, pieces: Iterable[str], *, harmless_already: bool = False) -> None:
        """Write the command's answer, unless events take its place.

        Args:
            pieces: The answer. Control characters are escaped for a terminal only.
            harmless_already: Whether control characters of data are escaped already, so that only colours are left.
        """
        if self.events is not None:
            return
        steered = is_terminal(sys.stdout) and not harmless_already
        for piece in pieces:
            sys.stdout.write(harmless(piece) if steered else piece)
        sys.stdout.flush()

    def write(self, text: str) -> None:
        """Write to standard error, without secrets."""
        sys.stderr.write(redacted(text))
        sys.stderr.flush()

    def note(self, text: str, *, level: str = "info") -> None:
        """Write a line to standard error."""
        if self.shows(level):
            self.write(f"{text}\n")

    def diagnostics(self, found: Iterable[Diagnostic]) -> None:
        """Print errors always, and each warning once."""
        shown = [one for one in found if one.is_error or (self.shows("warn") and one not in self.warned)]
        self.warned.update(one for one in shown if not one.is_error)
        if shown:
            self.write(f"{as_text(shown, color=self.color)}\n")

    def failure(self, message: str, help: str = "", details: Sequence[str] = ()) -> None:
        """Print why a command stopped."""
        head = styled("error", "bold", "red", on=self.color)
        lines = [f"{head}: {escaped(message)}", *(f"  {escaped(one)}" for one in details), *([f"  = help: {escaped(help)}"] if help else [])]
        self.write("\n".join(lines) + "\n")

    def nothing_changed(self) -> None:
        """Print the last line of a command that failed before it could change anything."""
        self.write(f"{NOTHING_CHANGED}\n")

    def left_behind(self, next_step: str) -> None:
        """Print the last line of every other failing command: the last committed epoch, and the next step unless it is empty."""
        self.write(f"{self._left(f'; {next_step}' if next_step else '')}\n")

    def _left(self, next_step: str) -> str:
        if self.head_epoch is None:
            return NOTHING_CHANGED
        try:
            epoch = self.head_epoch()
        except (OSError, StorageError, EngineUnavailable):
            return f"The last committed epoch stands{next_step}."
        return NOTHING_CHANGED if epoch is None else f"Epoch {epoch} stands{next_step}."

    def end_of_run(self, result: RunResult) -> int:
        """Print the last line of a run and return its exit code."""
        if self.events is not None:
            self.events.result = result
        if result.exit_code in (0, 2):
            for line in changed_outputs(result.output_changes):
                self.note(line)
            self.note(ops_styled(summary(result), on=self.color))
            if result.rejected:
                held = f"; {escaped(result.dlq_file)} holds them" if result.dlq_file else ""
                self.note(f"errata dlq lists the rejected records and what can be done about them{held}.")
        else:
            if result.message:
                self.failure(result.message)
            self.left_behind(REPAIR)
        return result.exit_code


def summary(result: RunResult) -> str:
    """Return what a run did, in one line."""
    ops = dict.fromkeys(("+A", "-R", "-C", "+C"), 0)
    for counts in result.counts.values():
        for op, count in counts.items():
            ops[op] += count
    changes = ", ".join(f"{op} {count:,}" for op, count in ops.items() if count)
    head = f"epoch {result.epoch}" if result.epoch is not None else "no epoch yet"
    did = f"{head}: {changes or 'no row changed'}" if result.committed else f"nothing changed, {head}"
    rejected = f"; {result.rejected:,} rejected" if result.rejected else ""
    rejected += f"; {result.waived:,} waived" if result.waived else ""
    return f"{did[:1].upper()}{did[1:]}{rejected} ({result.seconds:.1f} s)"


def would_stop(reason: str) -> str:
    """The line about a run that would end before it commits."""
    return f"The run would stop: {reason}"


def changed_outputs(changes: Sequence[OutputChange]) -> Iterator[str]:
    """Yield a line for each output that a run changed: its rows, and how many of the rows that were delivered before differ."""
    for change in changes[:MOST_OUTPUTS]:
        counted = ((change.corrected, "corrected"), (change.removed, "gone"), (change.added, "new"))
        rows = ", ".join(f"{count:,} {word}" for count, word in counted if count)
        booked = f" ({change.booked:,} booked)" if change.booked else ""
        yield f"{escaped(change.node)}: {rows}{booked}{_compared(change)}"
    if len(changes) > MOST_OUTPUTS:
        yield f"and {plural(len(changes) - MOST_OUTPUTS, 'output')} more"


def _compared(change: OutputChange) -> str:
    if not change.delivered:
        return ""
    differ = f"{change.differing:,}" if change.differing else "none"
    return f"; {differ} of {plural(change.delivered, 'delivered row')} {'differs' if change.differing < 2 else 'differ'}"


def plural(count: int, word: str) -> str:
    """Return `1 row`, `2 rows`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def csv_columns(rows: Iterable[Any], format: str, columns: Callable[[], Sequence[str]]) -> tuple[Iterator[Any], Sequence[str]]:
    """Return the rows and, for a csv answer without rows, the columns of its header."""
    stream = iter(rows)
    first = list(islice(stream, 1))
    return chain(first, stream), columns() if format == "csv" and not first else ()


def changes_answer(console: Console, changes: Iterable[Any], format: str, *, lead: Sequence[str]) -> None:
    """Print changed rows (`before` and `after`, behind the columns in `lead`). A table has both values where one changed; programs get both rows."""
    if format == "text":
        rows_answer(console, map(in_short, changes), format, (*lead, "row"), lead=(*lead, "row"), empty="No row differs.")
    else:
        rows_answer(console, changes, format, (*lead, "before", "after"))


def rows_answer(
    console: Console, rows: Iterable[Any], format: str, columns: Sequence[str] = (), *,
    lead: Sequence[str] = (), after: Sequence[str] = (), keep: bool = False, empty: str = "",
) -> None:  # fmt: skip
    """Print rows as the command's answer. Without a terminal nothing is cut.

    Args:
        console: Where to print.
        rows: The rows.
        format: text, json, jsonl or csv.
        columns: Columns that come first, also where there are no rows.
        lead: Columns that come first and stay whole where a table does not fit the terminal.
        after: Columns behind them.
        keep: Whether they stay whole although a line gets longer than the terminal.
        empty: What people read in place of a table without rows.
    """
    if empty and format == "text":
        stream = iter(rows)
        first = list(islice(stream, 1))
        if not first:
            console.note(empty)
            return
        rows = chain(first, stream)
    with console.look(lead, after, keep=keep) as look:
        pieces = render(rows, format, columns, look=look)  # type: ignore[arg-type]  # click has checked the choice
        console.answer(pieces, harmless_already=format == "text")
