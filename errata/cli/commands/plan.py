"""`errata plan`: what the next run would do, per node, and why."""

from typing import Any

import click

from errata.cli.console import rows_answer
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, format_option, pipeline_options
from errata.rendering.progress import engine_line


@click.command("plan")
@pipeline_options
@format_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, **words: Any) -> int:
    """Show what the next run would do, and why."""
    console = console_of(quiet, verbose, no_color)
    engine = engine_of(words)
    pipeline = load_pipeline(console, words)
    pipeline.check()
    outlook = pipeline.outlook()
    chosen = outlook.engine(engine)
    console.note("Engine: none (nothing to do)" if chosen is None else engine_line(*chosen))
    rows_answer(console, outlook.rows(), format, ("node", "type", "action", "rows", "reason"))
    return 0
