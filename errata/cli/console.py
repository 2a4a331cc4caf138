"""What a command writes: answers to standard output, everything else to standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from errata.core.diagnostics import Diagnostic
from errata.core.env_references import redacted
from errata.core.events import RunResult
from errata.core.failures import REPAIR
from errata.rendering.diagnostics import as_text
from errata.rendering.event_stream import EventStream
from errata.rendering.rows import render
from errata.rendering.terminal import columns_of, escaped, harmless, is_terminal, styled, wants_color
from storage.errors import EngineUnavailable, StorageError

LEVELS = ("error", "warn", "info", "debug", "trace")
NOTHING_CHANGED = "Nothing was changed."


@dataclass(slots=True)
class Console:
    """One call of the command line.

    Args:
        level: The least urgent messages that are printed: error, warn, info, debug or trace.
        head_epoch: Returns the last committed epoch. Set once a command that may commit has loaded its pipeline.
        warned: The warnings printed so far.
        events: Writes events in the place of answers, where they are asked for.
    """

    level: str = "info"
    no_color: bool = False
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
        return wants_color(sys.stderr, no_color=self.no_color)

    def explain(self, text: str) -> None:
        """Write an answer about the pipeline itself, without its secrets."""
        self.answer([redacted(text)])

    def answer(self, pieces: Iterable[str]) -> None:
        """Write the command's answer, unless events take its place. Control characters are escaped for a terminal only."""
        if self.events is not None:
            return
        steered = is_terminal(sys.stdout)
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
            self.note(summary(result))
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
    return f"{did[:1].upper()}{did[1:]}{rejected} ({result.seconds:.1f} s)"


def plural(count: int, word: str) -> str:
    """Return `1 row`, `2 rows`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def csv_columns(rows: Iterable[Any], format: str, columns: Callable[[], Sequence[str]]) -> tuple[Iterator[Any], Sequence[str]]:
    """Return the rows and, for a csv answer without rows, the columns of its header."""
    stream = iter(rows)
    first = list(islice(stream, 1))
    return chain(first, stream), columns() if format == "csv" and not first else ()


def rows_answer(console: Console, rows: Iterable[Any], format: str, columns: Sequence[str] = (), *, whole: bool = False) -> None:
    """Print rows as the command's answer.

    Args:
        columns: Columns that come first, also where there are no rows.
        whole: Whether a table may be wider than the terminal. Without a terminal nothing is cut.
    """
    console.answer(render(rows, format, columns, fit=None if whole else columns_of(sys.stdout)))  # type: ignore[arg-type]  # click has checked the choice
