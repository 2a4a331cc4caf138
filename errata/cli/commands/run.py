"""`errata run`: everything the first time, afterwards only what changed."""

from pathlib import Path
from typing import Any

import click

from errata.cli.console import LEVELS, would_stop
from errata.cli.events import begin_events, events_option
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, option, pipeline_options, together
from errata.core.options import RunOptions
from errata.rendering.progress import progress

EXPLAINED = ("text", "json", "dot")


class RunCommand(Command):
    """Lets `--explain` come without a value before the pipeline's name: only text, json and dot are values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does."""
        pairs = zip(args, [*args[1:], ""], strict=False)
        alone = [f"{word}=text" if word == "--explain" and following not in EXPLAINED else word for word, following in pairs]
        return super().parse_args(ctx, alone)


run_options = together(
    option("--batch-id", metavar="ID", help="Name of this execution [default: a UUID v7]."),
    option("--explain", type=click.Choice(EXPLAINED), is_flag=False, flag_value="text", help="Print the plan, read no data."),
    option("--dry-run", is_flag=True, help="Validate only; no data is read."),
    option("--dry-run-n", "-n", "preview", metavar="N", type=click.IntRange(min=1), help="Preview the first N records of each source."),
    option("--dry-run-output", "preview_output", metavar="FILE", type=click.Path(path_type=Path), help="Where the preview goes [default: stdout]."),
    option("--error-threshold", metavar="N", type=click.IntRange(min=0), default=0, help="Stop above N rejected records; 0: no limit."),
    option("--force", is_flag=True, help="Replace output files that exist."),
    option("--log-level", type=click.Choice(LEVELS), default="info", help="Which messages are printed."),
    option("--metrics-spool-dir", metavar="DIR", type=click.Path(path_type=Path), help="Folder for the run's metrics file."),
    option("--from-cursors", is_flag=True, help="Read only beyond the rollback cursors, and what is suppressed."),
    option("--full-refresh", is_flag=True, help="Forget the state and start at epoch 1."),
    option("--ephemeral", is_flag=True, help="Keep no state: a plain batch run."),
    option("--max-retract-share", metavar="F", type=click.FloatRange(0, 1), help="Stop when more than this share of a source would be retracted [default: 0.5]."),
    option("--reopen", is_flag=True, help="Let rows of closed periods change."),
    option("--wait", is_flag=True, help="Wait for another run's lock."),
    events_option,
)  # fmt: skip

_EXCLUSIVE = (("full_refresh", "ephemeral"), ("full_refresh", "from_cursors"), ("ephemeral", "from_cursors"))


@click.command("run", cls=RunCommand)
@pipeline_options
@run_options
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, log_level: str, explain: str | None, **words: Any) -> int:
    r"""Run a pipeline.

    The first time everything, afterwards only what changed.

    \b
    Everything the first time, afterwards only what changed:
      errata run pipeline.yaml
    See the first 20 records of each source go through, without a commit:
      errata run pipeline.yaml -n 20
    """
    console = console_of(quiet, verbose, no_color, log_level)
    _check({**words, "explain": explain})
    begin_events(console, _previewed(words) | {"events": words.pop("events")})
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=True)
    if console.events is not None:
        console.events.start()
    if explain:
        console.explain(pipeline.explain(explain))
        return 0
    with progress(console) as listener:
        options = RunOptions(engine=engine, listener=listener, log_level=console.level, execution_id=console.execution_id, **_previewed(words))
        result = pipeline.run(options)
    console.answer([result.preview])
    if options.dry_run and result.exit_code == 0:
        if result.message:
            console.note(would_stop(result.message))
        console.note("The pipeline is valid; nothing was changed.")
        return 0
    return console.end_of_run(result)


def _check(words: dict[str, Any]) -> None:
    """Raise click.UsageError for options that exclude each other."""
    for one, other in _EXCLUSIVE:
        if words[one] and words[other]:
            raise click.UsageError(f"--{one.replace('_', '-')} and --{other.replace('_', '-')} exclude each other")
    if words["preview_output"] and not words["preview"]:
        raise click.UsageError("--dry-run-output needs -n N")
    if words["events"] and words["explain"]:
        raise click.UsageError("--events and --explain exclude each other")
    if words["events"] and words["preview"] and not words["preview_output"]:
        raise click.UsageError("--events needs --dry-run-output FILE beside -n N: standard output has events only")


def _previewed(words: dict[str, Any]) -> dict[str, Any]:
    """The words of a run, where -n implies --dry-run."""
    return {**words, "dry_run": words["dry_run"] or words["preview"] is not None}
