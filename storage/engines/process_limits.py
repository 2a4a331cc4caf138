"""What the system lets this process have: open files and memory (`ulimit`).

Libraries in native code abort the process, or fail with any error, where they get too little. So it is looked at before they are loaded.
"""

import os
import resource
from functools import cache

from storage.errors import EngineUnavailable

__all__ = ["enough_for_engines", "enough_for_tables"]

FILES = 256
"""Open files that a run may need, with its engine's threads and sockets."""
USUAL_FILES = 1024
TABLES_BYTES = 1 << 30
"""Memory, as the system counts it for `ulimit -v`, without which tables cannot be read."""
ENGINE_BYTES, CORE_BYTES = 5 << 30, 128 << 20
"""The same for an engine, and what each core adds: threads and pools of memory reserve addresses and never use most of them."""


@cache
def require_for_tables() -> None:
    """Raise EngineUnavailable where the process may not have what reading a table takes. Asks for more open files where the user may have them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _below(soft, USUAL_FILES):
        soft = USUAL_FILES if hard == resource.RLIM_INFINITY else min(hard, USUAL_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if _below(soft, FILES):
        raise EngineUnavailable.too_little(f"{soft} open files", "ulimit -n", f"{FILES}")
    _memory(TABLES_BYTES, "tables")


@cache
def enough_for_engines() -> None:
    """Raise EngineUnavailable where the process may not have what an engine takes."""
    require_for_tables()
    _memory(ENGINE_BYTES + CORE_BYTES * (os.cpu_count() or 1), "an engine")


def _memory(needed: int, what: str) -> None:
    for kind, command in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d")):
        allowed, _ = resource.getrlimit(kind)
        if _below(allowed, needed):
            raise EngineUnavailable.too_little(f"{allowed >> 20:,} MB of memory", command, f"{needed >> 20:,} MB for {what}")


def _below(allowed: int, needed: int) -> bool:
    return allowed != resource.RLIM_INFINITY and allowed < needed

