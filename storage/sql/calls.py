"""Calls of libraries that a signal interrupts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from typing import Final, TypeVar, cast

T = TypeVar("T")
_PAUSE: Final = 0.1
"""Seconds of one wait. A signal that comes as the system begins to wait is seen after it; a call that has begun behind a try to cancel it needs another one."""


def awaited(call: Callable[[], T], cancel: Callable[[], object]) -> T:
    """Return the result of a call that blocks, or raise what it raises.

    The main thread waits while another one makes the call: ADBC replaces the handler of SIGINT while the main thread makes one, and loses the signal where the
    call ends as it comes. Other threads make the call themselves; no signal interrupts them.

    Args:
        call: The call.
        cancel: Lets the call end early. It is called from the main thread, where a signal raises an exception, which is raised when the call has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    begins, given_up, ended = threading.Event(), threading.Event(), threading.Event()

    def make() -> T | None:
        begins.wait()
        try:
            return None if given_up.is_set() else call()
        finally:
            ended.set()

    def stop() -> None:
        if not begins.is_set():
            given_up.set()
            begins.set()
            return
        while not ended.wait(_PAUSE):
            cancel()

    with ThreadPoolExecutor(1) as pool, ExitStack() as unless_it_ends:
        unless_it_ends.callback(stop)
        answer = pool.submit(copy_context().run, make)
        begins.set()
        while not ended.wait(_PAUSE):
            pass
        unless_it_ends.pop_all()
    return cast("T", answer.result())
