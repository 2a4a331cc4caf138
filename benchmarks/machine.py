"""The circumstances of a result: the machine, the versions and the date."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("pyspark", "delta-spark", "pysail", "deltalake", "polars", "pyarrow", "duckdb")


def processor() -> str:
    """The processor's name as the system gives it."""
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return found[1] if found else platform.machine()


def memory_gb() -> int:
    """Physical memory in GB."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)


def description() -> str:
    """One paragraph for the results page."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {processor()}, {os.cpu_count()} cores, {memory_gb()} GB; "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {versions}."
    )


def load() -> float:
    """The load average of the last five minutes: how many processes ran, or wanted to, at a time."""
    return round(os.getloadavg()[1], 1)
