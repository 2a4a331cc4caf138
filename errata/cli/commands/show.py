"""`errata show`: the live state of a node, now or at an epoch."""

from itertools import islice
from typing import Any

import click

from errata.cli.completion import epochs, node_names
from errata.cli.console import csv_columns, rows_answer
from errata.cli.help import Command
from errata.cli.loading import known_node, load_for_reading
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options


@click.command("show", cls=Command)
@pipeline_options
@click.argument("node", shell_complete=node_names)
@option("--at", metavar="EPOCH", type=click.IntRange(min=1), shell_complete=epochs, help="The rows of this epoch.")
@option("--limit", metavar="N", type=click.IntRange(min=1), help="At most this many rows, the first ones.")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, node: str, at: int | None, limit: int | None, **words: Any) -> int:
    r"""Show the live rows of a node.

    \b
    The first live rows of a node:
      errata show pipeline.yaml totals --limit 10
    The rows of an earlier epoch, as CSV:
      errata show pipeline.yaml totals --at 3 --format csv
    """
    console = console_of(quiet, verbose, no_color)
    pipeline = load_for_reading(console, words)
    known = known_node(pipeline, node)
    rows, columns = csv_columns(islice(pipeline.show(known, at), limit), format, lambda: pipeline.columns(known))
    rows_answer(console, rows, format, columns)
    return 0
