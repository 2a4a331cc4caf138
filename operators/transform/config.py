"""Configuration of a transform node."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from operators.core.config import SortOrder, Strict


class Validation(Strict):
    """A declarative check: a named one of a field, or a CXL condition that must be true."""

    field: str | None = Field(default=None, description="The field that a named check looks at (E250).", examples=["amount"])
    check: str = Field(description="A named check such as not_null, or a CXL condition that must be true.")
    severity: Literal["error", "warn"] = Field(default="error", description="error rejects the record; warn logs.")
    message: str | None = Field(default=None, description="The text of the failure.")
    name: str | None = Field(default=None, description="The name under which failures are counted; by default made of field and check.")
    args: dict[str, Any] = Field(default_factory=dict, description="The arguments of a named check, such as value, min and max.", examples=[{"min": 0, "max": 1000}])

    @property
    def label(self) -> str:
        """The name under which failures are reported; derived from field and check where none is given."""
        return self.name or ":".join(part for part in (self.field, self.check) if part)


class LogDirective(Strict):
    """A line to log while the transform runs."""

    level: Literal["trace", "debug", "info", "warn", "error"] = Field(description="The level of the line.")
    when: Literal["before_transform", "after_transform", "per_record", "on_error"] = Field(
        description="When the line is logged: before or after the transform, for each record, or for records that fail."
    )
    message: str = Field(description="The text of the line; the values of fields follow it.", examples=["A large order"])
    every: Annotated[int | None, Field(ge=1)] = Field(default=None, description="Logs each N-th record.", examples=[1000])
    condition: str | None = Field(default=None, description="A CXL condition for records to log.", examples=["amount > 1000"])
    fields: list[str] = Field(default_factory=list, description="Fields that are added to the line.", examples=[["order_id", "amount"]])
    log_rule: str | None = Field(default=None, description="Accepted; it has no effect.", examples=["audit"])


class Declaration(Strict):
    """A scoped variable that a transform declares."""

    name: str = Field(description="The name of the variable (E201, E202).", examples=["limit"])
    scope: Literal["pipeline", "source", "record"] = Field(description="Whose value it is: the pipeline's, each file's, or each record's.")
    type: str = Field(description="The type of the variable (E203).", examples=["int"])
    default: Any = Field(default=None, description="The value before anything is written (E204).", examples=[100])


class AnalyticWindow(Strict):
    """The rows over which `$window` functions run.

    Rows of the input with equal `group_by` values (or `partition_by`, a synonym), ordered by `sort_by`. With `source`, the rows of another node whose `group_by`
    fields equal the record's; `on` names the record's field where it differs.
    """

    source: str | None = Field(default=None, description="Another node over whose rows the functions run.", examples=["prices"])
    on: str | None = Field(default=None, description="The record's field that is compared with the field in group_by, where it has another name.", examples=["product_id"])
    group_by: list[str] = Field(default_factory=list, description="The fields that make a partition (E252, E256).")
    partition_by: list[str] = Field(default_factory=list, description="Another word for group_by.")
    sort_by: SortOrder = Field(default_factory=list, description="The order of the rows in a partition; by default source order (E253).")

    @property
    def fields(self) -> tuple[str, ...]:
        """The partition fields."""
        return tuple(dict.fromkeys((*self.group_by, *self.partition_by)))


class TransformConfig(Strict):
    """Program, checks, limits, logging."""

    cxl: str = Field(description="The CXL program, which runs once a record.")
    analytic_window: AnalyticWindow | None = Field(default=None, description="The rows over which $window functions run (E252, E253).")
    validations: list[Validation] = Field(default_factory=list, description="Checks of each record.", examples=[[{"field": "amount", "check": "not_null"}]])
    max_expansion: Annotated[int, Field(ge=1)] = Field(default=10_000, description="The most records that one record may become by emit each; a record that exceeds it is rejected.")
    batch_size: Annotated[int | None, Field(ge=1)] = Field(default=None, description="Accepted; it has no effect.", examples=[1000])
    log: list[LogDirective] = Field(default_factory=list, description="Lines to log.", examples=[[{"level": "info", "when": "per_record", "message": "An order"}]])
    declares: list[Declaration] = Field(default_factory=list, description="Scoped variables that the transform declares; it does not write them.", examples=[[{"name": "limit", "scope": "pipeline", "type": "int"}]])
    phase: Literal["runtime", "init"] = Field(default="runtime", description="Accepted; it has no effect. The phase of a state node has one.")

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
