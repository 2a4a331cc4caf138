"""Calls of libraries that a signal interrupts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from typing import TypeVar

T = TypeVar("T")


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
    answer: Future[T] = Future()
    thread = threading.Thread(target=copy_context().run, args=(_answer, call, answer), daemon=True)
    try:
        thread.start()
        answer.exception()
    finally:
        if thread.is_alive() and not answer.done():
            cancel()
            thread.join()
    return answer.result()


def _answer(call: Callable[[], T], answer: Future[T]) -> None:
    with ExitStack() as stack:
        stack.push(partial(_fail, answer))
        answer.set_result(call())


def _fail(answer: Future[T], _kind: object, error: BaseException | None, _traceback: object) -> bool:
    """Give the error to the thread that waits, which raises it. Returns whether there was one."""
    if error is not None:
        answer.set_exception(error)
    return error is not None
