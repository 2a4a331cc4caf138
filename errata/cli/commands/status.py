"""`errata status`: epochs, cursors, live and suppressed rows.

As text also the suppressed groups, and what the next run would read.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from errata.cli.console import plural, rows_answer
from errata.cli.help import Command
from errata.cli.loading import load_for_reading
from errata.cli.parameters import common_options, console_of, format_option, pipeline_options
from errata.core.failures import Failure
from errata.rendering.rows import Look, json_text, render
from errata.rendering.terminal import escaped

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline
    from errata.inspect.snapshot import Snapshot

_MOST_GROUPS = 10


@click.command("status", cls=Command)
@pipeline_options
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, **words: Any) -> int:
    r"""Show epochs, cursors and live counts.

    \b
    Epochs, cursors and live rows:
      errata status pipeline.yaml
    The same for a program:
      errata status pipeline.yaml --format json
    """
    console = console_of(quiet, verbose, no_color)
    found = load_for_reading(console, words)
    status = found.status()
    if format in ("json", "jsonl"):
        console.answer([f"{json_text(status)}\n"])
    elif format == "csv":
        rows_answer(console, _rows(status), format, ("kind", "name"))
    else:
        with console.look(("name",)) as look:
            console.answer(_text(status, look), harmless_already=True)
        console.answer(_outlook(found, status))
    return 0


def _rows(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Sources and nodes in one table."""
    for kind in ("sources", "nodes"):
        for row in status[kind]:
            yield {"kind": kind.removesuffix("s"), **{name: _counted(value) for name, value in row.items()}}


def _counted(value: Any) -> Any:
    """The length of a list of files; any other value unchanged."""
    return len(value) if isinstance(value, list) else value


def _text(status: Mapping[str, Any], look: Look) -> Iterator[str]:
    epoch = status["epoch"]
    yield f"{escaped(status['pipeline'])}: {'never run' if epoch is None else f'epoch {epoch}'}, {plural(status['rejected'], 'record')} rejected{_waived(status)}\n\n"
    for kind in ("sources", "nodes"):
        yield from render([{name: _counted(value) for name, value in row.items()} for row in status[kind]], "text", look=look)
        yield "\n" if kind == "sources" else ""


def _waived(status: Mapping[str, Any]) -> str:
    oldest = f", the oldest since epoch {status['oldest_rejected_epoch']}" if "oldest_rejected_epoch" in status else ""
    return oldest + (f"; {status['waived']:,} waived" if "waived" in status else "")


def _outlook(found: "Pipeline | Snapshot", status: Mapping[str, Any]) -> Iterator[str]:
    """Yield the suppressed groups, and what the next run would read. Both need a pipeline without errors."""
    from errata.api.pipeline import Pipeline

    if not isinstance(found, Pipeline):
        return
    if any(row["rows_suppressed"] for row in status["sources"]):
        groups = [f"{row['group']} ({row['source']}, {plural(row['records'], 'record')})" for row in found.dlq_groups()]
        more = f" and {len(groups) - _MOST_GROUPS} more" if len(groups) > _MOST_GROUPS else ""
        yield f"\nsuppressed groups: {', '.join(groups[:_MOST_GROUPS])}{more}\n"
    try:
        news = [f"{row['node']} ({row['reason']})" for row in found.plan_next() if row["type"] == "source" and row["action"] not in ("skip", "remove")]
        yield f"\nthe next run reads: {', '.join(news) or 'nothing'}\n"
    except Failure as problem:
        yield f"\nthe next run: {problem.message}\n"
