"""Expectations of single rows as CXL predicates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.frames import any_of
from changelog.lazy_imports import F
from cxl import CxlErrors, Program, compile_program, spark
from cxl.types.types import ANY, Kind, Schema, Type, type_name
from operators.core.binding import Binding, ConfigPath
from operators.core.settings import NodeSpec
from operators.expect.config import Expectation, Placed
from storage.values.dates import constant_time

if TYPE_CHECKING:
    from pyspark.sql import Column

VALUE = "value"
"""The name of the checked column within a made predicate."""
TOGETHER = 50
"""Values that one made predicate compares with, so that no expression is deep."""


@dataclass(frozen=True, slots=True)
class RowCheck:
    """An expectation of single rows.

    Attributes:
        name: Its name.
        terms: The predicates, and the column that a made one calls `value`: all of the outer ones are true, of the inner ones one.
        message: What a failing row does not meet.
    """

    name: str
    terms: tuple[tuple[tuple[Program, str | None], ...], ...]
    message: str

    @property
    def reads(self) -> frozenset[str]:
        """System variables that the predicates read."""
        return frozenset().union(*(program.reads_system for either in self.terms for program, _ in either))

    @property
    def logic(self) -> list[Any]:
        """The logic that decides which rows fail."""
        return [[[program.normal_text(), name] for program, name in either] for either in self.terms]

    def failing(self, context: spark.Context) -> Column:
        """Whether a row fails; never null."""
        return any_of([~any_of([_holds(program, name, context) for program, name in either]) for either in self.terms])


def _holds(program: Program, name: str | None, context: spark.Context) -> Column:
    """Whether a predicate is true; false where it cannot be evaluated."""
    assert program.expression is not None  # a predicate
    value, failed = spark.column(program.expression, context, {} if name is None else {VALUE: column(name)})
    true = F.coalesce(value, F.lit(False))
    return true if failed is None else true & ~failed


def row_check(spec: NodeSpec, placed: Placed, place: ConfigPath, binding: Binding) -> RowCheck | None:
    """The check of an expectation of single rows; None after problems were reported.

    Args:
        spec: The node that checks.
        placed: The expectation.
        place: Where it is, from the node's path on.
        binding: The rows.
    """
    one = placed.expectation
    if one.check is not None:
        program = binding.compile(spec, (*place, "check"), one.check, "predicate")
        if program is not None and not program.deterministic:
            help_text = "write a freshness expectation, or compare with a column"
            binding.problems.report("E284", "a check reads the clock or the run, so an unchanged row would fail one day", (*place, "check"), help=help_text)
            program = None
        return None if program is None else RowCheck(placed.name, (((program, None),),), placed.message)
    if not has_columns(one, place, binding):
        return None
    data = binding.input.data
    terms = [tuple(_made(text, name, data.get(name, ANY)) for text in texts) for name, texts in _texts(one, data)]
    if any(program is None for either in terms for program, _ in either) or not _fitting(one, data):
        _report_unfit(one, place, binding)
        return None
    sound = tuple(tuple((program, name) for program, name in either if program is not None) for either in terms)
    return RowCheck(placed.name, sound, placed.message)


def has_columns(one: Expectation, place: ConfigPath, binding: Binding) -> bool:
    """Whether the columns that an expectation names are there; reports the others."""
    data = binding.input.data
    unknown = [name for name in one.columns if name not in data]
    for name in unknown:
        known = binding.problems.similar(name, list(data)) or f"its columns: {', '.join(data)}"
        binding.problems.report("E281", f"there is no column '{name}'", column_place(one, name, place), help=known)
    return not unknown


def column_place(one: Expectation, name: str, place: ConfigPath) -> ConfigPath:
    """Where an expectation names a column."""
    named = getattr(one, one.kind)
    return (*place, one.kind, named.index(name) if isinstance(named, list) else "column")


def _made(text: str, name: str, type_: Type) -> tuple[Program | None, str]:
    """A made predicate over a column; None where its type does not go with it."""
    try:
        return compile_program(text, Schema([(VALUE, type_)]), mode="predicate"), name
    except CxlErrors:
        return None, name


def _texts(one: Expectation, data: Mapping[str, Type]) -> Iterator[tuple[str, list[str]]]:
    """The texts of made predicates over each column: one of each list is true."""
    null = f"{VALUE}.is_null()"
    if one.not_null is not None:
        yield from ((name, [f"not {null}"]) for name in one.not_null)
    elif one.range is not None:
        bounds = ((">=", one.range.min), ("<=", one.range.max))
        yield from ((one.range.column, [f"{null} or {VALUE} {sign} {literal(bound, data[one.range.column])}"]) for sign, bound in bounds if bound is not None)
    elif one.matches is not None:
        yield one.matches.column, [f"{null} or {VALUE}.matches({literal(one.matches.pattern, ANY)})"]
    elif one.values is not None:
        known = [literal(value, data[one.values.column]) for value in one.values.allowed if value is not None]
        parts = [known[at : at + TOGETHER] for at in range(0, len(known), TOGETHER)]
        yield one.values.column, [null, *(" or ".join(f"{VALUE} == {text}" for text in part) for part in parts)]


def literal(value: Any, type_: Type) -> str:
    """A constant of YAML as CXL writes it, for comparison with values of a type."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        time = _time_of(value, type_)
        return json.dumps(value, ensure_ascii=False) if time is None else f'"{time.isoformat()}".to_{"datetime" if isinstance(time, datetime) else "date"}()'
    exact = f"{Decimal(getattr(value, 'digits', repr(value))):f}"
    if type_.kind is Kind.DECIMAL:
        return f"{exact}d"
    return exact if isinstance(value, int) or "." in exact else f"{exact}.0"


def _fitting(one: Expectation, data: Mapping[str, Type]) -> bool:
    """Whether the constants of an expectation can be values of its column, where the compiler does not see it."""
    return all(_is_time(value, data[name]) for name in one.columns for value in constants(one))


def _is_time(value: Any, type_: Type) -> bool:
    """Whether a text is a date or a time, where one is needed."""
    return type_.kind not in _READERS or (isinstance(value, str) and _time_of(value, type_) is not None)


def _time_of(text: str, type_: Type) -> date | None:
    """The date or the time in UTC that a text is for a column of such a type; None for other types and texts."""
    try:
        return _READERS[type_.kind](text) if type_.kind in _READERS else None
    except ValueError:
        return None


_READERS: Mapping[Kind, Callable[[str], date]] = {Kind.DATE: date.fromisoformat, Kind.DATE_TIME: constant_time}


def constants(one: Expectation) -> Sequence[Any]:
    """The constants that an expectation compares its column with."""
    if one.range is not None:
        return [value for value in (one.range.min, one.range.max) if value is not None]
    return [value for value in one.values.allowed if value is not None] if one.values is not None else []


def _report_unfit(one: Expectation, place: ConfigPath, binding: Binding) -> None:
    """Report that the type of a column does not go with its expectation."""
    [name] = one.columns
    type_ = binding.input.data.get(name, ANY)
    if one.matches is not None:
        binding.problems.report("E282", f"'{name}' is {type_name(type_)}, or '{one.matches.pattern}' is no pattern", (*place, "matches"), help="matches looks at columns of type string")
        return
    data = {name: type_}
    wrong = [value for value in constants(one) if not _is_time(value, type_) or _made(f"{VALUE} == {literal(value, type_)}", name, type_)[0] is None]
    shown = ", ".join(repr(value) for value in (wrong or constants(one))[:3])
    message = f"'{name}' is {type_name(data[name])} and cannot be compared with {shown}"
    binding.problems.report("E282", message, (*place, one.kind), help="write a value of the column's type; dates and times are texts such as 2026-01-31")
