"""`errata show`: the live state of a node, now or at an epoch."""

from typing import Any

import click

from errata.cli.console import csv_columns, rows_answer
from errata.cli.loading import known_node, load_for_reading
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options


@click.command("show")
@pipeline_options
@click.argument("node")
@option("--at", metavar="EPOCH", type=click.IntRange(min=1), help="The rows of this epoch.")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, node: str, at: int | None, **words: Any) -> int:
    """Show the live rows of a node."""
    console = console_of(quiet, verbose, no_color)
    pipeline = load_for_reading(console, words)
    known = known_node(pipeline, node)
    rows, columns = csv_columns(pipeline.show(known, at), format, lambda: pipeline.columns(known))
    rows_answer(console, rows, format, columns)
    return 0
