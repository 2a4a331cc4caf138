"""The memory of this machine, or of the container or service that the process runs in."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["machine_memory"]


def machine_memory(root: Path = Path("/")) -> int:
    """In bytes: what the machine has, or the least that a control group of the process may use.

    `root`: the folder that holds `proc` and `sys`.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """The limits of the process's control groups, each from the innermost to the outermost one."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        inner = PurePosixPath(group.lstrip("/"))
        if not controllers:  # version 2
            files = [root / "sys/fs/cgroup" / folder / "memory.max" for folder in (inner, *inner.parents)]
        elif "memory" in controllers.split(","):
            files = [root / "sys/fs/cgroup/memory" / folder / "memory.limit_in_bytes" for folder in (inner, *inner.parents)]
        else:
            continue
        yield from (int(limit) for file in files if (limit := _text(file).strip()).isdigit())


def _text(file: Path) -> str:
    """The text of a file; none where it cannot be read: a container shows only the groups below its own."""
    try:
        return file.read_text(errors="surrogateescape")
    except OSError:
        return ""
