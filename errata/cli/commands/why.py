"""`errata why`: the source records and corrections behind a row."""

from collections.abc import Sequence
from typing import Any

import click

from errata.cli.completion import node_names
from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.loading import known_node, load_for_reading
from errata.cli.parameters import Assignment, common_options, console_of, format_option, pairs, pipeline_options


@click.command("why", cls=Command)
@pipeline_options
@click.argument("node", shell_complete=node_names)
@click.argument("conditions", nargs=-1, required=True, metavar="FIELD=VALUE...", type=Assignment())
@format_option
@common_options
def command(
    quiet: bool,
    verbose: int,
    no_color: bool,
    format: str,
    node: str,
    conditions: Sequence[tuple[str, str]],
    **words: Any,
) -> int:
    r"""Show the source records behind a row.

    \b
    The records behind a row:
      errata why pipeline.yaml totals region=EU
    Behind all rows of a month, as JSON:
      errata why pipeline.yaml totals month=2026-01 --format json
    """
    from errata.inspect.snapshot import Snapshot  # the command line starts without what reads a state
    from errata.inspect.why import why

    console = console_of(quiet, verbose, no_color)
    pipeline = load_for_reading(console, words)
    name, wanted = known_node(pipeline, node), pairs(conditions, "field")
    rows_answer(console, why(pipeline, name, wanted) if isinstance(pipeline, Snapshot) else pipeline.why(name, wanted), format, lead=("source", "file", "row", "op", "data"), keep=True)
    return 0
