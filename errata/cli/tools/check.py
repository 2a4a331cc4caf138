"""`errata check`: every problem of a pipeline at once. No data is read."""

from typing import Any

import click

from errata.cli.console import Console, plural, rows_answer
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, format_option, pipeline_options
from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.core.failures import Exit
from errata.rendering.diagnostics import as_object

_COLUMNS = ("code", "severity", "message", "file", "line", "column", "length", "node", "labels", "help")


@click.command("check", cls=Command)
@pipeline_options
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, **words: Any) -> int:
    r"""Find every problem of a pipeline; no data is read.

    Diagnostics go to standard error. With another format than text they are rows on standard output too.

    \b
    All problems of a pipeline:
      errata check pipeline.yaml
    The same for a program, with codes and places:
      errata check pipeline.yaml --format jsonl
    """
    console = console_of(quiet, verbose, no_color)
    name = words["pipeline"]
    found: list[Diagnostic] = []
    try:
        pipeline = load_pipeline(console, words)
        found += pipeline.diagnostics
        pipeline.check()
    except PipelineErrors as errors:
        _rows(console, [*found, *errors.diagnostics], format)
        raise
    _rows(console, found, format)
    console.note(f"{name}: {plural(len(pipeline.node_names), 'node')}, no errors")
    return Exit.CLEAN


def _rows(console: Console, found: Any, format: str) -> None:
    if format != "text":
        objects = [as_object(one) for one in found if isinstance(one, Diagnostic)]
        rows_answer(console, objects, format, _COLUMNS)
