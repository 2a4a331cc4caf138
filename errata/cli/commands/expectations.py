"""`errata expectations`: what rows are expected to be, how many fail, and since when."""

from typing import Any

import click

from errata.cli.console import rows_answer
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, format_option, option, pipeline_options
from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage


@click.command("expectations", cls=Command)
@pipeline_options
@click.argument("expectation", required=False)
@option("--history", is_flag=True, help="One line for each epoch that changed the number of failing rows.")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, expectation: str | None, history: bool, **words: Any) -> int:
    r"""Show expectations with the number of failing rows.

    \b
    What fails now, and since which epoch:
      errata expectations pipeline.yaml
    How the number of failing rows of one expectation changed:
      errata expectations pipeline.yaml orders.range_amount --history
    """
    from errata.inspect.expectations import COLUMNS, HISTORY  # the command line starts without what reads a state

    console = console_of(quiet, verbose, no_color)
    pipeline = load_pipeline(console, words)
    rows = list(pipeline.expectations())
    names = [str(row["expectation"]) for row in rows]
    if expectation is not None and expectation not in names:
        hint = did_you_mean(expectation, names) or f"its expectations: {', '.join(names) or 'none'}"
        raise Usage(f"the pipeline has no expectation '{expectation}'", help=hint)
    if history:
        rows_answer(console, pipeline.expectation_history(expectation), format, HISTORY, empty="No epoch changed how many rows fail.")
    else:
        rows_answer(console, [row for row in rows if expectation in (None, row["expectation"])], format, COLUMNS, empty="The pipeline expects nothing: no node has the key `expect`.")
    return 0
