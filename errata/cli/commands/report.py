"""`errata report`: one self-contained HTML page."""

from pathlib import Path
from typing import Any

import click

from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, option, pipeline_options
from errata.core.files import replace_file


@click.command("report", cls=Command)
@pipeline_options
@option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), required=True, help="The page that is written.")
@common_options
def command(quiet: bool, verbose: int, no_color: bool, output: Path, **words: Any) -> int:
    r"""Write the pages of `errata ui` into one HTML file.

    \b
    For somebody who has no access to the state:
      errata report pipeline.yaml -o report.html
    Of another state:
      errata report pipeline.yaml --state s3://bucket/state -o report.html
    """
    console = console_of(quiet, verbose, no_color)
    replace_file(output, load_pipeline(console, words).report())
    console.note(f"Wrote {output}")
    return 0
