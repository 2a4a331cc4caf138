"""Window functions: `$window.f(...)` over the rows from the first to the current one.

`python` takes the values of the frame in the window's order. Rank functions take the tuples of the sort fields; `lead` also
sees the rows after the current one. Engines compute the same with Spark windows.
"""

from collections.abc import Sequence
from typing import Any

from cxl.functions import aggregate
from cxl.functions.registry import Builtin, Param, register
from cxl.types.types import ANY, ARRAY, BOOL, INT


def any_true(values: Sequence[Any]) -> bool | None:
    """Whether some value is true; null where none is and one is null."""
    return True if any(value is True for value in values) else None if None in values else False


def all_true(values: Sequence[Any]) -> bool | None:
    """Whether every value is true; null where none is false and one is null."""
    return False if any(value is False for value in values) else None if None in values else True


def _none_true(values: Sequence[Any]) -> bool | None:
    found = any_true(values)
    return None if found is None else not found


def _rank(frame: Sequence[Any]) -> int:
    return list(frame).index(frame[-1]) + 1


def _dense_rank(frame: Sequence[Any]) -> int:
    return len(dict.fromkeys(frame))


def _entry(name: str, doc: str, python: Any, returns: Any, params: tuple[Param, ...] = ()) -> None:
    register(Builtin(name=name, receiver=None, kind="window", doc=doc, python=python, returns=returns, params=params,
                     category="Window", section="Window Functions"))  # fmt: skip


_FIELD, _NUMBER, _PREDICATE = (Param("field"),), (Param("field", aggregate.NUMBER),), (Param("predicate", BOOL),)
_OFFSET = (Param("n", INT, optional=True),)
_entry("sum", "The running sum.", aggregate.total, aggregate.sum_type, _NUMBER)
_entry("cumulative_sum", "The running sum, another name of `sum`.", aggregate.total, aggregate.sum_type, _NUMBER)
_entry("avg", "The running mean.", aggregate.mean, aggregate.mean_type, _NUMBER)
_entry("min", "The least value so far.", aggregate.least, aggregate.argument_type, _FIELD)
_entry("max", "The greatest value so far.", aggregate.greatest, aggregate.argument_type, _FIELD)
_entry("count", "The number of records so far.", len, INT)
_entry("first_value", "The value of the first record.", lambda values: values[0], aggregate.argument_type, _FIELD)
_entry("last_value", "The value of the current record, the last of the frame.", lambda values: values[-1], aggregate.argument_type, _FIELD)
_entry("row_number", "The position in the window, from 1.", len, INT)
_entry("rank", "The rank by the sort fields with gaps after ties.", _rank, INT)
_entry("dense_rank", "The rank by the sort fields without gaps.", _dense_rank, INT)
_entry("first", "The first record: `$window.first().field`.", lambda values: values[0], ANY)
_entry("last", "The current record, the last of the frame: `$window.last().field`.", lambda values: values[-1], ANY)
_entry("lag", "The record `n` (1) before: `$window.lag(1).field`; null where there is none.", None, ANY, _OFFSET)
_entry("lead", "The record `n` (1) after: `$window.lead(1).field`; null where there is none.", None, ANY, _OFFSET)
_entry("any", "Whether the condition is true for some record so far.", any_true, BOOL.or_null, _PREDICATE)
_entry("exists", "Another name of `any`.", any_true, BOOL.or_null, _PREDICATE)
_entry("every", "Whether the condition is true for every record so far.", all_true, BOOL.or_null, _PREDICATE)
_entry("not_exists", "Whether the condition is true for no record so far.", _none_true, BOOL.or_null, _PREDICATE)
_entry("collect", "The values so far that are not null, as an array.", aggregate.known, ARRAY, _FIELD)
_entry("distinct", "The distinct values so far, as an array.", lambda values: list(dict.fromkeys(aggregate.known(values))), ARRAY, _FIELD)
