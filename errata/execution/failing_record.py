"""What `fail_fast` tells of the record that ended a run: the statement that failed and the fields that it read (user guide, "Exit code 3: Evaluation error")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.keys.encoding import bare
from changelog.lazy_imports import F
from changelog.ops import is_positive

if TYPE_CHECKING:
    from cxl import Program
    from cxl.diagnostics.source import Span
    from errata.execution.node_runner import NodeRunner
    from errata.plan.plan import Node


def told(flow: NodeRunner, node: Node, key: bytes) -> tuple[str, ...]:
    """Two lines, the expression and the record, for the reject of a transform with this key; none where its program did not fail."""
    logic = getattr(node.operator, "logic", None)
    program: Program | None = getattr(logic, "program", None)
    delta = flow.done.get(node.inputs[0][0]) if node.inputs else None
    if program is None or program.windows or delta is None or delta.frame is None:
        return ()
    found = _failed(flow, node, logic, bare(key))
    statement = None if found is None else next((one.span for one in program.syntax.statements if one.span.start <= found["__start"] < one.span.end), None)
    if found is None or statement is None:
        return ()
    text = " ".join(program.text[statement.start : statement.end].split())
    return (f"expression: {text}", f"record: {{{', '.join(_read(node, program, statement, found))}}}")


def _failed(flow: NodeRunner, node: Node, logic: Any, key: bytes) -> dict[str, Any] | None:
    """The record as the node read it, with the place in the program where it fails."""
    from cxl import spark
    from operators.core.evaluate import prepare

    program: Program = logic.program
    frame = flow.done[node.inputs[0][0]].frame
    assert frame is not None  # the caller looked
    rows = frame.where((F.col("_key") == F.lit(key)) & is_positive(F.col("_op")))
    ready, context = prepare(rows, program.reads_system, node.operator.inputs[0], flow.values_of(node), logic.config.max_expansion)
    why = spark.errors(ready, program, context, "__why")
    why = why.where(F.col("__why").isNotNull()).withColumn("__start", F.col("__why").getField("start"))
    fields = [name for name in node.operator.inputs[0].data if name in program.reads]
    found = flow.engine.to_arrow(why.select("__start", *map(column, fields)), 1).to_pylist()
    return found[0] if found else None


def _read(node: Node, program: Program, statement: Span, record: Mapping[str, Any]) -> Iterator[str]:
    """The fields that a statement reads (all that the program does, where it reads none itself) with their values."""
    from cxl.typed import tree
    from cxl.values.text import display
    from errata.rollback.cell_texts import plain

    own = [one.name for one in program.nodes() if isinstance(one, tree.Field) and statement.start <= one.span.start < statement.end]
    types = node.operator.inputs[0].data
    for name in dict.fromkeys(own or (one for one in types if one in program.reads)):
        value = plain(record[name], types[name])
        yield f"{name}: {'null' if value is None else display(value)}"
