"""`errata plan`: what the next run would do, per node, and why."""

from typing import Any

import click

from errata.cli.console import rows_answer
from errata.cli.loading import project_of
from errata.cli.parameters import common_options, console_of, format_option, project_options


@click.command("plan")
@project_options
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, **words: Any) -> int:
    """Show what the next run would do, and why."""
    console = console_of(quiet, verbose, no_color)
    rows_answer(console, project_of(console, words).plan_next(), format, ("node", "type", "action", "rows", "reason"))
    return 0
