"""Programs with records to run them on, and what came of each record: the one form in which both backends are asked."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from cxl.runtime.context import Context
from cxl.runtime.failure import CxlFailure
from cxl.runtime.interpret import Runner
from cxl.runtime.text import date_text, date_time_text
from cxl.typed.program import Program
from cxl.types.types import ANY, ARRAY, BOOL, FLOAT, INT, MAP, STRING, Kind, Schema, Type

Answer = list[dict[str, Any]] | CxlFailure
"""What one record became: the emitted records (Python values, in order), or its failure."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A case on which the engine failed, and what it said: nothing is known of the records."""

    reason: str


Answers = list[Answer] | Unanswered
"""What came of a case: an answer for each record, or none at all."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program (mode row) and records whose values are Python values of the schema's types; a missing field is null."""

    program: Program
    records: Sequence[Mapping[str, Any]]


def interpret_cases(cases: Iterable[Case], context: Context) -> list[list[Answer]]:
    """The answers of the interpreter, case by case, record by record."""
    return [_interpret(case, context) for case in cases]


def _interpret(case: Case, context: Context) -> list[Answer]:
    runner = Runner(case.program)
    return [_answer(runner, record, context) for record in case.records]


def _answer(runner: Runner, record: Mapping[str, Any], context: Context) -> Answer:
    try:
        return runner.run(record, context)
    except CxlFailure as failure:
        return failure


# JSON to values and back ------------------------------------------------------------------------------------------------


def typed_record(record: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """A record of JSON values as values of the schema's types. Raises CxlFailure where one does not fit."""
    return {name: _typed(name, value, schema[name]) if name in schema else value for name, value in record.items()}


def _typed(name: str, value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_.kind is Kind.FLOAT and type(value) is int:
        return float(value)
    if isinstance(value, str) and type_.kind in (Kind.DATE, Kind.DATE_TIME):
        value = _moment(value, type_)
    expected = _PYTHON.get(type_.kind, object)
    if not isinstance(value, expected) or (isinstance(value, bool) and type_.kind is not Kind.BOOL and expected is not object):
        raise CxlFailure(f"field '{name}': {json.dumps(value, ensure_ascii=False)} is no {type_.base}")
    return value


def _moment(text: str, type_: Type) -> date | str:
    """The date or the time without zone that an ISO text names; the text itself where it names none."""
    try:
        found = date.fromisoformat(text) if type_.kind is Kind.DATE else datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if isinstance(found, datetime) and found.tzinfo else found


_PYTHON: dict[Kind, Any] = {
    Kind.STRING: str, Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool, Kind.ARRAY: list, Kind.MAP: dict, Kind.NUMERIC: (int, float),
    Kind.DATE: date, Kind.DATE_TIME: datetime,
}  # fmt: skip


def inferred_type(value: Any) -> Type:
    """The type of a field that is known by a value alone; null tells nothing."""
    kinds: dict[type, Type] = {bool: BOOL, int: INT, float: FLOAT, str: STRING, list: ARRAY, dict: MAP}
    return kinds.get(type(value), ANY)


def json_value(value: Any) -> Any:
    """A value as JSON has it: dates as ISO text, NaN and infinities as null."""
    if isinstance(value, datetime):
        return date_time_text(value)
    if isinstance(value, date):
        return date_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [json_value(one) for one in value]
    return {key: json_value(one) for key, one in value.items()} if isinstance(value, dict) else value
