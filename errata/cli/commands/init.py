"""`errata init`: a small working project to start from."""

from pathlib import Path

import click

from errata.cli.parameters import common_options, console_of, option
from errata.project.scaffold import make_project


@click.command("init")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False), default=Path())
@option("--force", is_flag=True, help="Replace files that exist.")
@common_options
def command(quiet: bool, verbose: int, no_color: bool, folder: Path, force: bool) -> int:
    """Make a small working project to start from."""
    console = console_of(quiet, verbose, no_color)
    for path in make_project(folder, force=force):
        console.note(f"Wrote {path}")
    console.note(f"\nNext: errata run {folder / 'pipeline.yaml'}")
    return 0
