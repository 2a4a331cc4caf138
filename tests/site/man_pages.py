"""Man pages of all commands, made from the commands themselves: `python -m tests.site.man_pages FOLDER` writes `FOLDER/man1/*.1`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click

from cxl.cli import cli as cxl
from errata.cli.group import errata
from errata.cli.help import GROUPS
from errata.core.failures import Exit
from tests.site.commands_page import commands, options

ENDS = {
    Exit.CLEAN: "Nothing is rejected.", Exit.CONFIGURATION: "The pipeline has errors: nothing was read or changed.", Exit.REJECTED: "Finished, with records in the dead letter queue.",
    Exit.STOPPED: "Stopped by fail_fast, an error threshold or a guard.", Exit.STORAGE: "An error of input, output or storage.", Exit.VIOLATION: "An audit found a violation.",
    Exit.BUSY: "Another run holds the pipeline.", Exit.USAGE: "Wrong usage.", Exit.DEFECT: "A defect of Errata.", Exit.INTERRUPTED: "Interrupted.",
}  # fmt: skip


def pages() -> dict[str, str]:
    """Return the pages by the names of their files."""
    every = [("errata", errata), *commands(errata, "errata"), ("cxl", cxl), *commands(cxl, "cxl")]
    names = [name for name, _ in every]
    return {f"{name.replace(' ', '-')}.1": "\n".join(page(name, command, names)) + "\n" for name, command in every}


def page(name: str, command: click.Command, names: list[str]) -> Iterator[str]:
    """Yield the lines of a page."""
    title = name.replace(" ", "-")
    yield f'.TH "{escaped(title.upper())}" 1 "" "errata {escaped(version("errata"))}" "Errata"'
    paragraphs = [text for text in (command.help or "").replace("\\b\n", "\b\n").split("\n\n") if text.strip()]
    first = " ".join(paragraphs[0].split()) if paragraphs else name
    yield from (".SH NAME", f"{escaped(title)} \\- {escaped(first.removesuffix('.'))}")
    yield from (".SH SYNOPSIS", f".B {escaped(name)}", escaped(" ".join(command.collect_usage_pieces(click.Context(command)))))
    yield ".SH DESCRIPTION"
    for text in paragraphs:
        yield from paragraph(text)
    if isinstance(command, click.Group):
        yield from inner_commands(name, command)
    yield from option_lines(command)
    if name.startswith("errata"):
        yield from (".SH ENVIRONMENT", "An option can be set by a variable of the environment too: ERRATA_ and its name, such as ERRATA_STATE.")
        yield ".SH EXIT STATUS"
        for code, meaning in ENDS.items():
            yield from (".TP", f".B {int(code)}", escaped(meaning))
    others = [one for one in names if one.split()[0] == name.split(maxsplit=1)[0] and one != name]
    yield from (".SH SEE ALSO", ", ".join(f"{escaped(one.replace(' ', '-'))}(1)" for one in others))


def paragraph(text: str) -> Iterator[str]:
    """Yield a paragraph; one that click does not wrap keeps its lines."""
    yield ".PP"
    if text.lstrip(" \n").startswith("\b"):
        yield from (".nf", *(escaped(line.rstrip()) for line in text.replace("\b", "").strip("\n").splitlines()), ".fi")
    else:
        yield escaped(" ".join(text.split()))


def inner_commands(name: str, group: click.Group) -> Iterator[str]:
    yield ".SH COMMANDS"
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield from (".TP", f".B {escaped(name)} {escaped(word)}", escaped(command.get_short_help_str(200)))


def option_lines(command: click.Command) -> Iterator[str]:
    """Yield the options of the command, then the groups of shared ones."""
    mine = options(command)
    shared = {name for group in GROUPS for name in group.names}
    sections = [("OPTIONS", [one for one in mine if one.name not in shared])]
    sections += [(group.title.upper(), [one for one in mine if one.name in group.names]) for group in GROUPS]
    for title, found in sections:
        if found:
            yield f".SH {title}"
        for option in found:
            record = option.get_help_record(click.Context(command))
            assert record is not None
            yield from (".TP", f".B {escaped(record[0])}", escaped(" ".join(record[1].split()) or "No effect of its own."))


def escaped(text: str) -> str:
    """Return a text that troff prints unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main() -> None:
    folder = Path(sys.argv[1]) / "man1"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
