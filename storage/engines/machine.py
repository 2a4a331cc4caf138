"""Limits of this machine and the system: memory, and open files of this process (`ulimit`).

Native libraries abort the process, or fail with any error, when they get too little. So limits are checked before these libraries are loaded.
"""

import os
import resource
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from storage.errors import EngineUnavailable

__all__ = ["machine_memory", "require_for_engines", "require_for_tables"]

FILES = 256
"""Open files that a run may need, including the threads and sockets of its engine."""
USUAL_FILES = 1024
TABLES_BYTES = 1 << 30
"""Address space (`ulimit -v`) that reading tables needs."""
ENGINE_BYTES, CORE_BYTES = 5 << 30, 128 << 20
"""Address space that an engine needs, and more for each core: threads and memory pools reserve addresses that they rarely use."""


def machine_memory(root: Path = Path("/")) -> int:
    """Return the memory in bytes: that of the machine, or the lowest limit of a control group of this process.

    `root` is the folder that holds `proc` and `sys`.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_group_limits(root)])


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the limits of the process's control groups, each from the innermost group to the outermost."""
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
    """Return the text of a file, empty where it cannot be read: a container shows only the groups below its own."""
    try:
        return file.read_text(errors="surrogateescape")
    except OSError:
        return ""


@cache
def require_for_tables() -> None:
    """Raise EngineUnavailable where the limits of this process are too low to read tables. Raises the limit of open files if the user may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _below(soft, USUAL_FILES):
        soft = USUAL_FILES if hard == resource.RLIM_INFINITY else min(hard, USUAL_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if _below(soft, FILES):
        raise EngineUnavailable.too_little(f"{soft} open files", "ulimit -n", f"{FILES}")
    _require_memory(TABLES_BYTES, "tables")


@cache
def require_for_engines() -> None:
    """Raise EngineUnavailable where the limits of this process are too low for an engine."""
    require_for_tables()
    _require_memory(ENGINE_BYTES + CORE_BYTES * (os.cpu_count() or 1), "an engine")


def _require_memory(needed: int, what: str) -> None:
    for kind, command in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d")):
        allowed, _ = resource.getrlimit(kind)
        if _below(allowed, needed):
            raise EngineUnavailable.too_little(f"{allowed >> 20:,} MB of memory", command, f"{needed >> 20:,} MB for {what}")


def _below(allowed: int, needed: int) -> bool:
    return allowed != resource.RLIM_INFINITY and allowed < needed
