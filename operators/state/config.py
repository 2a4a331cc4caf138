"""Configuration of a state node."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from operators.core.config import Strict


class Assignment(Strict):
    """One variable and the expression of its value."""

    var: str = Field(description="The name of a declared variable (E200, E202).")
    cxl: str = Field(description="The CXL expression of its value; aggregate functions fold the records of the scope (E207).")


class StateConfig(Strict):
    """Which scope is written, when, and the assignments in order; a later one sees what an earlier one wrote."""

    scope: Literal["pipeline", "source", "record"] = Field(description="Whose variables are written: the pipeline's, each file's, or each record's.")
    phase: Literal["runtime", "init"] = Field(default="runtime", description="runtime writes while records pass; init writes before any record of the run, in pipeline scope alone (E206).")
    set: list[Assignment] = Field(min_length=1, description="The assignments in order; a later one sees what an earlier one wrote.", examples=[[{"var": "total", "cxl": "sum(amount)"}]])

    @property
    def variables(self) -> tuple[str, ...]:
        """The names that are written."""
        return tuple(dict.fromkeys(one.var for one in self.set))
