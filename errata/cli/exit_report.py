"""The end of a command that failed: exit code, message, and what it left behind."""

import traceback
from collections.abc import Sequence

import click

from errata.cli.console import Console
from errata.core.diagnostics import PipelineErrors
from errata.core.failures import AGAIN, REPAIR, Exit, Failure, Usage, repair
from storage.errors import EngineUnavailable, StorageError, engine_failures, unreadable


def ended(error: BaseException, console: Console) -> int:
    """Print the error and return the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return _stopped(console, "interrupted", "", Exit.INTERRUPTED, next_step=AGAIN)
    if isinstance(error, (click.ClickException, Usage)):
        return _wrong_usage(error, console)
    if isinstance(error, PipelineErrors):
        console.diagnostics(error.diagnostics)
        console.nothing_changed()
        return Exit.CONFIGURATION
    if isinstance(error, Failure):
        return _stopped(console, error.message, error.help, error.exit_code, error.details, next_step=error.next_step)
    if isinstance(error, MemoryError):
        return _stopped(console, "this process has no memory left", "give it more, or split the input", Exit.STORAGE)
    if isinstance(error, OSError):
        return _stopped(console, _text(error), "", Exit.STORAGE, next_step=_next_step(error))
    return _outside(error, console) or _defect(error, console)


def _outside(error: BaseException, console: Console) -> int:
    """Print an error of storage, formats or engines and return its exit code; 0 for any other error."""
    from storage.formats import FormatError, OptionError

    if isinstance(error, engine_failures()):
        if lost := unreadable(str(error)):
            return _stopped(console, lost, "", Exit.STORAGE)
        error = EngineUnavailable.gone(str(error)) or EngineUnavailable.without_s3(str(error)) or error
    if isinstance(error, EngineUnavailable):
        return _stopped(console, error.reason, "; or ".join(error.ways_out), Exit.STORAGE, next_step=AGAIN if error.again else REPAIR)
    if isinstance(error, OptionError):
        return _stopped(console, str(error), "", Exit.CONFIGURATION)
    return _stopped(console, str(error), "", Exit.STORAGE) if isinstance(error, (StorageError, FormatError)) else 0


def _stopped(console: Console, message: str, help_line: str, code: int, details: Sequence[str] = (), *, next_step: str = REPAIR) -> int:
    console.failure(message, help_line, details)
    console.left_behind(next_step)
    return code


def _wrong_usage(error: click.ClickException | Usage, console: Console) -> int:
    """Print an error of the command's words."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        console.write(f"{error.format_message()}\n")
        return Exit.USAGE
    if isinstance(error, click.UsageError) and error.ctx is not None:
        console.write(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help'.\n\n")
    if isinstance(error, click.ClickException):
        console.failure(error.format_message())
    else:
        console.failure(error.message, error.help)
    console.nothing_changed()
    return Exit.USAGE


def _text(error: OSError) -> str:
    """The text of an operating system's error, with its file."""
    names = " -> ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    reason = error.strerror or str(error) or type(error).__name__
    return f"{names}: {reason}" if names else reason


def _next_step(error: OSError) -> str:
    """The next step after an operating system's error: another try where a connection failed, else the file that it names."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return AGAIN
    return repair(str(error.filename) if error.filename is not None else "")


def _defect(error: BaseException, console: Console) -> int:
    """Print a defect of Errata: what and where, and the whole trace with -v."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" ({last[0].name}, line {last[0].lineno})" if last else ""
    console.failure(f"a defect of Errata: {type(error).__name__}: {error}{place}", "run again with -v for the whole trace, and report it")
    if console.shows("debug"):
        console.write("".join(traceback.format_exception(error)))
    console.left_behind("")
    return Exit.DEFECT
