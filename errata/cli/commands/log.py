"""`errata log`: changelog rows with their causes, or, without a node, the committed runs."""

from collections.abc import Mapping
from typing import Any

import click

from errata.cli.completion import epochs, node_names
from errata.cli.console import csv_columns, rows_answer
from errata.cli.help import Command
from errata.cli.loading import known_node, load_for_reading
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options
from errata.core.failures import Usage
from errata.core.options import LogFilter
from errata.state.stream_forms import flat

_FORMS = ("two", "retract", "upsert", "single", "debezium", "flink", "odf")
_RUN = ("epoch", "started", "finished", "execution_id", "counts", "exit_code")
_OPS = ("+A", "-R", "-C", "+C")


@click.command("log", cls=Command)
@pipeline_options
@click.argument("node", required=False, shell_complete=node_names)
@option("--epoch", metavar="N", type=click.IntRange(min=1), shell_complete=epochs, help="Rows of this epoch.")
@option("--since", metavar="E", type=click.IntRange(min=1), shell_complete=epochs, help="Rows of this epoch and later ones.")
@option("--op", type=click.Choice(_OPS), help="Rows of this op.")
@option("--cause", metavar="CAUSE", help="Rows whose cause begins so.")
@option("--where", metavar="CXL", help="Rows for whose data this is true.")
@option("--limit", metavar="N", type=click.IntRange(min=0), help="The newest N rows.")
@option("--form", type=click.Choice(_FORMS), default="two", help="The form of the stream.")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, node: str | None, **words: Any) -> int:
    r"""Show the changelog of a node, or the committed runs.

    \b
    The committed runs:
      errata log pipeline.yaml
    What the last epochs took back in a node:
      errata log pipeline.yaml totals --since 40 --op -R
    """
    console = console_of(quiet, verbose, no_color)
    pipeline = load_for_reading(console, words)
    filters = LogFilter(**words)
    if node is None and filters != LogFilter():
        raise click.UsageError("--epoch, --since, --op, --cause, --where, --limit and --form need a node", click.get_current_context())
    if node is None:
        if pipeline.head_epoch() is None:
            raise Usage.no_run()
        runs = pipeline.runs()
        rows_answer(console, map(_in_short, runs) if format == "text" else runs, format, () if format == "text" else _RUN, lead=("epoch", "started", "kind", "reason", "counts"))
    else:
        known = known_node(pipeline, node)
        rows, columns = csv_columns(pipeline.log(known, filters), format, lambda: pipeline.columns(known, filters.form))
        rows_answer(console, map(flat, rows) if format == "csv" else rows, format, columns, lead=("epoch", "op", "op_code", "cause", "data") if filters.form != "two" else ("epoch", "op", "cause", "data"))
    return 0


def _in_short(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """A committed run as a row of text."""
    counts = "; ".join(f"{name} {' '.join(f'{op} {count}' for op, count in ops.items())}" for name, ops in run["counts"].items())
    return {
        "epoch": run["epoch"], "started": f"{run['started']:%Y-%m-%d %H:%M:%S}", "seconds": round((run["finished"] - run["started"]).total_seconds(), 1),
        "execution_id": run["execution_id"], "exit_code": run["exit_code"], "counts": counts, **{name: run[name] for name in ("kind", "reason") if name in run},
    }  # fmt: skip
