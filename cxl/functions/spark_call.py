"""Builtins as Spark columns: the call, and the possible answers.

`Builtin.spark` takes a `Site` and returns one of these:

* a column that is null where the receiver or an argument is null,
* a `Fallible`, an `Outcome`, a `Partly` or an `Unsure`,
* None where this call has no column: the interpreter evaluates it.

A column never raises, because a record that fails is a value. Nothing here imports pyspark; columns are passed in.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from cxl.types.types import Kind, Type

NOT_CONSTANT: Final = object()
"""The entry of `Site.constants` for an argument that is not a literal."""


def date_literal(f: Any, value: date) -> Any:
    """Return a date as a column. Spark's client cannot send years of fewer than four digits."""
    return f.date_from_unix_date(f.lit((value - date(1970, 1, 1)).days))


@dataclass(frozen=True, slots=True)
class Fallible:
    """A column that is null where the operation failed, and where the receiver or an argument is null."""

    value: Any


@dataclass(frozen=True, slots=True)
class Unsure:
    """A column like that of `Fallible`, whose nulls may also be values that the engine cannot hold. The interpreter decides."""

    value: Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """A column, and a column that is true where the operation failed (never null)."""

    value: Any
    failed: Any


@dataclass(frozen=True, slots=True)
class Partly:
    """A column that is right where `sure` is true (never null). The interpreter evaluates the other rows."""

    value: Any
    sure: Any


@dataclass(frozen=True, slots=True)
class Site:
    """One call.

    Args:
        f: Spark's functions.
        receiver, args: Columns.
        constants: The values of the literal arguments, NOT_CONSTANT for the others.
    """

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
        """Return the value of a literal argument, the default for a missing one, NOT_CONSTANT for a computed one."""
        return self.constants[index] if index < len(self.constants) else default

    def int_arg(self, index: int, low: int, high: int) -> Any:
        """Return an Int argument as a Spark `int`, limited to `low` to `high`."""
        value = self.constants[index]
        if value is not NOT_CONSTANT:
            return self.f.lit(max(low, min(high, value))).cast("int")
        given = self.args[index]
        return self.f.when(given > high, self.f.lit(high)).when(given < low, self.f.lit(low)).otherwise(given).cast("int")
