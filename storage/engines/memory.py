"""The memory of this machine, or of the container that the process runs in."""

import os
from pathlib import Path

__all__ = ["machine_memory"]

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory() -> int:
    """In bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [Path(name).read_text().strip() for name in CGROUP_LIMITS if Path(name).is_file()]
    return min([physical, *(int(limit) for limit in limits if limit.isdigit())])
