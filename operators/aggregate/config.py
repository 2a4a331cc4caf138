"""Configuration of an aggregate node."""

from typing import Literal

from pydantic import Field

from operators.aggregate.time_window.config import Lateness, TimeWindow
from operators.core.config import Strict


class AggregateConfig(Strict):
    """Group fields, program, strategy hint, time window, how late its records may come (`forever`: windows never close)."""

    group_by: list[str] = Field(
        default_factory=list, description="The fields that make a group, in the order of the columns and of the rows; an empty list makes one row of all records (E240)."
    )
    cxl: str = Field(description="The CXL program, whose emit statements call aggregate functions such as sum(amount).")
    strategy: Literal["auto", "hash", "streaming"] = Field(
        default="auto", description="A hint: streaming needs an input that is sorted by the group, auto and hash do not differ in results (E241, E15Y)."
    )
    time_window: TimeWindow | None = Field(default=None, description="The window of event time that groups records too (E156, E242, E243).")
    allowed_lateness: Lateness | None = Field(default=None, description="How long a window stays open behind its end, such as 1h; forever never closes one. By default no time.")
