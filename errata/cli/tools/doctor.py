"""`errata doctor`: what is there, and how to repair what is not."""

import click

from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.parameters import common_options, console_of, engine_option, format_option
from errata.core.failures import Exit
from errata.core.options import EngineKind

_TABLE = ("what", "verdict", "found")
"""The columns of a table of text. Lines of any length behind it say what to repair."""


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
    if format == "text":
        rows_answer(console, ({name: row[name] for name in _TABLE} for row in rows), format, _TABLE, lead=_TABLE)
        console.answer(f"{row['what']}: {row['repair']}\n" for row in rows if row["repair"])
    else:
        rows_answer(console, rows, format, (*_TABLE, "repair"))
    return Exit.STORAGE if any(row["verdict"] == "missing" for row in rows) else Exit.CLEAN
