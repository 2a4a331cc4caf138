"""Configuration of an aggregate node."""

from typing import Literal

from pydantic import Field

from operators.aggregate.time_window.config import Lateness, TimeWindow
from operators.core.config import Strict


class AggregateConfig(Strict):
    """Group fields, program, strategy hint, time window, how late its records may come (`forever`: windows never close)."""

    group_by: list[str] = Field(default_factory=list)
    cxl: str
    strategy: Literal["auto", "hash", "streaming"] = "auto"
    time_window: TimeWindow | None = None
    allowed_lateness: Lateness | None = None
