"""`errata erase`: records leave the state, the outputs and the history for good."""

import getpass
from collections.abc import Mapping, Sequence
from typing import Any

import click

from errata.cli.completion import source_names
from errata.cli.console import NOTHING_CHANGED, Console, plural, rows_answer
from errata.cli.help import Command
from errata.cli.loading import known_node, load_pipeline
from errata.cli.parameters import (
    Assignment,
    common_options,
    console_of,
    engine_of,
    engine_options,
    format_option,
    option,
    pairs,
    pipeline_options,
)
from errata.core.failures import Exit
from errata.core.options import Erasure, RunOptions
from errata.rendering.progress import progress


@click.command("erase", cls=Command)
@pipeline_options
@option("--key", metavar="COLUMN=VALUE", multiple=True, type=Assignment(), help="Which records; repeat for more columns.")
@option("--where", metavar="CXL", help="Which records: those for whose data this is true.")
@option("--node", "source", metavar="SOURCE", shell_complete=source_names, help="The source; by default each source that has the columns.")
@option("--reason", metavar="TEXT", help="Why; stored with the record of the erasure.")
@option("--by", metavar="NAME", help="Who erases [default: the user of this process].")
@option("--keep-totals", metavar="COLUMN[,COLUMN]", help="Let nameless rows with these columns of the sources stay, so that totals by them do not change.")
@option("--keep-out", is_flag=True, help="Leave the records out of later runs where an input file holds them.")
@option("--check", is_flag=True, help="Erase nothing; search the state and the outputs for the values of --key and --value.")
@option("--value", "texts", metavar="TEXT", multiple=True, env="VALUE", help="With --check: a text to look for; repeat for more.")
@option("--reopen", is_flag=True, help="Let rows of closed periods change.")
@option("--dry-run", is_flag=True, help="Show what would leave, change nothing.")
@option("--wait", is_flag=True, help="Wait for another run's lock.")
@format_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, source: str | None, **words: Any) -> int:
    r"""Erase records for good, with all that was derived from them.

    \b
    What would leave, and from where:
      errata erase pipeline.yaml --key customer=anna --reason 'request 17' --dry-run
    The records of one source for which a condition is true:
      errata erase pipeline.yaml --node orders --where 'email == "anna@example.org"' --reason 'request 17'
    Whether anything still holds a value, later:
      errata erase pipeline.yaml --check --key customer=anna --value anna@example.org
    """
    console = console_of(quiet, verbose, no_color)
    checks, texts = words.pop("check"), words.pop("texts")
    key, where, reason = pairs(words.pop("key"), "column"), words.pop("where"), words.pop("reason")
    if checks:
        return _check(console, words, key, texts, format)
    if texts:
        raise click.UsageError("--value goes with --check", click.get_current_context())
    if bool(key) == bool(where):
        raise click.UsageError("give either --key COLUMN=VALUE or --where CXL", click.get_current_context())
    if not reason:
        raise click.UsageError("--reason TEXT is missing", click.get_current_context())
    by, keep_out = words.pop("by") or getpass.getuser(), words.pop("keep_out")
    kept = tuple(name.strip() for name in (words.pop("keep_totals") or "").split(",") if name.strip())
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=True)
    named = None if source is None else known_node(pipeline, source)
    with progress(console) as listener:
        options = RunOptions(engine=engine, listener=listener, execution_id=console.execution_id, **words)
        done = pipeline.erase(Erasure(reason, by, key, where, named, keep_out, kept), options)
    rows_answer(console, done.rows, format, ("table", "records", "rows", "cells"), lead=("table", "rows"))
    for node, dataset in done.published.items():
        named = f" as {dataset}" if dataset else ""
        console.note(f"Node '{node}' was exported{named}: its directories and copies still hold the records. Remove them, and export to new ones.", level="warn")
    _say_common(console, done.common)
    if done.proof is None:
        console.note(NOTHING_CHANGED)
        return Exit.CLEAN
    code = console.end_of_run(done.result)
    console.note(f"Searched for {plural(done.proof['searched_values'], 'value')} of these records alone: {_found(done.proof)}")
    _say_unsearched(console, done.proof["unsearched"])
    return Exit.VIOLATION if done.proof["found"] else code


def _check(console: Console, words: dict[str, Any], key: Mapping[str, str], texts: tuple[str, ...], format: str) -> int:
    """Search, and answer with the files that hold a value."""
    if not key and not texts:
        raise click.UsageError("--check needs values to look for: --key COLUMN=VALUE or --value TEXT", click.get_current_context())
    done = load_pipeline(console, words).erase_check(key, texts)
    rows_answer(console, ({"file": file} for file in done.files), format, ("file",), lead=("file",))
    found = f"{plural(len(done.files), 'file')} {'holds' if len(done.files) == 1 else 'hold'} one" if done.files else "no file of the state or of an output holds one"
    console.note(f"Searched for {plural(done.values, 'value')}: {found}")
    if done.too_common:
        console.note(f"Not searched for, as true and false are everywhere: {', '.join(done.too_common)}")
    _say_common(console, done.common)
    _say_unsearched(console, done.unsearched)
    return Exit.VIOLATION if done.files else Exit.CLEAN


def _say_common(console: Console, words: Sequence[str]) -> None:
    """Name the texts that the pipeline or the state has by itself."""
    if words:
        console.note(f"Looked for as whole cells of their columns alone, as the pipeline or the state has the same words: {', '.join(words)}")


def _say_unsearched(console: Console, places: Sequence[str]) -> None:
    """Name the places in which not every value was looked for."""
    if places:
        console.note(f"Not searched for every value: {', '.join(places)}")


def _found(proof: Mapping[str, Any]) -> str:
    """The result of a search, in words."""
    return f"still in {plural(proof['found'], 'file')}, such as {', '.join(proof['files'][:3])}" if proof["found"] else "no file of the state or of an output holds one"
