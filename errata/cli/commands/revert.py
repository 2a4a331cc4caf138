"""`errata revert`: a new epoch whose corrections restore an earlier state."""

from typing import Any

import click

from errata.cli.completion import epochs
from errata.cli.events import begin_events, events_option
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, option, pipeline_options
from errata.core.options import RunOptions
from errata.rendering.progress import progress


@click.command("revert", cls=Command)
@pipeline_options
@option(
    "--to", "epoch", metavar="EPOCH", type=click.IntRange(min=0), shell_complete=epochs, required=True, help="The epoch to restore; 0 is before the first run."
)
@option("--force", is_flag=True, help="Replace output files that exist.")
@option("--reopen", is_flag=True, help="Let rows of closed periods change.")
@option("--wait", is_flag=True, help="Wait for another run's lock.")
@events_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, epoch: int, **words: Any) -> int:
    r"""Restore the state of an earlier epoch, as a new epoch.

    \b
    Back to the rows of epoch 12:
      errata revert pipeline.yaml --to 12
    Back to nothing, over output files that were changed by others:
      errata revert pipeline.yaml --to 0 --force
    """
    console = console_of(quiet, verbose, no_color)
    begin_events(console, words, holds=True)
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=True)
    with progress(console) as listener:
        options = RunOptions(engine=engine, listener=listener, execution_id=console.execution_id, **words)
        return console.end_of_run(pipeline.revert(epoch, options))
