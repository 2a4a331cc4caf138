"""`errata doctor`: what is there, and how to repair what is not."""

import click

from errata.cli.console import rows_answer
from errata.cli.parameters import common_options, console_of, engine_option, format_option
from errata.core.failures import Exit
from errata.core.options import EngineKind


@click.command("doctor")
@engine_option
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, engine: EngineKind) -> int:
    """Look at engines, Java, Delta, versions and folders."""
    from errata.cli.doctor import examine

    console = console_of(quiet, verbose, no_color)
    rows = list(examine(engine))
    rows_answer(console, rows, format, ("what", "verdict", "found", "repair"), lead=("what", "verdict"))
    return Exit.STORAGE if any(row["verdict"] == "missing" for row in rows) else Exit.CLEAN
