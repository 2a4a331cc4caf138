"""Signals that end a command: Ctrl-C and SIGTERM."""

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from types import FrameType
from typing import Final, NoReturn

from storage.at_exit import clean_up

INTERRUPTED: Final = 130
_PATIENCE: Final = 2.0
"""Seconds for each step of an interrupted command's end: to return from its work, to stop its engine, to remove its folders."""
_IMPORT: Final = 4.0
"""Seconds for an import that is interrupted."""
_POLL: Final = 0.02
"""Seconds between two looks whether an import has ended."""
_WAKING: Final = signal.SIGURG
"""A signal that nobody else sends, and that does nothing but end the wait of a system call."""
_NOBODY: Final = -1
_END: Final = b"\0"
"""What is read last: no signal has this number."""
_written: Final[set[int]] = set()
"""Where this process writes the numbers of signals: one pipe for each command that is within another."""
_IMPORTING: Final = "<frozen importlib._bootstrap>"


class Interrupts:
    """The signal handler of a command.

    An interrupt inside an import waits for the import's end: raised there, it leaves half a module or a lock that is never released.
    The interpreter may ignore an interrupt that was raised, so it is raised once more after a while. At last `give_up` is called,
    also where the main thread is inside a library that waits for somebody else: the interpreter calls no handler there, so `watch` hears of the signal.
    Nothing here takes a lock.
    """

    def __init__(self, give_up: Callable[[], None]) -> None:
        self.came = False
        self._signals = count()
        self._thread = threading.get_ident()
        self.over = False
        self._raised = False
        self._patient_until = 0.0
        self._give_up = give_up

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.over:
            return
        self._comes(number)
        if time.monotonic() < self._patient_until and _imports(frame):
            return
        self._raised = True
        raise KeyboardInterrupt

    def watch(self, numbers: int, outer: int) -> None:
        """Read the numbers of signals from a pipe, as bytes, until a zero. A signal that a server of this process, or a command within this one, handles is left to it.

        Args:
            numbers: Where they are read.
            outer: Where they were written before, which gets them too: an event loop around the command, or another command.
        """
        while (number := os.read(numbers, 1)) > _END:
            is_ours = signal.getsignal(number[0]) is self
            if is_ours and not self.over:
                self._comes(number[0])
            if outer != _NOBODY:
                with contextlib.suppress(OSError):
                    os.write(outer, number)

    def _comes(self, number: int) -> None:
        if not self.came:
            self._patient_until = time.monotonic() + _IMPORT
            self.came = True
        if next(self._signals) == 0:
            _thread.start_new_thread(self._insist, (signal.Signals(number),))

    def _insist(self, number: signal.Signals) -> None:
        while time.monotonic() < self._patient_until:
            time.sleep(_POLL)
            if self._raised or self.over:
                break
            self._raise_again(number)
        time.sleep(_PATIENCE)
        if not self.over:
            self._raise_again(number)
            time.sleep(_PATIENCE)
        if not self.over:
            self._give_up()

    def _raise_again(self, number: signal.Signals) -> None:
        """Call the handler again, also where the main thread waits for the system: a signal without any meaning ends such a wait."""
        _thread.interrupt_main(number)
        signal.pthread_kill(self._thread, _WAKING)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported in this frame or around it."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def interruptible(give_up: Callable[[], None]) -> Iterator[Interrupts]:
    """Handle SIGINT and SIGTERM alike while a command runs. Outside the main thread no signal is handled.

    Args:
        give_up: Called where the command does not end after an interrupt.
    """
    handler = Interrupts(give_up)
    if threading.current_thread() is not threading.main_thread():
        yield handler
        return
    ours = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]  # shells make background commands ignore them
    before = {number: signal.signal(number, handler) for number in ours}
    before[_WAKING] = signal.signal(_WAKING, lambda *_: None)
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_unless_interrupt, hook)
    try:
        with _watched(handler):
            try:
                yield handler
            finally:
                handler.over = True
    finally:
        sys.unraisablehook = hook
        for number, previous in before.items():
            signal.signal(number, previous)


@contextlib.contextmanager
def _watched(handler: Interrupts) -> Iterator[None]:
    """Let a thread read the numbers of signals as they come."""
    numbers, written = os.pipe()
    os.set_blocking(written, False)
    outer = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    _written.add(written)
    watching = threading.Thread(target=handler.watch, args=(numbers, outer), daemon=True)
    watching.start()
    try:
        yield
    finally:
        if written in _written:
            _written.remove(written)
            signal.set_wakeup_fd(outer, warn_on_full_buffer=False)
            os.write(written, _END)
            watching.join()
        os.close(written)
        os.close(numbers)


def _forked() -> None:
    """Let signals of a child process stay there: its pipes are the parent's."""
    if _written:
        signal.set_wakeup_fd(_NOBODY)
        _written.clear()


os.register_at_fork(after_in_child=_forked)


def _unless_interrupt(report: Callable[["sys.UnraisableHookArgs"], object], ignored: "sys.UnraisableHookArgs") -> None:
    """Report an exception that the interpreter ignores, except an interrupt: that is raised again."""
    if not isinstance(ignored.exc_value, KeyboardInterrupt):
        report(ignored)


def leave(code: int) -> NoReturn:
    """End the process soon, after an interrupt.

    An import that was interrupted can hold a module's lock for ever, and a thread that waits for it never ends.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    tidying = threading.Thread(target=clean_up, daemon=True)
    tidying.start()
    tidying.join(_PATIENCE)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
