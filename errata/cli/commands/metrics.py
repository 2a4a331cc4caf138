"""`errata metrics collect`: sweep the metrics files of runs into one archive."""

from pathlib import Path

import click

from errata.api.metrics import collect as sweep
from errata.api.metrics import spooled
from errata.cli.console import plural
from errata.cli.help import Command
from errata.cli.parameters import common_options, console_of, option


@click.group("metrics", no_args_is_help=True)
def command() -> None:
    """Metrics of runs."""


@command.command("collect", cls=Command)
@option("--spool-dir", metavar="DIR", type=click.Path(path_type=Path), required=True, env="METRICS_SPOOL_DIR", help="Folder to sweep.")
@option("--output-file", metavar="FILE", type=click.Path(path_type=Path), required=True, help="Archive that the lines are appended to.")
@option("--delete-after-collect", is_flag=True, help="Remove the files that were archived.")
@option("--dry-run", is_flag=True, help="Only show what would be collected.")
@common_options
def collect(
    quiet: bool, verbose: int, no_color: bool, spool_dir: Path, output_file: Path, delete_after_collect: bool, dry_run: bool
) -> int:
    r"""Append each metrics file of a folder to an archive of JSON lines.

    \b
    What would be collected:
      errata metrics collect --spool-dir spool --output-file metrics.ndjson --dry-run
    Collect, and remove what was collected:
      errata metrics collect --spool-dir spool --output-file metrics.ndjson --delete-after-collect
    """
    console = console_of(quiet, verbose, no_color)

    def passed(path: Path) -> None:
        console.note(f"warning: {path} is left where it is: it has no metrics of a run", level="warn")

    if dry_run:
        found = spooled(spool_dir, passed)
        console.answer([f"Would collect {plural(len(found), 'file')} from {spool_dir}\n"])
        console.answer(f"  {one.path} ({one.pipeline})\n" for one in found)
        return 0
    count = sweep(spool_dir, output_file, passed, delete=delete_after_collect)
    console.answer([f"Collected {plural(count, 'file')} into {output_file}\n"])
    return 0
