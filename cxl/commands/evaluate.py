"""`cxl eval`: a program on given fields, on a JSON record, or on cases of standard input."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from cxl.commands import batch
from cxl.commands.json_records import inferred_type, json_value, typed_record
from cxl.commands.terminal import answer, common_options, engine_failed, note, read_text, show, trace
from cxl.compiler import compile_for
from cxl.diagnostics.diagnostics import CxlErrors, Diagnostic
from cxl.diagnostics.source import TextOrigin
from cxl.runtime.cases import Answer, Unanswered
from cxl.runtime.context import eval_context
from cxl.runtime.interpret import Runner
from cxl.typed.modules import Modules
from cxl.typed.program import Program
from cxl.typed.target import Target
from cxl.types.types import Schema
from cxl.values.dynamic import INT_MAX, INT_MIN
from cxl.values.failure import CxlFailure


@click.command(name="eval")
@click.argument("file", required=False)
@click.option("-e", "expressions", multiple=True, help="A statement; given several times, one program.")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field; the type is inferred from the value.")
@click.option("--record", metavar="JSON", help="The record as a JSON object; - reads it from standard input.")
@click.option("--jsonl", is_flag=True, help="Cases on standard input, one JSON object a line; answers on standard output.")
@click.option("--backend", type=click.Choice(["interpreter", "spark"]), default="interpreter", show_default=True, help="What evaluates the program.")
@click.option(
    "--engine", type=click.Choice(["auto", "spark", "sail"]), default="auto", envvar="ERRATA_ENGINE", help="Engine of the spark backend."
)
@click.option("--rules-path", type=click.Path(path_type=Path), default=Path("rules"), help="Folder of the modules that use names.")
@common_options
def command(
    file: str | None, expressions: tuple[str, ...], fields: tuple[str, ...], record: str | None,
    jsonl: bool, backend: str, engine: str, rules_path: Path,
) -> int:  # fmt: skip
    """Evaluate a CXL program and print what it emits as JSON."""
    modules = Modules.under(rules_path)
    if jsonl:
        return batch.answer_cases(sys.stdin, sys.stdout, modules, backend, engine)
    if (file is None) == (not expressions):
        raise click.UsageError("give a file or -e, and not both")
    if file is not None and " " in file and not Path(file).exists():
        raise click.UsageError(f"there is no file '{file}'; a program is given with -e")
    text = "\n".join(expressions) if file is None else read_text(file)
    values = _record(fields, record)
    return _evaluate(text, "<inline>" if file is None else file, values, modules, backend, engine)


def _evaluate(text: str, file: str, values: dict[str, Any], modules: Modules, backend: str, engine: str) -> int:
    schema = Schema((name, inferred_type(value)) for name, value in values.items())
    try:
        program = compile_for(text, Target(schema=schema, modules=modules), TextOrigin(text, file))
    except CxlErrors as errors:
        show(errors.diagnostics)
        return 1
    show(program.warnings)
    answer = _answer(program, values, file, backend, engine)
    if isinstance(answer, Unanswered):
        return engine_failed("the program", answer)
    if isinstance(answer, CxlFailure):
        show([_failure(program, answer)])
        return 1
    _print(program, answer)
    return 0


def _answer(program: Program, values: Mapping[str, Any], file: str, backend: str, engine: str) -> Answer | Unanswered:
    if backend == "spark":
        (found,) = batch.spark_answers([(program, [values])], engine, file)
        return found if isinstance(found, Unanswered) else found[0]
    try:
        return Runner(program).run(typed_record(values, program.schema), replace(eval_context(file), trace=trace))
    except CxlFailure as failure:
        return failure


def _failure(program: Program, failure: CxlFailure) -> Diagnostic:
    """A failing record, shown like an error of the program."""
    span = failure.span or program.statements[0].span
    where = f" (field '{failure.field}')" if failure.field else ""
    return Diagnostic(failure.category, f"{failure.message}{where}", span, origin=program.origin)


def _print(program: Program, records: list[dict[str, Any]]) -> None:
    if program.fans_out:
        shown = ",\n".join(_object(record, "  ") for record in records)
        answer(f"[\n{shown}\n]" if records else "[]")
    elif records:
        answer(_object(records[0], ""))
    else:
        click.echo("{}")
        note("note: record filtered by predicate or dropped as duplicate", err=True)


def _object(record: Mapping[str, Any], indent: str) -> str:
    """An object with one member a line."""
    if not record:
        return f"{indent}{{}}"
    members = (f"{indent}  {json.dumps(name)}: {json.dumps(json_value(value), ensure_ascii=False)}" for name, value in record.items())
    return f"{indent}{{\n" + ",\n".join(members) + f"\n{indent}}}"


# What the record is -----------------------------------------------------------------------------------------------------


def _record(fields: tuple[str, ...], record: str | None) -> dict[str, Any]:
    if fields and record is not None:
        raise click.UsageError("--field and --record exclude each other")
    if record is None:
        return dict(_field(text) for text in fields)
    text = sys.stdin.read() if record == "-" else record
    try:
        value = json.loads(text, parse_int=_number)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        raise click.ClickException(f"invalid JSON record: {error}") from error
    if not isinstance(value, dict):
        raise click.ClickException("invalid JSON record: it must be an object")
    return value


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--field takes NAME=VALUE, got '{text}'")
    return name, infer(value)


def infer(text: str) -> Any:
    """Return the value of a field's text: Int, Float, Bool, null, or String."""
    words: dict[str, Any] = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    try:
        return _number(text)
    except ValueError:
        return text


def _number(text: str) -> int | float:
    """The number that a text spells with ASCII digits. Raises ValueError for any other text, such as the name Nan."""
    if "_" in text or text != text.strip() or not text.isascii():
        raise ValueError(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    whole = int(text) if text.lstrip("+-").isdigit() else None
    return value if whole is None or not INT_MIN <= whole <= INT_MAX else whole
