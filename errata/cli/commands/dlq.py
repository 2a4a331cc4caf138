"""`errata dlq`: rejected and suppressed records, and what people decide about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from errata.cli.console import NOTHING_CHANGED, Console, plural, rows_answer
from errata.cli.events import begin_events, events_option
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, format_option, option, pipeline_options, together
from errata.core.failures import Exit
from errata.core.options import EngineOptions, LetterChoice, LetterDecision, RepairNotes, RunOptions
from errata.rendering.progress import progress
from errata.rendering.terminal import escaped

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline

ACTIONS = ("list", "groups", "assign", "waive", "unwaive", "retry", "export", "import", "history")
DECISIONS = ("assign", "waive", "unwaive")
CHOOSES = ("list", "groups", "export", *DECISIONS)
"""The actions that take choosing options."""
COMMITS = (*DECISIONS, "retry")
ALONE = ("retry", "export", "import")
"""The actions that take one word: a group, or a file."""

choosing = together(
    option("--source", metavar="NAME", help="Only records of this source."),
    option("--stage", metavar="NAME", help="Only entries that failed at this node."),
    option("--category", metavar="NAME", help="Only entries of this category."),
    option("--assigned", metavar="NAME", help="Only entries that this person has; '' for entries that nobody has."),
    option("--older-than", metavar="AGE", help="Only entries that are in the queue for longer, such as 12h or 30d."),
    option("--waived/--not-waived", default=None, help="Only waived entries, or only the others."),
    option("--all", "everything", is_flag=True, help="All entries, for assign, waive and unwaive."),
)


@click.command("dlq", cls=Command)
@pipeline_options
@click.argument("action", type=click.Choice(ACTIONS), default="list", metavar="[ACTION]")
@click.argument("names", nargs=-1)
@option("--triage", is_flag=True, help="Show ids, ages and decisions, the oldest first.")
@choosing
@option("--to", "assignee", metavar="NAME", help="With assign: who has the entries from now on; '' for nobody.")
@option("--reason", metavar="TEXT", default="", help="Why; kept with the decision.")
@option("--author", metavar="NAME", default="", help="Who decides [default: the user of the operating system].")
@option("--into", metavar="FILE", help="With import: the file of corrections, below the pipeline's folder [default: manual.yaml in the folder of corrections].")
@option("--ticket", metavar="TEXT", default="", help="With import: where it was discussed.")
@option("--dry-run", is_flag=True, help="With import: show what would be written.")
@option("--reopen", is_flag=True, help="With retry: let rows of closed periods change.")
@option("--wait", is_flag=True, help="Wait for another run's lock.")
@format_option
@events_option
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, format: str, action: str, names: Sequence[str], **words: Any) -> int:
    r"""Show rejected and suppressed records, and decide about them.

    ACTION is list (the default), groups, or history, which shows past decisions; assign, waive and unwaive take ids of entries, names of groups, or
    options that choose; retry GROUP admits a group again; export FILE writes a table, and import FILE makes corrections of the cells that were changed in it.

    \b
    Rejected records with their reasons:
      errata dlq pipeline.yaml
    Give the records of a stage to somebody:
      errata dlq pipeline.yaml assign --stage valued --to ana
    Records that stay out for good, and count for no threshold:
      errata dlq pipeline.yaml waive 019ac1c4-7f1e --reason 'test orders'
    Admit the suppressed records of a group again:
      errata dlq pipeline.yaml retry A17 --reason 'the product table is complete now'
    Repair cells in a spreadsheet:
      errata dlq pipeline.yaml export letters.xlsx
      errata dlq pipeline.yaml import letters.xlsx --reason 'asked the shop'
    """
    console = console_of(quiet, verbose, no_color)
    chosen = {name: words.pop(name) for name in ("source", "stage", "category", "assigned", "older_than", "waived")}
    call = _Call(action, names, chosen, {name: words.pop(name) for name in _OWN})
    call.check(events=words["events"] is not None)
    begin_events(console, words, holds=True)
    engine = engine_of(words)
    pipeline = load_pipeline(console, words, commits=action in COMMITS)
    if action in COMMITS:
        return _commit(console, pipeline, call, engine)
    if action == "import":
        return _import(console, pipeline, call, format)
    _answer(console, pipeline, call, format)
    return 0


_OWN = ("triage", "everything", "assignee", "reason", "author", "into", "ticket", "dry_run", "reopen", "wait")


class _Call:
    """The words of one call."""

    def __init__(self, action: str, names: Sequence[str], chosen: Mapping[str, Any], words: Mapping[str, Any]) -> None:
        self.action = action
        self.names = tuple(names)
        self.chosen = chosen
        self.words = words

    @property
    def choice(self) -> LetterChoice:
        """The entries that are meant."""
        return LetterChoice(() if self.action in ALONE else self.names, **self.chosen)

    @property
    def in_detail(self) -> bool:
        """Whether triage shows what it knows of each entry."""
        return bool(self.words["triage"] or self.names or any(value is not None for value in self.chosen.values()))

    def check(self, *, events: bool) -> None:
        """Raise UsageError for words that do not go together."""
        action = self.action
        wrong = {
            **self._of_choice(), **self._of_decision(),
            "--events goes with assign, waive, unwaive and retry": events and action not in COMMITS,
            "--into, --ticket and --dry-run go with import": any(self.words[name] for name in ("into", "ticket", "dry_run")) and action != "import",
            "--reopen goes with retry": self.words["reopen"] and action != "retry",
            "--triage goes with list and groups": self.words["triage"] and action not in ("list", "groups"),
        }  # fmt: skip
        for text in (text for text, is_so in wrong.items() if is_so):
            raise click.UsageError(text, click.get_current_context())

    def _of_choice(self) -> Mapping[str, bool]:
        """Faults of the names and options that choose entries, each with whether it is there."""
        action, every, options = self.action, self.words["everything"], any(value is not None for value in self.chosen.values())
        some = bool(self.names) or options
        return {
            f"{action} takes one {'group' if action == 'retry' else 'file'}": action in ALONE and len(self.names) != 1,
            f"{action} takes no options that choose entries": action not in CHOOSES and options,
            f"{action} takes no names": action == "history" and some,
            f"{action} needs ids, groups, options that choose entries, or --all": action in DECISIONS and not (some or every),
            "--all goes without names and without options that choose entries": every and (some or action not in DECISIONS),
        }

    def _of_decision(self) -> Mapping[str, bool]:
        """Faults of the words of a decision, each with whether it is there."""
        action, reason, author = self.action, self.words["reason"].strip(), self.words["author"]
        return {
            "--to goes with assign, and assign needs it": (self.words["assignee"] is None) == (action == "assign"),
            "waive needs a --reason": action == "waive" and not reason,
            "--reason and --author go with assign, waive, unwaive, retry and import": bool(reason or author) and action not in (*COMMITS, "import"),
            "--author of a retry goes with --reason": action == "retry" and bool(author) and not reason,
        }


def _answer(console: Console, pipeline: "Pipeline", call: _Call, format: str) -> None:
    from errata.inspect.dlq import ENTRIES, GROUPS, HISTORY, TRIAGE_COLUMNS

    if call.action == "export":
        count = pipeline.dlq_export(Path(call.names[0]), call.choice)
        console.note(f"{count:,} {'entry' if count == 1 else 'entries'} in {call.names[0]}")
    elif call.action == "history":
        rows_answer(console, pipeline.dlq_history(), format, HISTORY, lead=("at", "author", "action"), after=("reason",), empty="Nothing was decided yet.")
    elif call.action == "list":
        rows = pipeline.dlq_triage(call.choice) if call.in_detail else pipeline.dlq_list()
        none = "No such entry is in the queue." if call.in_detail else "No record is rejected."
        columns = (*(TRIAGE_COLUMNS if call.in_detail else ()), *ENTRIES)
        rows_answer(console, rows, format, columns, lead=("id", "detail") if call.in_detail else ("file", "row", "detail"), after=("file", "row", "source", "category"), empty=none)
    else:
        rows = pipeline.dlq_triage_groups(call.choice) if call.in_detail else pipeline.dlq_groups()
        rows_answer(console, rows, format, (*(("since", "days") if call.in_detail else ()), *GROUPS), lead=("group", "detail"), after=("records", "trigger"), empty="No group of records is rolled back.")


def _import(console: Console, pipeline: "Pipeline", call: _Call, format: str) -> int:
    from errata.amend.repairs import REFUSED, REPAIRS

    words = call.words
    notes = RepairNotes(words["into"], words["reason"].strip(), words["author"], words["ticket"])
    rows = list(pipeline.dlq_import(Path(call.names[0]), notes, dry=words["dry_run"]))
    rows_answer(console, rows, format, REPAIRS, lead=("place", "column", "verdict", "why"))
    refused = sum(row["verdict"] == REFUSED for row in rows)
    written = len(rows) - refused
    if words["dry_run"] or not written:
        console.note(f"{plural(written, 'cell')} can be corrected, {refused:,} cannot. {NOTHING_CHANGED}")
    else:
        console.note(f"{plural(written, 'correction')} written, {refused:,} refused. The next run applies what was written.")
    return Exit.REJECTED if refused else Exit.CLEAN


def _commit(console: Console, pipeline: "Pipeline", call: _Call, engine: EngineOptions) -> int:
    words = call.words
    with progress(console) as listener:
        options = RunOptions(engine=engine, reopen=words["reopen"], wait=words["wait"], listener=listener, execution_id=console.execution_id)
        if call.action == "retry":
            result = pipeline.dlq_retry(call.names[0], options, words["reason"], words["author"])
            if result.exit_code == Exit.REJECTED and (warning := _still_out(pipeline, call.names[0])):
                console.note(warning, level="warn")
        else:
            decision = LetterDecision(cast("Any", call.action), words["reason"], words["author"], words["assignee"] or "")
            result = pipeline.dlq_decide(call.choice, decision, options)
        return console.end_of_run(result)


def _still_out(pipeline: "Pipeline", group: str) -> str:
    """Why a group is rolled back after a retry too; empty where it came back."""
    found = next((row for row in pipeline.dlq_groups() if row["group"] == group), None)
    return "" if found is None else escaped(f"group '{group}' stays out: {found['trigger']}: {found['detail']}")
