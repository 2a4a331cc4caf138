"""The page of all commands and options: `docs/reference/command-line.md`, made from the commands themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from cxl.cli import cli as cxl
from errata.cli.group import errata
from errata.cli.help import GROUPS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
INTRODUCTION = """\
# Command line

Every command with its options, as `errata COMMAND --help` prints them. This page is made from the commands: `make docs` writes it. What the answers mean is on [commands](commands.md).

* An option goes before its environment variable, that before `errata.toml`: [environment](environment.md).
* `errata --version` prints the version. Completion for bash: `eval "$(_ERRATA_COMPLETE=bash_source errata)"`; zsh and fish likewise.
"""


def markdown() -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    lines += [line for name, command in commands(errata, "errata") for line in section(name, command)]
    run = errata.get_command(click.Context(errata), "run")
    assert run is not None
    for title, _, names in GROUPS:
        lines += [f"## {title}", "", *table([option for option in options(run) if option.name in names]), ""]
    lines += ["## The command `cxl`", "", "The [language](cxl/README.md) alone. Exit codes: 0 success, 1 an error in the program or a record, 2 wrong use, 70 a defect.", ""]
    lines += [line for name, command in commands(cxl, "cxl") for line in section(name, command, level=3)]
    return "\n".join(lines).rstrip() + "\n"


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands of a group and its inner groups, by their whole names."""
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {word}")


def options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden and one.name != "help"]


def section(name: str, command: click.Command, level: int = 2) -> Iterator[str]:
    """Yield the lines of a command."""
    pieces = command.collect_usage_pieces(click.Context(command))
    yield from (f"{'#' * level} `{name}`", "", "```sh", " ".join([name, *pieces]), "```", "")
    for text in (command.help, command.epilog):
        yield from prose(text or "")
    mine = options(command)
    shared = {names: label for _, label, names in GROUPS if set(names) <= {option.name for option in mine}}
    own = [option for option in mine if not any(option.name in names for names in shared)]
    if own:
        yield from (*table(own), "")
    if shared:
        links = [f"[{label}](#{'-'.join(title.lower().split())})" for title, label, names in GROUPS if names in shared]
        yield from (f"{'Also options' if own else 'Options'} {', '.join(links)}.", "")


def prose(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text. One that click does not wrap is code."""
    for paragraph in re.split(r"\n\s*\n", text.replace("\f", "").replace(r"\b", "\b").strip()):
        lines = [line.strip() if "\b" not in paragraph else line for line in paragraph.splitlines()]
        if lines and lines[0].strip() == "\b":
            body = lines[1:]
            margin = min((len(line) - len(line.lstrip()) for line in body if line.strip()), default=0)
            yield from ("```sh", *(line[margin:] for line in body), "```", "")
        elif any(lines):
            yield from (" ".join(lines), "")


def table(listed: Sequence[click.Option]) -> Iterator[str]:
    """Yield a table of options."""
    yield from ("| option | default | meaning |", "|---|---|---|")
    for option in listed:
        names = ", ".join(f"`{name}`" for name in sorted([*option.opts, *option.secondary_opts], key=lambda name: name.startswith("--")))
        yield f"| {names}{value(option)} | {default(option)} | {meaning(option)} |"


def value(option: click.Option) -> str:
    """Return the value that an option takes, with a blank before it."""
    if option.is_flag or option.count:
        return ""
    if isinstance(option.type, click.Choice):
        return " " + ", ".join(f"`{choice}`" for choice in option.type.choices)
    return f" `{option.metavar or option.type.name.upper()}`"


def default(option: click.Option) -> str:
    written = re.search(r"\[default: (.*)\]", option.help or "")
    if written:
        return escaped(written[1])
    if option.required:
        return "required"
    plain = option.to_info_dict()["default"]
    shown = option.show_default and isinstance(plain, str | int | float) and not isinstance(plain, bool)
    return f"`{plain if isinstance(plain, str) else json.dumps(plain)}`" if shown else ""


def meaning(option: click.Option) -> str:
    return escaped(re.sub(r"\s*\[default: .*\]", "", option.help or "").rstrip(".")) + "."


def escaped(text: str) -> str:
    return re.sub(r"([|*_<>])", r"\\\1", " ".join(text.split()))
