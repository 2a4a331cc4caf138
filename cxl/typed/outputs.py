"""The output of a program: names, types and order."""

from collections.abc import Iterator

from cxl.diagnostics.diagnostics import Findings
from cxl.typed import tree
from cxl.types import rules
from cxl.types.types import Schema, Type

Statements = tuple[tree.Statement, ...]


def output_schemas(statements: Statements, findings: Findings) -> tuple[Schema, Schema]:
    """Return the schema of the emitted fields, in the order of first emit, and the schema of emit meta.

    An emit after the last emit each block of its level reaches no record. It is no column, and a warning reports it.
    """
    fields: dict[str, Type] = {}
    for statement, depth in _reaching(statements, 0, findings):
        if isinstance(statement, tree.Emit):
            known = fields.get(statement.name)
            type_ = statement.value.type
            fields[statement.name] = type_ if known is None or depth == 0 else rules.join(known, type_)
    meta = {one.name: one.value.type for one in tree.walk_statements(statements) if isinstance(one, tree.EmitMeta)}
    return Schema(fields.items()), Schema(meta.items())


def record_shapes(statements: Statements, before: frozenset[str] = frozenset()) -> Iterator[frozenset[str]]:
    """Yield the field names of the records that each innermost emit each block makes; without a block, of the one record."""
    names, has_block = set(before), False
    for statement in statements:
        if isinstance(statement, tree.Emit):
            names.add(statement.name)
        elif isinstance(statement, tree.EmitEach):
            has_block = True
            yield from record_shapes(statement.body, frozenset(names))
    if not has_block:
        yield frozenset(names)


def _reaching(statements: Statements, depth: int, findings: Findings) -> Iterator[tuple[tree.Statement, int]]:
    blocks = [index for index, statement in enumerate(statements) if isinstance(statement, tree.EmitEach)]
    for index, statement in enumerate(statements):
        if isinstance(statement, tree.EmitEach):
            yield from _reaching(statement.body, depth + 1, findings)
        elif blocks and index > blocks[-1] and isinstance(statement, tree.Emit):
            help = "put it before the block"
            findings.warning(
                "CXL-L001", f"emit '{statement.name}' reaches no record: it stands behind emit each", statement.span, help=help
            )
        else:
            yield statement, depth
