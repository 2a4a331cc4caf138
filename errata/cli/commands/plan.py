"""`errata plan`: what the next run would do, per node, and why."""

from typing import Any

import click

from errata.cli import forecasts
from errata.cli.console import rows_answer, would_stop
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, option, pipeline_options
from errata.core.options import RunOptions
from errata.rendering.progress import engine_line, progress


@click.command("plan", cls=Command)
@pipeline_options
@option("--diff", "differ", is_flag=True, help="Also compute what the run would change in each output; nothing is committed.")
@forecasts.forecast_options
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, rows: int, differ: bool, **words: Any) -> int:
    r"""Show what the next run would do, and why.

    \b
    What the files that came would change in the outputs:
      errata plan pipeline.yaml --diff
    The same for a pull request:
      errata plan pipeline.yaml --diff --format markdown
    """
    if format == forecasts.MARKDOWN and not differ:
        raise click.UsageError("--format markdown needs --diff", click.get_current_context())
    console = console_of(quiet, verbose, no_color)
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=differ)
    pipeline.check()
    if differ:
        with progress(console) as listener:
            found = pipeline.forecast(RunOptions(engine=engine, listener=listener), rows=rows)
        forecasts.answer(console, found, format)
        console.nothing_changed()
        return 0
    outlook = pipeline.outlook()
    chosen = outlook.engine(engine)
    console.note("Engine: none (nothing to do)" if chosen is None else engine_line(*chosen))
    if stopped := outlook.stopped():
        console.note(would_stop(stopped))
    rows_answer(console, outlook.rows(), format, ("node", "type", "action", "rows", "reason"), lead=("node", "action", "reason"))
    return 0
