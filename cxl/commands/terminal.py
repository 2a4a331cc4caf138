"""Input and output of the commands."""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from cxl.diagnostics.diagnostics import Diagnostic, render_all
from cxl.runtime.cases import Unanswered

_QUIET = "cxl.quiet"
_VERBOSE = "cxl.verbose"
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters that JSON does not escape: DEL, control characters beyond ASCII, marks of the writing direction."""


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every command takes. `cxl` prints no colours, and with --verbose what programs log at the levels debug and trace too."""
    command = click.option("--no-color", is_flag=True, expose_value=False, envvar=_variables("NO_COLOR"), help="Plain text, which it is anyway.")(command)
    command = click.option("--verbose", "-v", count=True, expose_value=False, callback=_speak, envvar=_variables("VERBOSE"), help="Print more: eval prints traces of the levels debug and trace too.")(command)
    return click.option("--quiet", "-q", is_flag=True, expose_value=False, callback=_silence, envvar=_variables("QUIET"), help="No notes; errors and warnings are still printed.")(command)


def _variables(name: str) -> list[str]:
    return [f"ERRATA_{name}", f"CLINKER_{name}"]


def _silence(context: click.Context, option: click.Parameter, quiet: bool) -> None:
    context.meta[_QUIET] = quiet


def _speak(context: click.Context, option: click.Parameter, verbose: int) -> None:
    context.meta[_VERBOSE] = verbose


def trace(level: str, text: str) -> None:
    """Print what a program traces to standard error: warnings and errors also with --quiet, the levels debug and trace with --verbose."""
    meta = click.get_current_context().meta
    hidden = {"info": meta.get(_QUIET), "debug": not meta.get(_VERBOSE), "trace": not meta.get(_VERBOSE)}
    if not hidden.get(level):
        click.echo(f"{level}: {text}", err=True)


def note(text: str, *, err: bool = False) -> None:
    """Print a note, unless --quiet is given."""
    if not click.get_current_context().meta.get(_QUIET):
        click.echo(text, err=err)


def answer(text: str) -> None:
    """Print JSON. On a terminal, characters that could control it are escaped."""
    click.echo(_STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text) if sys.stdout.isatty() else text)


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises `click.ClickException` where it cannot be read."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_bytes().decode("utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot read '{name}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"cannot read '{name}': it is not UTF-8") from error
    return text.removeprefix("\ufeff")


def engine_failed(what: str, found: Unanswered) -> int:
    """Print what an engine failed on and its message, and return the exit code."""
    click.echo(f"error: the engine failed on {what}: {found.reason}", err=True)
    return 70


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics to standard error."""
    text = render_all(diagnostics)
    if text:
        click.echo(text, err=True)
