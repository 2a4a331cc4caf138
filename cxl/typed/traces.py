"""What a row program would log: each `trace`, and each `debug` outside of closures, as a program of its own."""

from collections.abc import Iterator
from dataclasses import replace

from cxl.functions.registry import overloads
from cxl.typed import tree
from cxl.typed.program import Program
from cxl.types.types import BOOL, STRING, Schema

SHOWN = "__shown"
"""Whether a record that reached the place is logged: a boolean, or null, which is not."""
TEXT = "__text"
"""The message."""
Logged = tuple[str, tree.Expr, tree.Expr]
"""Level, guard and message."""


def traces(program: Program) -> Iterator[tuple[str, Program]]:
    """Yield the level of each message and the program that makes it: the statements ahead of it, then `SHOWN` and `TEXT`.

    A `distinct` ahead of a message is left out, since it looks at other records. A call of `debug` in a branch counts whether or not the branch is taken.
    """
    for level, statements in _until(program.statements, program.slots):
        output = Schema([(SHOWN, BOOL), (TEXT, STRING)])
        yield level, replace(program, statements=statements, output=output, meta=Schema(), slots=program.slots + 2)


def _until(statements: tuple[tree.Statement, ...], slot: int) -> Iterator[tuple[str, tuple[tree.Statement, ...]]]:
    ahead: tuple[tree.Statement, ...] = ()
    for statement in statements:
        for level, guard, message in _logged(statement):
            span = statement.span
            yield level, (*ahead, tree.Emit(span, SHOWN, slot, guard), tree.Emit(span, TEXT, slot + 1, message))
        if isinstance(statement, tree.EmitEach):
            for level, body in _until(statement.body, slot):
                yield level, (*ahead, replace(statement, body=body))
        elif isinstance(statement, tree.Emit | tree.EmitMeta):
            ahead = (*ahead, tree.Let(statement.span, statement.name, statement.slot, statement.value))
        elif not isinstance(statement, tree.Trace | tree.Distinct):
            ahead = (*ahead, statement)


def _logged(statement: tree.Statement) -> Iterator[Logged]:
    """What a statement logs, the body of emit each left out."""
    for call in (call for expr in tree.expressions(statement) for call in _debugged(expr)):
        label = call.args[0] if call.args else tree.Literal(STRING, call.span, "")
        colon = tree.Literal(STRING, call.span, ": ")
        shown = tree.Coalesce(STRING, call.span, _text(call.receiver), tree.Literal(STRING, call.span, "null"))
        yield "trace", _true(call), tree.Call(STRING.or_null, call.span, "concat", overloads("concat"), label, (colon, shown))
    if isinstance(statement, tree.Trace):
        yield statement.level, statement.guard or _true(statement.message), _text(statement.message)


def _true(expr: tree.Expr) -> tree.Expr:
    return tree.Literal(BOOL, expr.span, True)


def _text(expr: tree.Expr) -> tree.Expr:
    return tree.Call(STRING.or_null, expr.span, "to_string", overloads("to_string"), expr, ())


def _debugged(expr: tree.Expr) -> Iterator[tree.Call]:
    """The calls of `debug`, inner ones first; none where a name of the expression itself may be read."""
    if isinstance(expr, tree.Closure | tree.Comprehension | tree.Bind):
        return
    for part in tree.children(expr):
        yield from _debugged(part)
    if isinstance(expr, tree.Call) and expr.name == "debug":
        yield expr
