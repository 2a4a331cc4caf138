"""Configuration of a transform node."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from operators.core.config import SortOrder, Strict


class Validation(Strict):
    """A declarative check: a named one of a field, or a CXL condition that must be true."""

    field: str | None = None
    check: str
    severity: Literal["error", "warn"] = "error"
    message: str | None = None
    name: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name under which failures are reported; derived from field and check where none is given."""
        return self.name or ":".join(part for part in (self.field, self.check) if part)


class LogDirective(Strict):
    """A line to log while the transform runs."""

    level: Literal["trace", "debug", "info", "warn", "error"]
    when: Literal["before_transform", "after_transform", "per_record", "on_error"]
    message: str
    every: Annotated[int | None, Field(ge=1)] = None
    condition: str | None = None
    fields: list[str] = Field(default_factory=list)
    log_rule: str | None = None


class Declaration(Strict):
    """A scoped variable that a transform declares."""

    name: str
    scope: Literal["pipeline", "source", "record"]
    type: str
    default: Any = None


class AnalyticWindow(Strict):
    """The rows over which `$window` functions run.

    Rows of the input with equal `group_by` values (or `partition_by`, a synonym), ordered by `sort_by`. With `source`, the rows of another node whose `group_by`
    fields equal the record's; `on` names the record's field where it differs.
    """

    source: str | None = None
    on: str | None = None
    group_by: list[str] = Field(default_factory=list)
    partition_by: list[str] = Field(default_factory=list)
    sort_by: SortOrder = Field(default_factory=list)

    @property
    def fields(self) -> tuple[str, ...]:
        """The partition fields."""
        return tuple(dict.fromkeys((*self.group_by, *self.partition_by)))


class TransformConfig(Strict):
    """Program, checks, limits, logging."""

    cxl: str
    analytic_window: AnalyticWindow | None = None
    validations: list[Validation] = Field(default_factory=list)
    max_expansion: Annotated[int, Field(ge=1)] = 10_000
    batch_size: Annotated[int | None, Field(ge=1)] = None
    log: list[LogDirective] = Field(default_factory=list)
    declares: list[Declaration] = Field(default_factory=list)
    phase: Literal["runtime", "init"] = "runtime"

    @property
    def side_inputs(self) -> dict[tuple[str, ...], str]:
        """Nodes that the transform reads in addition to its input, by the place that names them."""
        window = self.analytic_window
        return {("config", "analytic_window", "source"): window.source} if window and window.source else {}

    @field_validator("declares")
    @classmethod
    def _named(cls, value: list[Declaration]) -> list[Declaration]:
        for item in value:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", item.name):
                raise ValueError(f"'{item.name}' is no variable name")
        return value
