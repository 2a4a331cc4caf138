"""How a run ended, for all who report it."""

from __future__ import annotations

from dataclasses import dataclass, field

from errata.core.events import RunResult
from errata.core.failures import RecordCounts

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. `counts`: its records, where it read everything and left nothing."""

    exit_code: int
    error: str | None = None
    counts: RecordCounts | None = None
    result: RunResult = field(default_factory=lambda: RunResult(exit_code=0))
