"""The command line of Errata (CONTRACT.md, "Commands" and "Exit codes").

`main` may be called again and again in one process: it returns the exit code, never exits and keeps no state.
"""

import _thread
import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Final, NoReturn

_INTERRUPTED: Final = 130
_PATIENCE: Final = 2.0
"""So many seconds an interrupted command is given for each step of its end: to come back from where it was, to end its engine and remove its folders."""
_IMPORT: Final = 4.0
"""So many seconds an import may go on that is interrupted."""
_SOON: Final = 0.02
"""After so many seconds it is looked again whether an import has ended."""
_IMPORTING: Final = "<frozen importlib._bootstrap>"


def run() -> None:
    """The installed command: exits with the code of `main`. Answers a shell that asks for completions too."""
    _collect_seldom()
    if "_ERRATA_COMPLETE" in os.environ:
        from errata.cli.group import errata

        errata.main(prog_name="errata")
    code = _main(sys.argv[1:], _given_up)
    if code == _INTERRUPTED:
        _leave(code)
    sys.exit(code)


def _given_up() -> NoReturn:
    os.write(2, b"error: interrupted\nWhat was committed stands; the next run takes the rest back.\n")
    os._exit(_INTERRUPTED)


def _leave(code: int) -> NoReturn:
    """End the process soon: an import that was interrupted can leave the lock of a module taken for ever, and then the thread in which an engine starts never ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    tidying = threading.Thread(target=atexit._run_exitfuncs, daemon=True)  # noqa: SLF001  # what the interpreter would call, but for as long as it takes
    tidying.start()
    tidying.join(_PATIENCE)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _collect_seldom() -> None:
    """Look for garbage seldom and not at the end: nearly all that a command makes lasts as long as it does, and looking took a fifth of a short one's time."""
    gc.set_threshold(500_000, 20, 100)
    atexit.register(gc.freeze)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code. `argv` are the words after `errata`, by default those of the process."""
    return _main(sys.argv[1:] if argv is None else argv, lambda: None)


def _main(argv: Sequence[str], give_up: Callable[[], None]) -> int:
    """`main`; `give_up` is called where the command goes on after an interrupt."""
    from errata.cli.console import Console
    from errata.cli.exit_report import ended  # before an interrupt can leave half a module of what tells of it
    from errata.core.env_references import secrets_kept

    console = Console()
    with _interrupts(give_up) as interrupts, secrets_kept():
        try:
            return _command(list(argv), console)
        except BrokenPipeError:
            return _reader_gone()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one top-level guard: a defect is told with exit code 70
            interrupts.over = True
            return ended(KeyboardInterrupt() if interrupts.came else error, console)  # an interrupt may show as something else: half a module, a query that ended


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


class _Interrupts:
    """What becomes of signals that ask a command to end.

    Within an import an interrupt waits for its end: raised there it leaves half a module behind, or a lock that is never given back.
    One that is raised may be lost, where the interpreter ignores exceptions, so it is raised once more after a while, and at last `give_up` is called.
    Nothing here takes a lock.
    """

    def __init__(self, give_up: Callable[[], None]) -> None:
        self.came = False
        self.over = False
        self._raised = False
        self._patient_until = 0.0
        self._give_up = give_up

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            return
        if not self.came:
            self.came = True
            self._patient_until = time.monotonic() + _IMPORT
            _thread.start_new_thread(self._insist, (signal.Signals(number),))
        if time.monotonic() < self._patient_until and _imports(frame):
            return
        self._raised = True
        raise KeyboardInterrupt

    def _insist(self, number: signal.Signals) -> None:
        while time.monotonic() < self._patient_until:
            time.sleep(_SOON)
            if self._raised or self.over:
                break
            _thread.interrupt_main(number)
        time.sleep(_PATIENCE)
        if not self.over:
            _thread.interrupt_main(number)
            time.sleep(_PATIENCE)
        if not self.over:
            self._give_up()


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported where this frame is."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


def _unless_interrupt(tell: Callable[["sys.UnraisableHookArgs"], object], ignored: "sys.UnraisableHookArgs") -> None:
    """Tell of an exception that the interpreter ignores; of an interrupt nobody needs to know, as it is raised again."""
    if not isinstance(ignored.exc_value, KeyboardInterrupt):
        tell(ignored)


@contextlib.contextmanager
def _interrupts(give_up: Callable[[], None]) -> Iterator[_Interrupts]:
    """Have SIGTERM end a command as SIGINT does; outside the main thread signals are not ours."""
    interrupts = _Interrupts(give_up)
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    ours = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]  # a shell has background commands ignore them
    before = {number: signal.signal(number, interrupts) for number in ours}
    told = sys.unraisablehook
    sys.unraisablehook = partial(_unless_interrupt, told)
    try:
        yield interrupts
    finally:
        interrupts.over = True
        sys.unraisablehook = told
        for number, handler in before.items():
            signal.signal(number, handler)
