"""Both backends asked the same: what the tests of agreement share."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cxl import CxlFailure, Program, Schema, compile_program
from cxl.runtime.cases import Answer, Case, Unanswered, interpret_cases
from cxl.runtime.context import Context, eval_context
from cxl.spark.cases import evaluate_cases
from cxl.values.dynamic import dumps

ENGINE = os.environ.get("ERRATA_TEST_ENGINE", "sail")


@dataclass(frozen=True)
class Disagreement:
    """One record on which the backends differ."""

    program: str
    record: Mapping[str, Any]
    interpreter: Any
    engine: Any

    def __str__(self) -> str:
        return f"{self.program}\n  {self.record!r}\n  interpreter {self.interpreter!r}\n  {ENGINE} {self.engine!r}"


def spelled(answer: Answer, output: Schema) -> Any:
    """An answer as its columns hold it, so that equal spellings are equal bytes: 1 is not 1.0, 0.0 is not -0.0."""
    if isinstance(answer, CxlFailure):
        return "failure", answer.category, answer.message, answer.field
    return [{name: repr(dumps(value) if output[name].is_dynamic else value) for name, value in record.items()} for record in answer]


def disagreements(cases: Sequence[Case], context: Context | None = None) -> list[Disagreement]:
    """Every record on which the interpreter and the engine give different bytes."""
    context = context or eval_context()
    found = []
    for case, theirs, ours in zip(cases, evaluate_cases(cases, ENGINE, context), interpret_cases(cases, context), strict=True):
        assert not isinstance(theirs, Unanswered), f"{case.program.text}\n  {theirs.reason}"
        output = case.program.output
        rows = ((record, spelled(a, output), spelled(b, output)) for record, a, b in zip(case.records, ours, theirs, strict=True))
        found.extend(Disagreement(case.program.text, record, a, b) for record, a, b in rows if a != b)
    return found


def case(text: str, schema: Mapping[str, str], records: Iterable[Mapping[str, Any]]) -> Case:
    """A program and its records."""
    program: Program = compile_program(text, Schema.of(schema))
    return Case(program, list(records))


def answers(text: str, schema: Mapping[str, str], records: Iterable[Mapping[str, Any]]) -> list[Answer]:
    """The answers of both backends for each record."""
    asked = case(text, schema, records)
    assert not (found := disagreements([asked])), "\n".join(map(str, found))
    return interpret_cases([asked], eval_context())[0]
