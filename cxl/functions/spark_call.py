"""What a builtin needs to become a Spark column: the place of the call, and what it may answer.

`Builtin.spark` gets a `Site` and returns a `Column` that is null where the receiver or an argument is null, or `Fallible`,
`Outcome` or `Partly`, or None where this call cannot be a column: the interpreter then evaluates it. No column may ever raise: a
record that fails is a value, not an exception. Nothing here imports pyspark; columns are passed in.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from cxl.types.types import Kind, Type

NOT_CONSTANT: Final = object()
"""Stands in `Site.constants` for an argument that is not a literal."""


def date_literal(f: Any, value: date) -> Any:
    """A date as a column: the client of Spark cannot send years of fewer than four digits."""
    return f.date_from_unix_date(f.lit((value - date(1970, 1, 1)).days))


@dataclass(frozen=True, slots=True)
class Fallible:
    """A column that is null where the operation failed: no other null than those of the receiver and the arguments."""

    value: Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """A column, and one that is true where the operation failed (never null)."""

    value: Any
    failed: Any


@dataclass(frozen=True, slots=True)
class Partly:
    """A column that is right where `sure` holds (never null); elsewhere the interpreter is asked, row by row."""

    value: Any
    sure: Any


@dataclass(frozen=True, slots=True)
class Site:
    """A call: the functions of Spark (`f`), receiver and arguments as columns, their static types, literal arguments' values."""

    f: Any
    receiver: Any
    args: tuple[Any, ...]
    receiver_type: Type
    arg_types: tuple[Type, ...]
    constants: tuple[Any, ...]

    @property
    def kind(self) -> Kind:
        """The kind of the receiver."""
        return self.receiver_type.kind

    def constant(self, index: int, default: Any = None) -> Any:
        """The literal value of an argument, the default where it was left out, NOT_CONSTANT where it is computed."""
        return self.constants[index] if index < len(self.constants) else default

    def int_arg(self, index: int, low: int, high: int) -> Any:
        """An Int argument as a Spark `int`, drawn into `low` to `high`."""
        value = self.constants[index]
        if value is not NOT_CONSTANT:
            return self.f.lit(max(low, min(high, value))).cast("int")
        given = self.args[index]
        return self.f.when(given > high, self.f.lit(high)).when(given < low, self.f.lit(low)).otherwise(given).cast("int")
