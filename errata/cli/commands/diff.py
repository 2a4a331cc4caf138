"""`errata diff`: the net difference of a node between two epochs, by key."""

from typing import Any

import click

from errata.cli.console import rows_answer
from errata.cli.loading import known_node, load_for_reading
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options


@click.command("diff")
@pipeline_options
@click.argument("node")
@option("--from", "start", metavar="EPOCH", type=click.IntRange(min=0), required=True, help="The earlier epoch; 0 is before the first run.")
@option("--to", "end", metavar="EPOCH", type=click.IntRange(min=0), required=True, help="The later epoch.")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, node: str, start: int, end: int, **words: Any) -> int:
    """Show the net difference of a node between two epochs."""
    console = console_of(quiet, verbose, no_color)
    pipeline = load_for_reading(console, words)
    rows_answer(console, pipeline.diff(known_node(pipeline, node), start, end), format, ("op", "before", "after"))
    return 0
