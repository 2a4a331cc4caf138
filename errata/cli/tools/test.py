"""`errata test`: cases beside a pipeline."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from errata.cli.console import plural, rows_answer
from errata.cli.help import Command
from errata.cli.parameters import common_options, console_of, format_option, option
from errata.core.failures import Exit

if TYPE_CHECKING:  # the command line starts without what runs pipelines
    from errata.cases.case_run import Outcome

COLUMNS = ("file", "case", "verdict", "step", "detail", "seconds")


@click.command("test", cls=Command)
@click.argument("places", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@option("-k", "--matching", metavar="TEXT", default="", show_default=False, help="Run only cases whose name has this text.")
@option("--engine", type=click.Choice(["auto", "sail", "spark"]), default="sail", help="The engine of the runs.")
@format_option
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, places: Sequence[Path], matching: str, engine: Any) -> int:
    r"""Run the cases of case files: given files and rows, expected rows and changes.

    \b
    All cases below the working directory:
      errata test
    The cases of one file whose name has "refund":
      errata test orders.test.yaml -k refund

    A file orders.test.yaml has cases for orders.yaml. Each case runs in a temporary folder with a state of its own.
    Exit code 5: a case differs.
    """
    from errata.cases.case_run import run_cases  # the command line starts without what runs pipelines

    console = console_of(quiet, verbose, no_color)
    found: list[Outcome] = []
    outcomes = _kept(run_cases(places or (Path(),), engine, matching), found)
    if format == "text":
        console.answer(_lines(outcomes, found, quiet=quiet))
    else:
        rows_answer(console, (one.row() for one in outcomes), format, COLUMNS)
    return Exit.CLEAN if all(one.passed for one in found) else Exit.VIOLATION


def _kept(outcomes: Iterable["Outcome"], found: list["Outcome"]) -> Iterator["Outcome"]:
    for one in outcomes:
        found.append(one)
        yield one


def _lines(outcomes: Iterable["Outcome"], found: list["Outcome"], *, quiet: bool) -> Iterator[str]:
    """One line a case, below a failed one how it differs, then the number of cases; a quiet command has failed ones only."""
    for one in outcomes:
        if one.passed:
            yield "" if quiet else f"ok      {one.file}: {one.case}\n"
            continue
        yield f"FAILED  {one.file}: {one.case}\n"
        for text in one.differences:
            yield "".join(f"  {line}\n" for line in f"step {one.step}: {text}".splitlines())
    failed = sum(not one.passed for one in found)
    yield f"{plural(len(found), 'case')}, {failed} failed\n"
