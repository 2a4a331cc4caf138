"""`errata export`: the changelog of a node as a dataset of Open Data Fabric."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from errata.api.on_demand import dataset_export, snapshot
from errata.cli.completion import node_names
from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.loading import known_node, load_for_reading
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options

_COLUMNS = ("epoch", "rows", "first_offset", "last_offset", "block", "kind")


@click.command("export", cls=Command)
@click.argument("form", metavar="odf", type=click.Choice(["odf"]))
@pipeline_options
@click.argument("node", shell_complete=node_names)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@option("--name", "alias", metavar="ALIAS", help="The name of the dataset, as `account/name` or `name`.")
@option("--event-time", metavar="COLUMN", help="The column with the event time [default: the watermark's column, else the begin of the run].")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, form: str, node: str, directory: Path, alias: str | None, event_time: str | None, **words: Any) -> int:
    r"""Write the changelog of a node as a dataset of Open Data Fabric.

    Each epoch is a block of data. Of a dataset that is there, the epochs that it lacks are added.

    \b
    A dataset that kamu can pull:
      errata export odf pipeline.yaml totals published/totals
    With a name, and event times out of a column:
      errata export odf pipeline.yaml orders published/orders --name shop/orders --event-time sold_at
    """
    console = console_of(quiet, verbose, no_color)
    pipeline = load_for_reading(console, words)
    reading = pipeline if isinstance(pipeline, snapshot.Snapshot) else pipeline.snapshot()
    done = dataset_export.export_dataset(reading, known_node(pipeline, node), directory, alias=alias, event_time=event_time)
    if done.note is not None:
        console.note(f"{done.note[0].upper()}{done.note[1:]}.", level="warn")
    if format != "text":
        rows_answer(console, done.added, format, _COLUMNS)
        return 0
    console.note(f"{directory}: {done.dataset}")
    console.note(f"{_counted(done.added)}. The head is {done.head}.")
    return 0


def _counted(added: Sequence[Mapping[str, Any]]) -> str:
    """Say in words what was written."""
    if not added:
        return "Nothing is new"
    blocks = f"{len(added):,} block{'s' if len(added) > 1 else ''} of data"
    return f"Wrote {blocks} with {sum(one['rows'] for one in added):,} op rows, up to epoch {added[-1]['epoch']}"
