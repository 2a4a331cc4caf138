"""A lock that programs of one machine hold while they write into a folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["alone"]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that of two who write into it one waits. The system lets go of it when a program dies. Raises OSError where there is no such folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system may have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
