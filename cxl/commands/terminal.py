"""Reading what a command is given and saying what is wrong."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from cxl.cases import Unanswered
from cxl.diagnostics import Diagnostic, render_all


def read_text(name: str) -> str:
    """The text of a file, or of standard input for `-`. Raises `click.ClickException` where it cannot be read."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_bytes().decode("utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot read '{name}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"cannot read '{name}': it is not UTF-8") from error
    return text.removeprefix("\ufeff")


def engine_failed(what: str, found: Unanswered) -> int:
    """Print what an engine failed on and what it said; answers the exit code."""
    click.echo(f"error: the engine failed on {what}: {found.reason}", err=True)
    return 70


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics to standard error."""
    text = render_all(diagnostics)
    if text:
        click.echo(text, err=True)
