"""`cxl fn`: the builtins, all or one."""

import click

from cxl.diagnostics import did_you_mean
from cxl.functions.registry import Builtin, all_builtins

_PREFIXES = {"method": ".", "aggregate": "", "window": "$window."}


@click.command(name="fn")
@click.argument("name", required=False)
def command(name: str | None) -> int:
    """List every builtin, or explain the ones called NAME."""
    entries = list(all_builtins())
    if name is None:
        _list(entries)
        return 0
    wanted = name.removeprefix("$window.").removeprefix(".")
    found = [entry for entry in entries if entry.name == wanted]
    if not found:
        help = did_you_mean(wanted, [entry.name for entry in entries])
        click.echo(f"unknown builtin '{name}'{'; ' + help if help else ''}", err=True)
        return 1
    click.echo("\n\n".join(explain(entry) for entry in found))
    return 0


def _list(entries: list[Builtin]) -> None:
    groups: dict[str, list[Builtin]] = {}
    for entry in entries:
        groups.setdefault(entry.category or entry.kind.capitalize(), []).append(entry)
    for number, (category, members) in enumerate(sorted(groups.items())):
        click.echo(("\n" if number else "") + category)
        for entry in members:
            click.echo(f"  {_PREFIXES[entry.kind]}{entry.signature:<48}  {entry.doc.splitlines()[0]}".rstrip())


def explain(entry: Builtin) -> str:
    """A builtin for people: signature, receiver, what it does, examples."""
    receiver = " | ".join(map(str, entry.receiver)) if isinstance(entry.receiver, tuple) else str(entry.receiver)
    head = f"{_PREFIXES[entry.kind]}{entry.signature}"
    lines = [head if entry.receiver is None else f"{receiver}{head}", "", entry.doc]
    lines += [f"  {code}  =>  {result}" for code, result in entry.examples]
    if not entry.takes_null and entry.receiver is not None:
        lines.append("Null gives null.")
    return "\n".join(lines)
