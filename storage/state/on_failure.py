"""What is undone where something does not come to its end: by an error, an interrupt, or whatever else ends it early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def undoing(undo: Callable[[], object]) -> Iterator[None]:
    """Undo what the body of a `with` began, unless it comes to its end. What ended it goes on to the caller."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        stack.pop_all()
