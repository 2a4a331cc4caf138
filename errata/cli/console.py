"""Where a command writes: answers to standard output, everything else to standard error; and how it ends."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from errata.core.diagnostics import Diagnostic
from errata.core.env_references import redacted
from errata.core.failures import REPAIR
from errata.core.options import RunResult
from errata.rendering.terminal import columns_of, escaped, harmless, is_terminal, styled, wants_color

LEVELS = ("error", "warn", "info", "debug", "trace")
NOTHING_CHANGED = "Nothing was changed."


@dataclass(slots=True)
class Console:
    """One call of the command line. `level` is what is told: error, warn, info, debug or trace.

    `standing` gives the last committed epoch once a command that may commit has loaded its project.
    """

    level: str = "info"
    no_color: bool = False
    standing: Callable[[], int | None] | None = None
    warned: set[Diagnostic] = field(default_factory=set)

    def tells(self, level: str) -> bool:
        """Whether messages of a level are shown."""
        return LEVELS.index(level) <= LEVELS.index(self.level)

    @property
    def color(self) -> bool:
        """Whether standard error takes colour."""
        return wants_color(sys.stderr, no_color=self.no_color)

    def explain(self, text: str) -> None:
        """An answer about the pipeline itself, its secrets left out."""
        self.answer([redacted(text)])

    def answer(self, pieces: Iterable[str]) -> None:
        """Write the command's answer. A file or a pipe gets it unchanged; for a terminal, characters that steer it are escaped."""
        steered = is_terminal(sys.stdout)
        for piece in pieces:
            sys.stdout.write(harmless(piece) if steered else piece)
        sys.stdout.flush()

    def tell(self, text: str) -> None:
        """To standard error, as it is but for secrets."""
        sys.stderr.write(redacted(text))
        sys.stderr.flush()

    def note(self, text: str, *, level: str = "info") -> None:
        """A line beside the answer."""
        if self.tells(level):
            self.tell(f"{text}\n")

    def diagnostics(self, found: Iterable[Diagnostic]) -> None:
        """Errors always; warnings once, unless only errors are told."""
        from errata.rendering.diagnostics import as_text

        shown = [one for one in found if one.is_error or (self.tells("warn") and one not in self.warned)]
        self.warned.update(one for one in shown if not one.is_error)
        if shown:
            self.tell(f"{as_text(shown, color=self.color)}\n")

    def failure(self, message: str, help: str = "", details: Sequence[str] = ()) -> None:
        """Why a command stopped."""
        head = styled("error", "bold", "red", on=self.color)
        lines = [f"{head}: {escaped(message)}", *(f"  {escaped(one)}" for one in details), *([f"  = help: {escaped(help)}"] if help else [])]
        self.tell("\n".join(lines) + "\n")

    def nothing_changed(self) -> None:
        """The last line of a command that failed before it could change anything."""
        self.tell(f"{NOTHING_CHANGED}\n")

    def left_behind(self, way_on: str) -> None:
        """Write the last line of every other failing command: the last committed epoch, and `way_on`, the next step, unless it is empty."""
        self.tell(f"{self._standing(f'; {way_on}' if way_on else '')}\n")

    def _standing(self, next_step: str) -> str:
        if self.standing is None:
            return NOTHING_CHANGED
        from storage.engines.errors import EngineUnavailable
        from storage.errors import StorageError

        try:
            epoch = self.standing()
        except (OSError, StorageError, EngineUnavailable):
            return f"The last committed epoch stands{next_step}."
        return NOTHING_CHANGED if epoch is None else f"Epoch {epoch} stands{next_step}."

    def end_of_run(self, result: RunResult) -> int:
        """The closing line of a run; gives its exit code."""
        if result.exit_code in (0, 2):
            self.note(summary(result))
        else:
            if result.message:
                self.failure(result.message)
            self.left_behind(REPAIR)
        return result.exit_code


def summary(result: RunResult) -> str:
    """What a run did, in one line."""
    ops = dict.fromkeys(("+A", "-R", "-C", "+C"), 0)
    for counts in result.counts.values():
        for op, count in counts.items():
            ops[op] += count
    changes = ", ".join(f"{op} {count:,}" for op, count in ops.items() if count)
    stands = f"epoch {result.epoch}" if result.epoch is not None else "no epoch yet"
    did = f"{stands}: {changes or 'no row changed'}" if result.committed else f"nothing changed, {stands}"
    rejected = f"; {result.rejected:,} rejected" if result.rejected else ""
    return f"{did[:1].upper()}{did[1:]}{rejected} ({result.seconds:.1f} s)"


def plural(count: int, word: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def csv_columns(rows: Iterable[Any], format: str, columns: Callable[[], Sequence[str]]) -> tuple[Iterator[Any], Sequence[str]]:
    """The rows and, where there are none and the answer is csv, the columns that they would have."""
    stream = iter(rows)
    held = list(islice(stream, 1))
    return chain(held, stream), columns() if format == "csv" and not held else ()


def rows_answer(console: Console, rows: Iterable[Any], format: str, columns: Sequence[str] = (), *, whole: bool = False) -> None:
    """Rows as the command's answer in the format that was asked for. A table fits the terminal, unless it is to be `whole`; where there is none nothing is cut."""
    from errata.rendering.rows import render

    console.answer(render(rows, format, columns, fit=None if whole else columns_of(sys.stdout)))  # type: ignore[arg-type]  # click has checked the choice
