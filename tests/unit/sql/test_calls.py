"""Calls of libraries that a signal interrupts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.sql.calls import awaited


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """Let SIGALRM interrupt, as SIGINT does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGALRM, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGALRM)


def test_a_call_gives_its_result_or_raises() -> None:
    assert awaited(lambda: 7, lambda: None) == 7
    with pytest.raises(ZeroDivisionError):
        awaited(lambda: 1 // 0, lambda: None)


def test_a_signal_during_a_call_that_ends_at_once_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt):
        awaited(interrupt, lambda: None)


def test_a_signal_cancels_a_call_and_waits_for_its_end() -> None:
    cancelled, ended = threading.Event(), []

    def call() -> None:
        interrupt()
        assert cancelled.wait(10)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        awaited(call, cancelled.set)
    assert ended == [True]


def test_a_call_of_another_thread_stays_there() -> None:
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(lambda: (threading.get_ident(), awaited(threading.get_ident, lambda: None))).result()
    assert made[0] == made[1]
