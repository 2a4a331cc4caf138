"""Progress of a run: a line for each node that ended; on a terminal also the node at work."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from errata.core.events import Event
from errata.rendering.event_stream import EventStream
from errata.rendering.terminal import cut, escaped, is_terminal, ops_styled, padded, width

Listener = Callable[[Event], None]
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
A_SECOND = 5
"""How often a second the line of the node at work is drawn."""
ENGINES = {"spark": "Apache Spark", "sail": "Sail"}
SHORTEST_NAME = 24
"""How many columns the name of a node gets at least, where lines may be long."""
WHOLE = 10_000_000
"""Numbers from here on are shown in millions where there is little room."""


class Printer(Protocol):
    """The part of the command line's console that progress needs."""

    @property
    def color(self) -> bool:
        """Whether standard error shows colour."""

    @property
    def events(self) -> EventStream | None:
        """The writer of the run's events for other programs; None where nobody asked for them."""

    def shows(self, level: str) -> bool:
        """Whether messages of a level are printed."""

    def note(self, text: str, *, level: str = "info") -> None:
        """Print a line to standard error."""


@contextlib.contextmanager
def progress(console: Printer) -> Iterator[Listener]:
    """Return a listener for the events of a run, while the context is open."""
    if console.shows("info") and is_terminal(sys.stderr):
        with _live(console) as listener:
            yield _forwarding(console, listener)
    else:
        yield _forwarding(console, _Lines(console).heard)


def _forwarding(console: Printer, listener: Listener) -> Listener:
    """The listener, which also tells other programs."""
    if (stream := console.events) is None:
        return listener

    def listen(event: Event) -> None:
        stream.heard(event)
        listener(event)

    return listen


class _Lines:
    """Prints a line for each event, with room for the longest name of a node."""

    def __init__(self, console: Printer) -> None:
        self._console = console
        self._named = SHORTEST_NAME

    def heard(self, event: Event) -> None:
        """Print an event. Nodes without work are printed with -v only."""
        if event.kind == "planned":
            self._named = max(SHORTEST_NAME, *(width(escaped(one["node"])) for one in event.facts["nodes"]), 0)
        elif event.kind == "node":
            line = ops_styled(node_line(event, self._named), on=self._console.color)
            self._console.note(line, level="debug" if event.action == "skip" else "info")
        else:
            _message(self._console, event)


def _message(console: Printer, event: Event) -> None:
    """Print an engine, a warning or a log."""
    if event.kind == "engine":
        console.note(engine_line(event.node, event.action))
    if event.kind == "warning":
        console.note(f"warning: {escaped(event.action)}", level="warn")
    elif event.kind == "log":
        console.note(f"{event.level}: {escaped(event.action)}", level=event.level)


def engine_line(engine: str, reason: str) -> str:
    """Return the engine of a run, and why it was chosen."""
    return f"Engine: {engine} ({reason})"


def node_line(event: Event, named: int = SHORTEST_NAME) -> str:
    """Return one node: rows in and out, ops, rejected, seconds.

    Args:
        event: The node's end.
        named: How many columns its name gets.
    """
    ops = [f"{op} {count:,}" for op, count in event.ops.items() if count]
    rejected = [f"rejected {event.rejected:,}"] if event.rejected else []
    rows = f"{event.rows_in:>12,} in {event.rows_out:>12,} out {event.seconds:>8.2f} s"
    return f"  {padded(escaped(event.node), named)} {padded(event.type, 12)} {rows}  {'  '.join([*ops, *rejected])}".rstrip()


def short_line(event: Event, columns: int) -> str:
    """Return `node_line` cut to a terminal's columns. Long names are cut; the rows out are left out, since they are the sum of the ops."""
    ops = [f"{op} {_short(count)}" for op, count in event.ops.items() if count]
    rejected = [f"rejected {_short(event.rejected)}"] if event.rejected else []
    name = padded(cut(escaped(event.node), _named(columns)), _named(columns))
    rows = f"{_short(event.rows_in):>9} in {event.seconds:>6.1f} s"
    return cut(f"  {name} {event.type:<9} {rows}  {' '.join([*ops, *rejected])}".rstrip(), columns)


def _named(columns: int) -> int:
    """How many of a terminal's columns a node's name gets."""
    return min(max(columns - 62, 10), 40)


def _short(count: int) -> str:
    return f"{count:,}" if count < WHOLE else f"{count / 1e6:,.0f}M"


@dataclass(slots=True)
class AtWork:
    """The line of the node at work. `heard` takes a run's events; `line` shows what the run does or waits for."""

    clock: Callable[[], float] = monotonic
    engine: str = ""
    starting: Callable[[], bool] = lambda: False
    answered: bool = False
    """Whether a node that uses the engine has ended."""
    now: Event | None = None
    since: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin to count."""
        self.since = self.clock()

    def heard(self, event: Event) -> None:
        """Record an engine, a node that begins, or a node that ended."""
        if event.kind == "engine":
            self.engine, self.starting = ENGINES.get(event.node, event.node), event.starting
        elif event.kind == "begin":
            self.now, self.since = event, self.clock()
        elif event.kind == "node":
            self.answered |= event.action != "skip"

    def line(self, columns: int) -> str:
        """Return the line, cut to the terminal's columns, with the seconds at its end."""
        seconds = self.clock() - self.since
        frame, end = FRAMES[int(seconds * A_SECOND) % len(FRAMES)], f"{seconds:>5.0f} s"
        room = columns - len(frame) - len(end) - 2
        name = f"{escaped(self.now.node)}: " if self.now is not None and self.now.node else ""
        return f"{frame} {padded(cut(name + self._doing(), room), min(room, 60))}{end}"

    def _doing(self) -> str:
        if self.starting():
            return f"waiting for {self.engine} to start"
        if self.now is None:
            return "looking at the sources"
        action = self.now.action if self.now.action not in ("first", "delta", "rebuild") else self.now.type
        rows = f", {self.now.rows_in:,} rows in" if self.now.rows_in else ""
        return f"{action}{rows}{'' if self.answered or not self.now.node else f', first query of {self.engine}'}"


@contextlib.contextmanager
def _live(console: Printer) -> Iterator[Listener]:
    """Lines above the line of the node at work."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    terminal = Console(stderr=True, no_color=not console.color, highlight=False, markup=False, emoji=False)
    work = AtWork()

    def drawn() -> Text:
        return Text(work.line(terminal.width), no_wrap=True, overflow="crop")

    with Live(console=terminal, get_renderable=drawn, refresh_per_second=A_SECOND, transient=True) as live:

        def listen(event: Event) -> None:
            work.heard(event)
            if event.kind == "node" and (event.action != "skip" or console.shows("debug")):
                live.refresh()  # a printed line draws this one again, as it was drawn last
                terminal.print(Text.from_ansi(ops_styled(short_line(event, terminal.width), on=console.color)), soft_wrap=True)
            else:
                _message(console, event)

        yield listen
