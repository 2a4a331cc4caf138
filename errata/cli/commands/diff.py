"""`errata diff`: the net difference of a node between two epochs, or between now and what another pipeline file would give."""

from pathlib import Path
from typing import Any

import click

from errata.cli import forecasts
from errata.cli.completion import epochs, node_names
from errata.cli.console import Console, changes_answer
from errata.cli.help import Command
from errata.cli.loading import known_node, load_for_reading, load_pipeline
from errata.cli.parameters import PIPELINE_WORDS, common_options, console_of, engine_of, engine_options, option, pipeline_options
from errata.core.failures import Usage
from errata.core.options import RunOptions
from errata.rendering.progress import progress


@click.command("diff", cls=Command)
@pipeline_options
@click.argument("node", required=False, shell_complete=node_names)
@option("--from", "start", metavar="EPOCH", type=click.IntRange(min=0), shell_complete=epochs, help="The earlier epoch; 0 is before the first run [default: the one before --to].")
@option("--to", "end", metavar="EPOCH", type=click.IntRange(min=0), shell_complete=epochs, help="The later epoch [default: the last].")
@option("--pipeline", "other", metavar="FILE", type=click.Path(path_type=Path), help="Compare with what this pipeline file would give; nothing is committed.")
@forecasts.forecast_options
@engine_options
@common_options
def command(
    quiet: bool, verbose: int, no_color: bool, format: str, node: str | None, start: int | None, end: int | None, other: Path | None, rows: int, **words: Any
) -> int:
    r"""Show the net difference of a node between two epochs, or what an edited pipeline would change.

    \b
    What the last epoch changed in the outputs:
      errata diff pipeline.yaml
    What changed between two epochs:
      errata diff pipeline.yaml totals --from 3 --to 5
    What an edited pipeline would change in each output, for a pull request:
      errata diff pipeline.yaml --pipeline edited.yaml --format markdown
    """
    context = click.get_current_context()
    console = console_of(quiet, verbose, no_color)
    engine = engine_of(words)
    if other is not None:
        if start is not None or end is not None:
            raise click.UsageError("--pipeline compares with now; --from and --to do not go with it", context)
        return _with_other(console, words, other, node, RunOptions(engine=engine), (format, rows))
    if format == forecasts.MARKDOWN:
        raise click.UsageError("--format markdown needs --pipeline", context)
    pipeline = load_for_reading(console, words)
    head = pipeline.head_epoch()
    if head is None:
        raise Usage.no_run()
    end = (head if start is None else max(head, start)) if end is None else end
    start = max(end - 1, 0) if start is None else start
    if node is not None:
        changes_answer(console, pipeline.diff(known_node(pipeline, node), start, end), format, lead=("op",))
        return 0
    outputs = [one["name"] for one in pipeline.status()["nodes"] if one["type"] == "output"]
    changed = ({"node": name, **row} for name in outputs for row in pipeline.diff(name, start, end))
    changes_answer(console, changed, format, lead=("node", "op"))
    return 0


def _with_other(console: Console, words: dict[str, Any], other: Path, node: str | None, options: RunOptions, shown: tuple[str, int]) -> int:
    """Show the changes that another pipeline file would make to the outputs of a pipeline."""
    from errata.api.pipeline import state_for  # the command line starts without what plans pipelines

    given = {name: words[name] for name in PIPELINE_WORDS}
    state = state_for(given["pipeline"], given["state"])
    edited = load_pipeline(console, {**given, "pipeline": other}, commits=False)
    names = [] if node is None else [known_node(edited, node)]
    with progress(console) as listener:
        found = edited.forecast(RunOptions(engine=options.engine, listener=listener), names, shown[1], state)
    forecasts.answer(console, found, shown[0])
    console.nothing_changed()
    return 0
