"""Configuration of a state node."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from operators.core.config import Strict


class Assignment(Strict):
    """One variable and the expression of its value."""

    var: str
    cxl: str


class StateConfig(Strict):
    """Which scope is written, when, and the assignments in order; a later one sees what an earlier one wrote."""

    scope: Literal["pipeline", "source", "record"]
    phase: Literal["runtime", "init"] = "runtime"
    set: list[Assignment] = Field(min_length=1)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names that are written."""
        return tuple(dict.fromkeys(one.var for one in self.set))
