"""`cxl check`: parse, resolve and type-check files."""

from pathlib import Path

import click

from cxl.commands.terminal import common_options, note, read_text, show
from cxl.compiler import findings_of, module_findings
from cxl.diagnostics.diagnostics import Diagnostic
from cxl.diagnostics.source import TextOrigin
from cxl.syntax import ast
from cxl.syntax.parse import parse_program
from cxl.typed.modules import Modules, read_module
from cxl.typed.target import Mode, Target
from cxl.types.types import Schema


@click.command(name="check")
@click.argument("files", nargs=-1, required=True)
@click.option("--field", "fields", multiple=True, metavar="NAME=TYPE", help="A field of the input; without any, every name may be a field.")
@click.option("--rules-path", type=click.Path(path_type=Path), default=Path("rules"), help="Folder of the modules that use names.")
@common_options
def command(files: tuple[str, ...], fields: tuple[str, ...], rules_path: Path) -> int:
    """Check programs and modules; every error at once."""
    schema = _schema(fields)
    results = [_check(file, schema, Modules.under(rules_path)) for file in files]
    return 1 if any(results) else 0


def _schema(fields: tuple[str, ...]) -> Schema | None:
    try:
        return Schema.of(dict(field.split("=", 1) for field in fields)) if fields else None
    except ValueError as error:
        raise click.UsageError(f"--field takes NAME=TYPE: {error}") from error


def _check(file: str, schema: Schema | None, modules: Modules) -> bool:
    """Print the findings of a file, and return whether it has errors."""
    if Path(file).suffix in (".yaml", ".yml"):
        raise click.UsageError(f"'{file}' is no CXL program; for a pipeline: errata check {file}")
    found = findings(read_text(file), file, schema, modules)
    show(found)
    failed = any(one.severity == "error" for one in found)
    if not failed:
        note(f"ok: {file} is valid")
    return failed


def findings(text: str, file: str, schema: Schema | None, modules: Modules) -> list[Diagnostic]:
    """Return the findings of a program or a module. Without a schema every unknown name may be a field of any type."""
    origin = TextOrigin(text, file)
    if _is_module(text):
        return list(module_findings(read_module(Path(file).stem, text, file), modules))
    mode: Mode = "aggregate" if _has_aggregates(text, origin, modules) else "row"
    target = Target(schema=schema or Schema(), open=schema is None, modules=modules, window=True, mode=mode)
    return list(findings_of(text, target, origin))


def _is_module(text: str) -> bool:
    statements = parse_program(text).statements
    return (
        bool(statements)
        and all(isinstance(one, ast.Fn | ast.Let) for one in statements)
        and any(isinstance(one, ast.Fn) for one in statements)
    )


def _has_aggregates(text: str, origin: TextOrigin, modules: Modules) -> bool:
    found = findings_of(text, Target(open=True, modules=modules, window=True), origin)
    return any(one.code == "CXL-A001" for one in found)
