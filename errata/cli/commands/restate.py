"""`errata restate`: what was published first for each period, what is said now, and why."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from errata.cli.completion import epochs, node_names
from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.loading import known_node, load_for_reading
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options
from errata.core.options import Restatement
from errata.rendering.rows import json_text


@click.command("restate", cls=Command)
@pipeline_options
@click.argument("node", shell_complete=node_names)
@option("--by", metavar="FIELD[,FIELD]", required=True, multiple=True, help="The fields whose values are a period.")
@option("--field", "fields", metavar="NAME", multiple=True, help="Compare this column only; may be given several times.")
@option("--from", "start", metavar="EPOCH", type=click.IntRange(min=1), shell_complete=epochs, help="What was live at this epoch counts as published.")
@option("--to", "end", metavar="EPOCH", type=click.IntRange(min=1), shell_complete=epochs, help="Compare with this epoch [default: the last].")
@format_option
@common_options
def command(
    quiet: bool, verbose: int, no_color: bool, format: str, node: str, by: Sequence[str], fields: Sequence[str], start: int | None, end: int | None, **words: Any
) -> int:
    r"""Show what was published first for each period, what is said now, and why.

    \b
    What became of the months that were published:
      errata restate pipeline.yaml totals --by month
    Changes of the total since the books were closed in epoch 41, as CSV:
      errata restate pipeline.yaml totals --by month,region --field total --from 41 --format csv
    """
    from errata.inspect.restate import columns_of, restate  # the command line starts without what reads a state
    from errata.inspect.snapshot import Snapshot

    console = console_of(quiet, verbose, no_color)
    pipeline = load_for_reading(console, words)
    name = known_node(pipeline, node)
    wanted = Restatement(tuple(dict.fromkeys(field.strip() for given in by for field in given.split(","))), tuple(fields), start, end)
    rows = restate(pipeline, name, wanted) if isinstance(pipeline, Snapshot) else pipeline.restate(name, wanted)
    columns = columns_of(wanted.by)
    rows_answer(console, _flat(rows) if format in ("text", "csv") else rows, format, columns, lead=(*wanted.by, "field", "first", "now"), keep=True)
    return 0


def _flat(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Rows with keys as compact JSON and causes in one cell."""
    return ({**row, "key": json_text(row["key"]), "causes": "; ".join(row["causes"])} for row in rows)
