"""The fields that a program emits by its text, whatever is wrong with it: the rest of its node is checked against them."""

from collections.abc import Iterable, Iterator

from cxl.syntax import ast
from cxl.syntax.parse import parse_program
from cxl.types.types import ANY, OpenSchema, Schema, Type


def emitted(text: str) -> dict[str, Type] | None:
    """The fields that a program emits; None where it cannot be parsed, or emits whatever fields an input has."""
    if parse_program(text).errors or any(isinstance(one, ast.EmitAll) for one in statements(text)):
        return None
    return {one.name: ANY for one in statements(text) if isinstance(one, ast.Emit)}


def with_emitted(row: Schema, text: str) -> Schema:
    """Return a row's fields and a program's emitted fields; any field where it cannot be parsed."""
    found = emitted(text)
    return OpenSchema(row.items()) if found is None else row.with_fields(found)


def statements(text: str) -> Iterator[ast.Statement]:
    """The statements of a program, those within others too."""
    return walked(parse_program(text).statements)


def walked(found: Iterable[ast.Statement]) -> Iterator[ast.Statement]:
    """Statements and those within them, in the order of the text."""
    for one in found:
        yield one
        yield from walked(one.body if isinstance(one, ast.EmitEach) else ())
