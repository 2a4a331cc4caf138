"""Programs with the records to run them on: the question that both backends answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cxl.runtime.context import Context
from cxl.runtime.interpret import Runner
from cxl.typed.program import Program
from cxl.values.failure import CxlFailure

Answer = list[dict[str, Any]] | CxlFailure
"""The result of one record: the emitted records in order, or its failure."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A case on which the engine failed, and the engine's message."""

    reason: str


Answers = list[Answer] | Unanswered
"""An answer for each record of a case, or none at all."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row program and its records: Python values of the schema's types. A missing field is null."""

    program: Program
    records: Sequence[Mapping[str, Any]]


def interpret_cases(cases: Iterable[Case], context: Context) -> list[list[Answer]]:
    """Return the interpreter's answers, by case and record."""
    return [_interpret(case, context) for case in cases]


def _interpret(case: Case, context: Context) -> list[Answer]:
    runner = Runner(case.program)
    return [_answer(runner, record, context) for record in case.records]


def _answer(runner: Runner, record: Mapping[str, Any], context: Context) -> Answer:
    try:
        return runner.run(record, context)
    except CxlFailure as failure:
        return failure
