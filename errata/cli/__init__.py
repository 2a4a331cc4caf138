"""The command line of Errata.

`main` may be called again and again in one process. It returns the exit code, never exits and keeps no state.
"""

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from errata.cli.console import Console
from errata.cli.exit_report import ended
from errata.cli.group import errata
from errata.cli.interrupts import INTERRUPTED, Interrupts, interruptible, leave
from errata.core.env_references import collected_secrets


def run() -> None:
    """Run the installed command and exit with its code. Answers a shell that asks for completions too."""
    _collect_seldom()
    if "_ERRATA_COMPLETE" in os.environ:
        errata.main(prog_name="errata")
    code = _main(sys.argv[1:], _given_up)
    if code == INTERRUPTED:
        leave(code)
    sys.exit(code)


def _given_up() -> NoReturn:
    os.write(2, b"error: interrupted\nWhat was committed stands; the next run takes the rest back.\n")
    os._exit(INTERRUPTED)


def _collect_seldom() -> None:
    """Collect garbage rarely, and not at the end. Most objects of a command live until it ends, and collecting took a fifth of a short one's time."""
    gc.set_threshold(500_000, 20, 100)
    atexit.register(_freeze)


def _freeze() -> None:
    """Let no object be looked for as the process ends; DuckDB's are, since its library reports all that are left."""
    if "_duckdb" not in sys.modules:
        gc.freeze()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `argv` are the words after `errata`, by default the process's own."""
    return _main(sys.argv[1:] if argv is None else argv, lambda: None)


def _main(argv: Sequence[str], give_up: Callable[[], None]) -> int:
    console = Console()
    with interruptible(give_up) as handler, collected_secrets():
        code, stopped = _judged(list(argv), console, handler)
        if console.events is not None:
            console.events.finish(code, stopped)
        return code


def _judged(words: list[str], console: Console, handler: Interrupts) -> tuple[int, BaseException | None]:
    """The exit code of a command, and what stopped it."""
    try:
        return _command(words, console), None
    except BrokenPipeError:
        return _reader_gone(), None
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one top-level guard: a defect ends with exit code 70
        handler.over = True
        stopped = KeyboardInterrupt() if handler.came else error  # an interrupt may show as another error: half a module, a query that ended
        return ended(stopped, console), stopped


def _command(words: list[str], console: Console) -> int:
    with errata.make_context("errata", words, obj=console) as context:
        result = errata.invoke(context)
    return int(result) if isinstance(result, int) else 0


def _reader_gone() -> int:
    """The reader of the answer closed the pipe. That is no failure, and nothing more is written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
