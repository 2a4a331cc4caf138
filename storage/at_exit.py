"""Work for the end of the process: engines are stopped, temporary folders are removed.

An interrupted command does it within a time limit, so it is a list of our own beside the interpreter's.
"""

import atexit
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["at_exit", "clean_up"]

_work: list[Callable[[], object]] = []


def at_exit(function: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Call a function when the process ends, or earlier by `clean_up`. The last one comes first."""
    _work.append(partial(function, *arguments, **options))


@atexit.register
def clean_up() -> None:
    """Do the work now. Each function is called once; one that fails does not stop the others."""
    while _work:
        with contextlib.suppress(Exception):
            _work.pop()()
