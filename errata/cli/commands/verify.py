"""`errata verify`: fold, hash chain and conservation checks."""

from typing import Any

import click

from errata.cli.console import plural, rows_answer
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, format_option, option, pipeline_options
from errata.core.failures import Exit


@click.command("verify", cls=Command)
@pipeline_options
@option("--recompute", is_flag=True, help="Compare with a batch run over the source rows too; starts an engine.")
@format_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, recompute: bool, **words: Any) -> int:
    r"""Audit the state of a pipeline.

    Exit code 5 where something is wrong.

    \b
    Check that the state adds up:
      errata verify pipeline.yaml
    Compare with a batch run over the source rows too:
      errata verify pipeline.yaml --recompute
    """
    console = console_of(quiet, verbose, no_color)
    engine = engine_of(words)
    rows = list(load_pipeline(console, words).verify(recompute, engine))
    rows_answer(console, rows, format, ("check", "node", "epoch", "verdict", "detail"), lead=("check", "verdict", "detail"))
    violations = sum(row["verdict"] != "ok" for row in rows)
    if not violations:
        console.note(f"{plural(len(rows), 'check')}, no violation")
        return Exit.CLEAN
    console.failure(f"{plural(violations, 'violation')} in {plural(len(rows), 'check')}")
    console.nothing_changed()
    return Exit.VIOLATION
