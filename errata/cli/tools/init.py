"""`errata init`: a project to start from, the tutorial's example or a pipeline guessed from data."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from errata.cli.console import Console, plural
from errata.cli.help import Command
from errata.cli.parameters import common_options, console_of, option
from errata.core.failures import Exit
from errata.rendering.terminal import columns_of, escaped
from errata.scaffold.example import make_project

_MOST_DOUBTS = 40


class InitCommand(Command):
    """Lets several files come after one `--from`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does."""
        words: list[str] = []
        behind = False
        for word in args:
            if word == "--from":
                behind = True
                continue
            behind = behind and not word.startswith("-")
            words.append(f"--from={word}" if behind else word)
        if "--from" in args and not any(word.startswith("--from=") for word in words):
            raise click.UsageError("--from needs a file", ctx)
        return super().parse_args(ctx, words)


@click.command("init", cls=InitCommand)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False), default=Path())
@option("--from", "files", metavar="FILE...", multiple=True, type=click.Path(path_type=Path), help="Guess the pipeline from these files, or from the files of a folder.")
@option("--force", is_flag=True, help="Replace files that exist.")
@common_options
def command(quiet: bool, verbose: int, no_color: bool, folder: Path, files: Sequence[Path], force: bool) -> int:
    r"""Make a project to start from.

    Without --from it is the example of the tutorial. With --from it is a pipeline for CSV, JSON, XML, Parquet, Avro or Excel files: types, keys, formats of
    dates, delimiter and encoding are guessed, and what was unsure is printed.

    \b
    The example, in a new folder:
      errata init shop
    A pipeline for your own files, which lie below the present folder:
      errata init --from data/orders.csv data/customers.json
    """
    console = console_of(quiet, verbose, no_color)
    if files:
        return _guess(console, folder, files, force=force)
    for path in make_project(folder, force=force):
        console.note(f"Wrote {path}")
    console.note(f"\nNext: errata run {folder / 'pipeline.yaml'}")
    return Exit.CLEAN


def _guess(console: Console, folder: Path, files: Sequence[Path], *, force: bool) -> int:
    from errata.scaffold.guess import guess_pipeline

    guessed = guess_pipeline(folder, files, force=force)
    console.note(f"Wrote {escaped(str(guessed.path))}")
    for line in guessed.found():
        console.note(f"  {escaped(line)}")
    if guessed.doubts:
        console.note(f"\nUnsure of {plural(len(guessed.doubts), 'thing')}:")
        for doubt in guessed.doubts[:_MOST_DOUBTS]:
            console.note(_indented(f"{escaped(doubt.place)}: {escaped(doubt.text)}"))
        if len(guessed.doubts) > _MOST_DOUBTS:
            console.note(f"  and {plural(len(guessed.doubts) - _MOST_DOUBTS, 'thing')} more, which the comments of the file have")
    console.note(f"\nNext: errata run {escaped(str(guessed.path))}")
    return Exit.CLEAN


def _indented(text: str) -> str:
    """A text behind two blanks, on a terminal in lines that fit it."""
    columns = columns_of(sys.stderr)
    return f"  {text}" if columns is None else textwrap.fill(text, max(columns, 20), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
