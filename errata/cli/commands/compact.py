"""`errata compact`: fewer, larger files, and old epochs folded to a base."""

from typing import Any

import click

from errata.cli.completion import epochs
from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, format_option, option, pipeline_options


@click.command("compact", cls=Command)
@pipeline_options
@option("--before", metavar="EPOCH", type=click.IntRange(min=1), shell_complete=epochs, help="Fold the epochs before this one to a base.")
@format_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, before: int | None, **words: Any) -> int:
    r"""Compact tables; fold old epochs to a base.

    \b
    Fewer, larger files:
      errata compact pipeline.yaml
    Also fold the epochs before 100, which cannot be looked at afterwards:
      errata compact pipeline.yaml --before 100
    """
    console = console_of(quiet, verbose, no_color)
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=True)
    rows_answer(console, pipeline.compact(before, engine), format, ("table",))
    return 0
