"""`errata corrections`: the corrections beside a pipeline, and what became of each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options
from errata.core.options import CORRECTION_COLUMNS, CORRECTION_STATES
from errata.rendering.rows import json_text


@click.command("corrections", cls=Command)
@pipeline_options
@option("--only", "states", multiple=True, type=click.Choice(CORRECTION_STATES), help="Only corrections in this state; may be given several times.")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, states: Sequence[str], **words: Any) -> int:
    r"""List corrections as code and their states.

    \b
    All of them:
      errata corrections pipeline.yaml
    Corrections that do not hold any more, as CSV:
      errata corrections pipeline.yaml --only conflict --only dangling --format csv
    """
    console = console_of(quiet, verbose, no_color)
    rows = (row for row in load_pipeline(console, words).corrections() if not states or row["state"] in states)
    rows_answer(console, _flat(rows) if format in ("text", "csv") else rows, format, CORRECTION_COLUMNS, lead=("key", "state"), empty="There are no corrections as code.")
    return 0


def _flat(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Rows with keys as `name=value`, and other nested values as compact JSON."""
    for row in rows:
        cells = {name: json_text(value) if isinstance(value, dict | list) else value for name, value in row.items()}
        yield {**cells, "key": ", ".join(f"{name}={text}" for name, text in row["key"].items())}
