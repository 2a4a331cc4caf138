"""The processes that this one started, as the system shows them to others."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def descendants() -> list[Path]:
    """The folders of `/proc` of this process's descendants, and of itself."""
    waiting, found = [str(os.getpid())], []
    while waiting:
        number = waiting.pop()
        found.append(Path("/proc", number))
        for thread in (found[-1] / "task").glob("*"):
            with suppress(OSError):  # threads and processes end meanwhile
                waiting += (thread / "children").read_text().split()
    return found


def shown(*names: str) -> list[bytes]:
    """Files of `/proc` of each of them: `cmdline`, which every user can read, `environ`."""
    texts = []
    for process in descendants():
        for name in names:
            with suppress(OSError):
                texts.append((process / name).read_bytes())
    return texts
