"""`errata booked`: the rows of outputs that correct closed periods, and why."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from errata.cli.completion import epochs, node_names
from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options
from errata.rendering.rows import json_text


@click.command("booked", cls=Command)
@pipeline_options
@click.argument("output", required=False, shell_complete=node_names)
@option("--at", metavar="EPOCH", type=click.IntRange(min=1), shell_complete=epochs, help="What was booked at this epoch [default: the last].")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, output: str | None, at: int | None, **words: Any) -> int:
    r"""List the late changes of closed periods that are booked.

    \b
    All of them, with the period that each corrects and its cause:
      errata booked pipeline.yaml
    What one output had booked at epoch 12, as CSV:
      errata booked pipeline.yaml report --at 12 --format csv
    """
    from errata.inspect.booked import COLUMNS  # the command line starts without what reads a state

    console = console_of(quiet, verbose, no_color)
    rows = load_pipeline(console, words).booked(output, at)
    rows_answer(console, _flat(rows) if format in ("text", "csv") else rows, format, COLUMNS, lead=("output", "period", "figures"), empty="Nothing is booked.")
    return 0


def _flat(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Rows with maps as `name=value`, and causes in one cell."""
    for row in rows:
        maps = {name: ", ".join(f"{key}={value if isinstance(value, str) else json_text(value)}" for key, value in row[name].items()) for name in ("period", "into", "row", "figures")}
        yield {**row, **maps, "causes": "; ".join(row["causes"])}
