"""The users' choice of the engine, and which engine `auto` is for a run's work."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from storage.engines.machine import machine_memory
from storage.engines.spark.java import find_java
from storage.engines.waiting import PATIENCE_SECONDS

__all__ = ["MEMORY_OF_WORK", "EngineChoice", "EngineDecision", "decided", "fits", "has_session", "shown_bytes"]

MEMORY_OF_WORK = 16
"""Bytes of memory that Sail needs for each byte of work. It took up to ten; the rest is for Python and the system."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The wanted engine. Equal choices name the same engine.

    Args:
        kind: `auto` is decided by `decided`.
        master: Spark master URL, `local[*]` when absent. Implies Spark.
        remote: Spark Connect URL (`sc://host:port`). Implies Spark.
        memory: Bytes; a hint.
        threads: Number of cores; a hint.
        spill: Folder for temporary data.
        spill_cap: Bytes of temporary data, for an engine that supports a cap.
        patience: Seconds to wait for a cluster or a server.
        small: The work fits in memory; a hint for an engine that starts.
        shared_host: Users of this machine may use the engine where the system cannot keep them out.
    """

    kind: Literal["auto", "spark", "sail"] = "auto"
    master: str | None = None
    remote: str | None = None
    memory: int | None = None
    threads: int | None = None
    spill: Path | None = None
    spill_cap: int | None = None
    patience: int = PATIENCE_SECONDS
    small: bool = False
    shared_host: bool = False


@dataclass(frozen=True, slots=True)
class EngineDecision:
    """An engine of one kind, and the reason for it."""

    choice: EngineChoice
    reason: str


def decided(choice: EngineChoice, work: int = 0) -> EngineDecision:
    """Return the engine for `work` bytes of work.

    `auto` is Spark where a cluster is named, where this process has a Spark session, and where the work exceeds memory; else Sail.
    Without Java it is Sail for all work on this machine.
    """
    small = replace(choice, small=fits(work, choice.memory))
    if choice.kind != "auto":
        return EngineDecision(small, "")
    kind, reason = _auto(small, shown_bytes(work))
    return EngineDecision(replace(small, kind=kind), reason)


def _auto(choice: EngineChoice, work: str) -> tuple[Literal["spark", "sail"], str]:
    if choice.master or choice.remote:
        return "spark", "a cluster is named"
    if has_session():
        return "spark", "this process has a Spark session"
    if choice.small:
        return "sail", f"work of {work} fits in memory"
    if find_java() is None:
        return "sail", f"work of {work} exceeds memory, but there is no Java for Spark"
    return "spark", f"work of {work} exceeds memory"


def has_session() -> bool:
    """Return whether this process already runs Spark, as a notebook or a program that uses Errata does."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)  # another thread may be importing pyspark
    return context is not None and context._active_spark_context is not None  # noqa: SLF001  # `getOrCreate` would make one


def fits(work: int, memory: int | None = None) -> bool:
    """Return whether Sail has enough memory for `work` bytes of work. `memory` lowers the machine's memory."""
    return work * MEMORY_OF_WORK <= min(machine_memory(), memory or machine_memory())


def shown_bytes(size: int) -> str:
    """Return a number of bytes as text for people."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "KB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.1f} {unit}"
    return f"{size} B"
