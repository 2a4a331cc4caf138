"""`cxl eval --jsonl`: many programs with their records, by the interpreter or as Spark columns."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

from cxl.commands.json_records import json_value, typed_record
from cxl.commands.terminal import engine_failed
from cxl.compiler import compile_for
from cxl.diagnostics.diagnostics import CxlErrors, Diagnostic
from cxl.runtime.cases import Answer, Answers, Case, Unanswered, interpret_cases
from cxl.runtime.context import eval_context
from cxl.typed.modules import Modules
from cxl.typed.program import Program
from cxl.typed.target import Target
from cxl.types.types import Schema
from cxl.values.dynamic import read_json
from cxl.values.failure import CxlFailure

Question = dict[str, Any]


def answer_cases(source: TextIO, out: TextIO, modules: Modules, backend: str, engine: str) -> int:
    """Answer each case of `source` with one line, and return the exit code: 0 unless the engine fails on a case."""
    questions = _read(source)
    compiled = [_compile(question, modules) for question in questions]
    programs = [(one, question["records"]) for one, question in zip(compiled, questions, strict=True) if isinstance(one, Program)]
    answers = iter(_answers(programs, backend, engine))
    code = 0
    for question, one in zip(questions, compiled, strict=True):
        found = next(answers) if isinstance(one, Program) else None
        if isinstance(found, Unanswered):
            code = engine_failed(f"case {question.get('id')!r}", found)
        else:
            body = {"diagnostics": one} if found is None else {"results": [_result(answer) for answer in found]}
            out.write(json.dumps({"id": question.get("id"), **body}, ensure_ascii=False) + "\n")
    return code


def _read(source: TextIO) -> list[Question]:
    questions = []
    for number, line in enumerate(source, 1):
        if line.strip():
            questions.append(_question(line, number))
    return questions


def _question(line: str, number: int) -> Question:
    try:
        question = read_json(line)
        json.dumps(question, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        raise click.ClickException(f"line {number}: invalid JSON: {error}") from error
    if not isinstance(question, dict) or not isinstance(question.get("program"), str):
        raise click.ClickException(f"line {number}: a case is an object with id, program, schema and records")
    schema = question.get("schema", {})
    if not isinstance(schema, dict) or not all(isinstance(type_, str) for type_ in schema.values()):
        raise click.ClickException(f"line {number}: a schema is an object of field names and type names")
    return {"schema": {}, "records": [], **question}


def _compile(question: Question, modules: Modules) -> Program | list[dict[str, Any]]:
    try:
        target = Target(schema=Schema.of(question["schema"]), modules=modules)
        return compile_for(question["program"], target)
    except CxlErrors as errors:
        return [_diagnostic(one) for one in errors.diagnostics]
    except ValueError as error:
        raise click.ClickException(f"case {question.get('id')!r}: {error}") from error


def _diagnostic(found: Diagnostic) -> dict[str, Any]:
    place = found.position
    return {
        "code": found.code, "severity": found.severity, "message": found.message, "line": place.line, "column": place.column,
        "length": found.span.length, "help": found.help,
    }  # fmt: skip


def _answers(programs: list[tuple[Program, Sequence[Mapping[str, Any]]]], backend: str, engine: str) -> list[Answers]:
    if backend == "spark":
        return spark_answers(programs, engine)
    cases, misfits = _cases(programs)
    return _complete(interpret_cases(cases, eval_context()), misfits)


def spark_answers(programs: list[tuple[Program, Sequence[Mapping[str, Any]]]], engine: str, file: str = "<inline>") -> list[Answers]:
    """Return the answers of the Spark backend. PySpark is imported only here."""
    from cxl.spark.cases import evaluate_cases

    cases, misfits = _cases(programs)
    return _complete(evaluate_cases(cases, engine, eval_context(file)), misfits)


Misfits = list[dict[int, CxlFailure]]
"""For each case the failures of records that do not fit its schema, by index."""


def _cases(programs: list[tuple[Program, Sequence[Mapping[str, Any]]]]) -> tuple[list[Case], Misfits]:
    """The cases with the records that fit their schema, and the failures of the others."""
    cases: list[Case] = []
    misfits: Misfits = []
    for program, records in programs:
        fitting: list[dict[str, Any]] = []
        failed: dict[int, CxlFailure] = {}
        for index, record in enumerate(records):
            try:
                fitting.append(typed_record(record, program.schema))
            except CxlFailure as failure:
                failed[index] = failure
        cases.append(Case(program, fitting))
        misfits.append(failed)
    return cases, misfits


def _complete(answers: Sequence[Answers], misfits: Misfits) -> list[Answers]:
    """The answers, with the failures of misfits at their places."""
    return [found if isinstance(found, Unanswered) else _merged(found, failed) for found, failed in zip(answers, misfits, strict=True)]


def _merged(found: list[Answer], failed: Mapping[int, CxlFailure]) -> list[Answer]:
    rest = iter(found)
    return [failed[index] if index in failed else next(rest) for index in range(len(found) + len(failed))]


def _result(answer: Answer) -> Any:
    if isinstance(answer, CxlFailure):
        return {"error": answer.message, "category": answer.category}
    return [json_value(record) for record in answer]
