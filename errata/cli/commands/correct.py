"""`errata correct`: a manual correction of a source record, and its effect."""

from dataclasses import replace
from typing import Any

import click

from errata.cli.completion import source_names
from errata.cli.console import NOTHING_CHANGED, Console, changes_answer
from errata.cli.events import begin_events, events_option
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
from errata.core.options import Correction, RunOptions
from errata.rendering.progress import progress
from errata.rendering.terminal import escaped


@click.command("correct", cls=Command)
@pipeline_options
@click.argument("source", shell_complete=source_names)
@option("--key", metavar="COLUMN=VALUE", multiple=True, required=True, type=Assignment(), help="Which record; repeat for more columns.")
@option("--set", "changes", metavar="COLUMN=VALUE", multiple=True, type=Assignment(), help="A new value; repeat for more columns.")
@option("--retract", is_flag=True, help="Retract the record.")
@option("--reason", metavar="TEXT", required=True, help="Why; stored with the correction.")
@option("--save", is_flag=True, help="Write it into the files of the corrections node behind the source, for the next run; commit nothing now.")
@option("--author", metavar="NAME", help="Who corrects, with --save.")
@option("--ticket", metavar="TEXT", help="Where it was discussed, with --save.")
@option("--dry-run", is_flag=True, help="Show the effect, commit nothing. With --save: show what would be written.")
@option("--reopen", is_flag=True, help="Let rows of closed periods change.")
@option("--wait", is_flag=True, help="Wait for another run's lock.")
@events_option
@format_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, source: str, **words: Any) -> int:
    r"""Correct or retract a source record.

    \b
    What a new amount would change, without a commit:
      errata correct pipeline.yaml orders --key id=7 --set amount=12.50 --reason 'typo' --dry-run
    A record that should not be there:
      errata correct pipeline.yaml orders --key id=8 --retract --reason 'entered twice'
    """
    console = console_of(quiet, verbose, no_color)
    key, changes = pairs(words.pop("key"), "column"), pairs(words.pop("changes"), "column")
    reason = words.pop("reason")
    if words.pop("retract") == bool(changes):
        raise click.UsageError("give either --set COLUMN=VALUE or --retract", click.get_current_context())
    notes = {name: words.pop(name) for name in ("author", "ticket")}
    if words.pop("save"):
        return _save(console, Correction(source, key, changes, reason), notes, words)
    if any(notes.values()):
        raise click.UsageError("--author and --ticket go with --save", click.get_current_context())
    begin_events(console, words, holds=True)
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=True)
    with progress(console) as listener:
        options = RunOptions(engine=engine, listener=listener, execution_id=console.execution_id, **words)
        rows, result = pipeline.correct(Correction(known_node(pipeline, source), key, changes, reason), options)
    changes_answer(console, rows, format, lead=("node", "op"))
    if options.dry_run and result.exit_code in (Exit.CLEAN, Exit.REJECTED):
        if result.message:
            console.note(escaped(result.message), level="warn")
        console.note(NOTHING_CHANGED)
        return result.exit_code
    return console.end_of_run(result)


def _save(console: Console, correction: Correction, notes: dict[str, str | None], words: dict[str, Any]) -> int:
    if words["events"]:
        raise click.UsageError("--save runs nothing, so it has no events", click.get_current_context())
    dry = words.pop("dry_run")
    pipeline = load_pipeline(console, words)
    saved = pipeline.save_correction(replace(correction, source=known_node(pipeline, correction.source)), notes, dry=dry)
    console.answer([saved.text])
    console.note(NOTHING_CHANGED if dry else f"Added to {saved.name}; the next run applies it.")
    return Exit.CLEAN
