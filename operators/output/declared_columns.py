"""The decimal columns that an output declares: rounded half to even to their scale, checked against their precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from changelog.lazy_imports import pa
from cxl.types.types import Kind, Type, decimal_of
from operators.core.binding import Binding, ConfigPath
from operators.core.config import decimal_spelling, is_decimal
from operators.core.decimal_columns import computed
from operators.output.config import OutputColumn
from operators.output.projection import Projection
from storage.files.errors import OutputError
from storage.formats.fixed_width.layout import Layout
from storage.values.decimals import DIGITS, DecimalType, converted, decimal_type, first_beyond, rounded
from storage.values.types import base_type

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Declared", "declared_columns", "laid_out_columns"]

_ROUNDED = frozenset({Kind.DECIMAL, Kind.INT})
"""Kinds whose columns may be declared."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared columns of an output: precision and scale by written name."""

    digits: Mapping[str, DecimalType]

    def applied(self, projection: Projection) -> Projection:
        """Return the projection with the declared types."""
        return replace(projection, written=tuple((name, source, self._type(name, type_)) for name, source, type_ in projection.written))

    def _type(self, name: str, type_: Type) -> Type:
        digits = self.digits.get(name)
        if digits is None:
            return type_
        declared = decimal_of(digits.scale)
        return declared.or_null if type_.nullable else declared

    def spelled(self, name: str, type_name: str) -> str:
        """Return the type of a written column as writers take it: a declared one has its precision."""
        digits = self.digits.get(name)
        return type_name if digits is None else f"decimal({digits.precision},{digits.scale})"

    def written(self, name: str, value: Column, given: Type) -> Column:
        """Return the value that is written. Where one does not fit, the engine fails with an OutputError in its message."""
        digits = self.digits.get(name)
        if digits is None or (given.kind is Kind.DECIMAL and given.scale == digits.scale and digits.precision == DIGITS):
            return value
        return computed(partial(_fitted, name, digits), value, digits.scale)


def _fitted(name: str, digits: DecimalType, values: pa.Array) -> pa.Array:
    """Return decimals or ints at a scale. Raises OutputError for the first value of too many digits."""
    known = values if pa.types.is_decimal(values.type) else converted(values, DecimalType(DIGITS, 0))
    try:
        found = rounded(known, digits.scale)
    except OverflowError as wrong:
        raise _too_long(name, digits, str(wrong)) from None
    beyond = first_beyond(found, digits.precision)
    if beyond is not None:
        raise _too_long(name, digits, beyond)
    return found


def _too_long(name: str, digits: DecimalType, text: str) -> OutputError:
    return OutputError(f"column '{name}': {text} has more than the {digits.precision} digits that decimal({digits.precision},{digits.scale}) has")


NOTHING = Declared({})


def declared_columns(columns: Sequence[OutputColumn], projection: Projection, binding: Binding, *, partial_names: bool) -> Declared | None:
    """Return the columns that an output's `schema` declares; None where some cannot be, which is reported (E225, E226).

    `partial_names`: the written names are not all known, because of another problem.
    """
    found: dict[str, DecimalType] = {}
    good = True
    for index, one in enumerate(columns):
        place: ConfigPath = ("config", "schema", index)
        digits = _digits(one, place, binding)
        if digits is None or not _may_be_declared(one.name, projection, place, binding, partial_names=partial_names):
            good = False
        elif one.name in found:
            binding.problems.report("E226", f"column '{one.name}' is declared twice", (*place, "name"), help="remove one declaration")
            good = False
        else:
            found[one.name] = digits
    return Declared(found) if good else None


def _digits(one: OutputColumn, place: ConfigPath, binding: Binding) -> DecimalType | None:
    if not is_decimal(one.type):
        message = f"column '{one.name}' is declared as {one.type}; an output declares the digits of decimals alone"
        binding.problems.report("E226", message, (*place, "type"), help="convert other types in a transform")
        return None
    try:
        found = decimal_type(base_type(decimal_spelling(one.type, one.scale, one.precision)))
    except ValueError as wrong:
        binding.problems.report("E225", f"column '{one.name}' {wrong}", (*place, "type"))
        return None
    return found


def _may_be_declared(name: str, projection: Projection, place: ConfigPath, binding: Binding, *, partial_names: bool) -> bool:
    """Whether a written column of this name can have a scale; reports what cannot (E226)."""
    type_ = projection.data.get(name)
    if type_ is None:
        if partial_names or binding.input.guessed:
            return True
        help_text = binding.problems.similar(name, list(projection.data)) or "columns are declared by the names that are written"
        binding.problems.report("E226", f"this output writes no column '{name}'", (*place, "name"), help=help_text)
        return False
    if type_.kind in _ROUNDED:
        return True
    message = f"column '{name}' is {type_.base}, which has no scale"
    binding.problems.report("E226", message, (*place, "name"), help="convert it in a transform: .to_decimal(scale)")
    return False


def laid_out_columns(layout: Layout, projection: Projection, binding: Binding, key: str) -> Declared | None:
    """Return the columns whose fields of a layout have a scale; None where one cannot have it, which is reported (E226)."""
    found: dict[str, DecimalType] = {}
    for name, scale in _scales(layout):
        type_ = projection.data.get(name)
        if type_ is None:
            continue  # a field without a column is blank
        if type_.kind not in _ROUNDED:
            message = f"field '{name}' of the layout has a scale, and the column is {type_.base}, which has none"
            binding.problems.report("E226", message, ("config", key), help="convert it in a transform: .to_decimal(scale)")
            return None
        found[name] = DecimalType(DIGITS, scale)
    return Declared(found)


def _scales(layout: Layout) -> Iterator[tuple[str, int]]:
    return ((field.name, field.digits_behind) for field in layout.fields if field.digits_behind is not None)
