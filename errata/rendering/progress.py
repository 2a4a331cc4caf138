"""What a run is doing: a line for each node as it ends, and on a terminal the node at work."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

from errata.options import Event
from errata.rendering.terminal import escaped, is_terminal, padded

Listener = Callable[[Event], None]


class Told(Protocol):
    """The part of the command line's console that progress needs."""

    no_color: bool

    def tells(self, level: str) -> bool:
        """Whether messages of a level are shown."""

    def note(self, text: str, *, level: str = "info") -> None:
        """A line beside the answer."""


@contextlib.contextmanager
def progress(console: Told) -> Iterator[Listener]:
    """A listener for the events of a run, for as long as it runs."""
    if console.tells("info") and is_terminal(sys.stderr):
        with _live(console) as listener:
            yield listener
    else:
        yield lambda event: _tell(console, event)


def _tell(console: Told, event: Event) -> None:
    """Nodes that had nothing to do are told with -v only."""
    if event.kind == "node":
        console.note(node_line(event), level="debug" if event.action == "skip" else "info")
    else:
        _said(console, event)


def _said(console: Told, event: Event) -> None:
    """What a run has to say besides its nodes."""
    if event.kind == "warning":
        console.note(f"warning: {escaped(event.action)}", level="warn")
    elif event.kind == "log":
        console.note(f"{event.level}: {escaped(event.action)}", level=event.level)


def node_line(event: Event) -> str:
    """One node: rows in and out, ops, rejected, seconds."""
    ops = [f"{op} {count:,}" for op, count in event.ops.items() if count]
    rejected = [f"rejected {event.rejected:,}"] if event.rejected else []
    rows = f"{event.rows_in:>12,} in {event.rows_out:>12,} out {event.seconds:>8.2f} s"
    return f"  {padded(escaped(event.node), 24)} {padded(event.type, 12)} {rows}  {'  '.join([*ops, *rejected])}".rstrip()


@contextlib.contextmanager
def _live(console: Told) -> Iterator[Listener]:
    """Lines above a spinner that names the node at work."""
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    terminal = Console(stderr=True, no_color=console.no_color, highlight=False, markup=False, emoji=False)
    with Status("starting", console=terminal, spinner="dots") as status:

        def listen(event: Event) -> None:
            if event.kind == "begin":
                status.update(Text(escaped(event.node)))
            elif event.kind == "node" and (event.action != "skip" or console.tells("debug")):
                terminal.print(node_line(event), soft_wrap=True)
            else:
                _said(console, event)

        yield listen
