"""The values of system variables while a program runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

MAX_EXPANSION = 10_000
"""How many records emit each may make of one record by default."""


def wall_clock() -> datetime:
    """Return the time now in UTC, without zone."""
    return datetime.now(UTC).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class Context:
    """System variables, the clock, and the receiver of traces.

    Args:
        values: Values by dotted name: `pipeline.name`, `source.row`, `doc.header.id`, `meta.quality`. A missing name is null.
        max_expansion: How many records emit each may make of one record.
        trace: Takes the level and the message of each trace.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    now: Callable[[], datetime] = wall_clock
    max_expansion: int = MAX_EXPANSION
    trace: Callable[[str, str], None] | None = None


_ZERO_ID = "00000000-0000-0000-0000-000000000000"


def eval_context(file: str = "<inline>", now: Callable[[], datetime] = wall_clock) -> Context:
    """Return the context of `cxl eval`."""
    values: dict[str, Any] = {
        "pipeline.name": "cxl-eval", "pipeline.execution_id": _ZERO_ID, "pipeline.batch_id": _ZERO_ID, "pipeline.start_time": now(),
        "source.file": file, "source.path": file, "source.name": file,
        "source.batch": _ZERO_ID, "source.row": 1, "source.count": 1, "source.ingestion_timestamp": now(),
    }  # fmt: skip
    counters = ("total_count", "ok_count", "dlq_count", "filtered_count", "distinct_count")
    return Context({**values, **{f"pipeline.{name}": 0 for name in counters}}, now)
