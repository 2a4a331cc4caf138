"""The configuration of a transform node (user guide, "Transform Nodes")."""

import re
from typing import Any, Literal

from pydantic import Field, field_validator

from operators.settings import Strict


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
    every: int | None = Field(None, ge=1)
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
    """Over which rows `$window` functions run."""

    source: str | None = None
    on: str | None = None
    group_by: list[str] = Field(default_factory=list)
    partition_by: list[str] = Field(default_factory=list)
    sort_by: list[Any] = Field(default_factory=list)


class TransformConfig(Strict):
    """Program, checks, limits, logging."""

    cxl: str
    analytic_window: AnalyticWindow | None = None
    validations: list[Validation] = Field(default_factory=list)
    max_expansion: int = Field(10_000, ge=1)
    batch_size: int | None = Field(None, ge=1)
    log: list[LogDirective] = Field(default_factory=list)
    declares: list[Declaration] = Field(default_factory=list)
    phase: Literal["runtime", "init"] = "runtime"

    @field_validator("declares")
    @classmethod
    def _named(cls, value: list[Declaration]) -> list[Declaration]:
        for item in value:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", item.name):
                raise ValueError(f"'{item.name}' is no variable name")
        return value
