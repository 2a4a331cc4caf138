"""`errata status`: epochs, cursors, live and suppressed rows."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from errata.cli.console import plural, rows_answer
from errata.cli.loading import reading_of
from errata.cli.parameters import common_options, console_of, format_option, project_options
from errata.rendering.rows import json_text, render


@click.command("status")
@project_options
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, **words: Any) -> int:
    """Show epochs, cursors and live counts."""
    console = console_of(quiet, verbose, no_color)
    status = reading_of(console, words).status()
    if format in ("json", "jsonl"):
        console.answer([f"{json_text(status)}\n"])
    elif format == "csv":
        rows_answer(console, _rows(status), format, ("kind", "name"))
    else:
        console.answer(_text(status))
    return 0


def _rows(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Sources and nodes in one table."""
    for kind in ("sources", "nodes"):
        for row in status[kind]:
            yield {"kind": kind.removesuffix("s"), **{name: _counted(value) for name, value in row.items()}}


def _counted(value: Any) -> Any:
    """Lists of files are told by their number."""
    return len(value) if isinstance(value, list) else value


def _text(status: Mapping[str, Any]) -> Iterator[str]:
    epoch = status["epoch"]
    yield f"{status['pipeline']}: {'never run' if epoch is None else f'epoch {epoch}'}, {plural(status['rejected'], 'record')} rejected\n\n"
    for kind in ("sources", "nodes"):
        yield from render([{name: _counted(value) for name, value in row.items()} for row in status[kind]], "text")
        yield "\n" if kind == "sources" else ""
