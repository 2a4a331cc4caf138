"""`errata doctor`: what is there, and how to repair what is not."""

import click

from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.parameters import common_options, console_of, engine_option, format_option
from errata.core.failures import Exit
from errata.core.options import EngineKind


@click.command("doctor", cls=Command)
@engine_option
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, engine: EngineKind) -> int:
    r"""Look at engines, Java, Delta, versions and folders.

    \b
    What is there, and how to repair the rest:
      errata doctor
    What Spark lacks:
      errata doctor --engine spark
    """
    from errata.cli.doctor import examine

    console = console_of(quiet, verbose, no_color)
    rows = list(examine(engine))
    rows_answer(console, rows, format, ("what", "verdict", "found", "repair"), lead=("what", "verdict"))
    return Exit.STORAGE if any(row["verdict"] == "missing" for row in rows) else Exit.CLEAN
