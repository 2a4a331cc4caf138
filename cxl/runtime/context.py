"""The values of system variables while a program runs (user guide, "System Variables")."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

MAX_EXPANSION = 10_000
"""How many records one record may become through emit each, where a transform does not say otherwise."""


def wall_clock() -> datetime:
    """The time now, UTC without zone."""
    return datetime.now(UTC).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class Context:
    """Values by dotted name (`pipeline.name`, `source.row`, `doc.header.id`, `meta.quality`), the clock, where traces go.

    A name without a value is null.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    now: Callable[[], datetime] = wall_clock
    max_expansion: int = MAX_EXPANSION
    trace: Callable[[str, str], None] | None = None


_ZERO_ID = "00000000-0000-0000-0000-000000000000"


def eval_context(file: str = "<inline>", now: Callable[[], datetime] = wall_clock) -> Context:
    """What `cxl eval` runs in (user guide, "Pipeline context in eval mode")."""
    values: dict[str, Any] = {
        "pipeline.name": "cxl-eval", "pipeline.execution_id": _ZERO_ID, "pipeline.batch_id": _ZERO_ID, "pipeline.start_time": now(),
        "pipeline.source_file": file, "pipeline.source_row": 1, "source.file": file, "source.path": file, "source.name": file,
        "source.batch": _ZERO_ID, "source.row": 1, "source.count": 1, "source.ingestion_timestamp": now(),
    }  # fmt: skip
    counters = ("total_count", "ok_count", "dlq_count", "filtered_count", "distinct_count")
    return Context({**values, **{f"pipeline.{name}": 0 for name in counters}}, now)
