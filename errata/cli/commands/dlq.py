"""`errata dlq`: rejected and suppressed records by trigger."""

from typing import TYPE_CHECKING, Any

import click

from errata.cli.console import Console, rows_answer
from errata.cli.events import begin_events, events_option
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, format_option, pipeline_options
from errata.core.options import EngineOptions, RunOptions
from errata.rendering.progress import progress

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline


@click.command("dlq", cls=Command)
@pipeline_options
@click.argument("action", type=click.Choice(["list", "groups", "retry"]), default="list")
@click.argument("group", required=False)
@format_option
@events_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, action: str, group: str | None, **words: Any) -> int:
    r"""Show rejected and suppressed records.

    ACTION is list (the default), groups, or retry GROUP, which admits a group again.

    \b
    Rejected records with their reasons:
      errata dlq pipeline.yaml
    Admit the suppressed records of a group again:
      errata dlq pipeline.yaml retry A17
    """
    console = console_of(quiet, verbose, no_color)
    if (action == "retry") != (group is not None):
        raise click.UsageError("retry takes the group that is tried again; list and groups take nothing", click.get_current_context())
    if words["events"] and group is None:
        raise click.UsageError("--events goes with retry", click.get_current_context())
    begin_events(console, words, holds=True)
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=action == "retry")
    if group is not None:
        return _retry(console, pipeline, group, engine)
    from errata.inspect.dlq import ENTRIES, GROUPS

    if action == "list":
        rows_answer(console, pipeline.dlq_list(), format, ENTRIES, lead=("detail",), after=("file", "row", "source", "category"))
    else:
        rows_answer(console, pipeline.dlq_groups(), format, GROUPS, lead=("group", "detail"), after=("records", "trigger"))
    return 0


def _retry(console: Console, pipeline: "Pipeline", group: str, engine: EngineOptions) -> int:
    with progress(console) as listener:
        return console.end_of_run(pipeline.dlq_retry(group, RunOptions(engine=engine, listener=listener, execution_id=console.execution_id)))
