"""`cxl fn`: the builtins, all or one."""

import csv
import io
import json
from collections.abc import Sequence

import click

from cxl.commands.terminal import common_options
from cxl.diagnostics.diagnostics import did_you_mean
from cxl.functions.registry import Builtin, all_builtins

_PREFIXES = {"method": ".", "aggregate": "", "window": "$window."}


@click.command(name="fn")
@click.argument("name", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json", "jsonl", "csv"]), default="text", show_default=True, help="How the list is printed.")
@common_options
def command(name: str | None, form: str) -> int:
    """List every builtin, or explain the ones called NAME."""
    entries = list(all_builtins())
    if name is None:
        click.echo(_listed(entries) if form == "text" else _rows(entries, form), nl=form != "csv")
        return 0
    wanted = name.removeprefix("$window.").removeprefix(".")
    found = [entry for entry in entries if entry.name == wanted]
    if not found:
        help = did_you_mean(wanted, [entry.name for entry in entries])
        click.echo(f"unknown builtin '{name}'{'; ' + help if help else ''}", err=True)
        return 1
    click.echo("\n\n".join(explain(entry) for entry in found) if form == "text" else _rows(found, form), nl=form != "csv")
    return 0


def _rows(entries: Sequence[Builtin], form: str) -> str:
    """Builtins for programs: name, kind, category, receiver (or null), signature, doc, examples."""
    rows = [_row(entry) for entry in entries]
    if form == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "examples": json.dumps(row["examples"], ensure_ascii=False)} for row in rows)
        return text.getvalue()
    return json.dumps(rows, ensure_ascii=False, indent=1) if form == "json" else "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _row(entry: Builtin) -> dict[str, object]:
    return {
        "name": entry.name, "kind": entry.kind, "category": entry.category, "receiver": _receiver(entry) if entry.receiver is not None else None,
        "signature": entry.signature, "doc": entry.doc, "examples": [{"code": code, "result": result} for code, result in entry.examples],
    }  # fmt: skip


def _receiver(entry: Builtin) -> str:
    return " | ".join(map(str, entry.receiver)) if isinstance(entry.receiver, tuple) else str(entry.receiver)


def _listed(entries: list[Builtin]) -> str:
    lines: list[str] = []
    groups: dict[str, list[Builtin]] = {}
    for entry in entries:
        groups.setdefault(entry.category or entry.kind.capitalize(), []).append(entry)
    for number, (category, members) in enumerate(sorted(groups.items())):
        lines += [("\n" if number else "") + category]
        lines += [f"  {_PREFIXES[entry.kind]}{entry.signature:<48}  {entry.doc.splitlines()[0]}".rstrip() for entry in members]
    return "\n".join(lines)


def explain(entry: Builtin) -> str:
    """Return a builtin for people: signature, receiver, description, examples."""
    head = f"{_PREFIXES[entry.kind]}{entry.signature}"
    lines = [head if entry.receiver is None else f"{_receiver(entry)}{head}", "", entry.doc]
    lines += [f"  {code}  =>  {result}" for code, result in entry.examples]
    if not entry.takes_null and entry.receiver is not None:
        lines.append("Null gives null.")
    return "\n".join(lines)
