"""`--events jsonl`: events on standard output in the place of an answer."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from errata.cli.console import Console
from errata.core.uuid7 import uuid7
from errata.rendering.event_stream import EventStream
from errata.state.tally import Tally

if TYPE_CHECKING:  # the command line starts without what loads a pipeline
    from errata.api.pipeline import Pipeline
    from errata.inspect.snapshot import Snapshot
    from storage.state.entry import Entry

events_option = click.option("--events", type=click.Choice(["jsonl"]), help="Write events to standard output, one JSON object a line.")
"""For commands that commit an epoch. No variable of the environment sets it, since it takes the place of answers."""


def begin_events(console: Console, words: dict[str, Any], *, holds: bool = False) -> None:
    """Take `--events` from a command's words, and let the console write events where it is there.

    Args:
        holds: Whether the command may find, once it looks at the rows, that its words fit nothing.
    """
    if words.pop("events") is not None:
        channel = words.get("channel")
        console.events = EventStream(
            sys.stdout, uuid7(datetime.now(UTC)), words.get("engine") or "auto", words.get("batch_id"), words.get("dry_run", False), None if channel is None else str(channel), holds=holds,
        )  # fmt: skip


def known_pipeline(stream: EventStream, pipeline: "Pipeline") -> None:
    """Tell the stream what is known of the pipeline once it is planned."""
    stream.pipeline = pipeline.loaded.name
    stream.channel = pipeline.plan.settings.channel or stream.channel
    stream.names = frozenset(_names(pipeline))
    stream.stands = lambda: _standing(pipeline.head())
    stream.begin()


def known_state(stream: EventStream, snapshot: "Snapshot | None") -> None:
    """Tell the stream what the last committed run of a pipeline left that cannot be planned."""
    if snapshot is not None:
        stream.pipeline = snapshot.name
        stream.stands = lambda: _standing(snapshot.head)
    stream.begin()


def _standing(head: "Entry | None") -> tuple[int, int]:
    """The epoch of a ledger entry, and the number of rejected records."""
    return (0, 0) if head is None else (head.epoch, Tally.noted(head.counters).open)


def _names(pipeline: "Pipeline") -> Iterator[str]:
    """The nodes, the columns, and every text of the pipeline's file."""
    for node in pipeline.plan:
        yield node.name
        yield from node.operator.output.data
    document = pipeline.loaded.document
    pending: list[Any] = [] if document is None else [document.shown_value()]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend([*value, *value.values()])
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, str):
            yield value
