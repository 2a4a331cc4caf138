"""The command line of Errata (CONTRACT.md, "Commands" and "Exit codes").

`main` may be called again and again in one process: it returns the exit code, never exits and keeps no state.
"""

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType


def run() -> None:
    """The installed command: exits with the code of `main`. Answers a shell that asks for completions too."""
    _collect_seldom()
    if "_ERRATA_COMPLETE" in os.environ:
        from errata.cli.group import errata

        errata.main(prog_name="errata")
    sys.exit(main())


def _collect_seldom() -> None:
    """Look for garbage seldom and not at the end: nearly all that a command makes lasts as long as it does, and looking took a fifth of a short one's time."""
    gc.set_threshold(500_000, 20, 100)
    atexit.register(gc.freeze)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. `argv` are the words after `errata`, by default those of the process."""
    from errata.cli.console import Console
    from errata.environment import secrets_kept

    console = Console()
    with _terminated_as_interrupted(), secrets_kept():
        try:
            return _command(list(sys.argv[1:] if argv is None else argv), console)
        except BrokenPipeError:
            return _reader_gone()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one top-level guard: a defect is told with exit code 70
            from errata.cli.endings import ended

            return ended(error, console)


def _command(words: list[str], console: object) -> int:
    from errata.cli.group import errata

    with errata.make_context("errata", words, obj=console) as context:
        result = errata.invoke(context)
    return int(result) if isinstance(result, int) else 0


def _reader_gone() -> int:
    """Whoever read the answer has enough of it: no failure, and nothing more to write."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends a command as SIGINT does; outside the main thread signals are not ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
