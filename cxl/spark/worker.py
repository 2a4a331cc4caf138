"""The interpreter on Arrow batches, inside the engine's Python workers. Imports no pyspark."""

import copyreg
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from cxl.functions.registry import Accepts, Builtin, load
from cxl.lazy_imports import pa, pc
from cxl.runtime.context import Context
from cxl.runtime.evaluate import Frame, build
from cxl.runtime.interpret import Output, Runner
from cxl.syntax import ast
from cxl.syntax.nesting_limit import ensure_room
from cxl.typed import tree
from cxl.typed.program import Program
from cxl.types.types import MOST_DIGITS, STRING, Kind, Type
from cxl.values import decimals
from cxl.values.dynamic import dumps, loads
from cxl.values.failure import CxlFailure
from cxl.values.operators import is_nan

NAN = "NaN"
"""The text of a dynamic NaN."""
Batch = tuple[Any, ...]
"""Arrow arrays of one length."""


@dataclass(frozen=True, slots=True)
class Read:
    """A value that an expression reads: a field or result by name, a variable by slot, a system variable by dotted name."""

    source: str
    key: Any
    type: Type


@dataclass(frozen=True, slots=True)
class Task:
    """An expression to evaluate for each row.

    Args:
        reads: The values that it reads, in the order of the batch's arrays.
        slots: How many variables it has.
        masked: Whether the batch's last array says which rows are wanted. The others are null.
    """

    expr: tree.Expr
    reads: tuple[Read, ...]
    slots: int
    max_expansion: int
    masked: bool = False


@dataclass(frozen=True, slots=True)
class ProgramTask:
    """A program to run on each row."""

    program: Program
    reads: tuple[Read, ...]
    max_expansion: int


# Builtins hold functions that have no name; they travel as what tells them apart in the registry.
def _registered(kind: Any, name: str, receiver: Accepts | None) -> Builtin:
    return next(entry for entry in load()[kind, name] if entry.receiver == receiver)


def _registration_of(entry: Builtin) -> tuple[Callable[..., Builtin], tuple[str, str, Accepts | None]]:
    return _registered, (entry.kind, entry.name, entry.receiver)


copyreg.dispatch_table[Builtin] = _registration_of


# Chains such as `a + b + c` nest along their left side, as deep as they are long; they travel as lists.
def _chain_of(kind: Callable[..., Any], first: Any, links: Iterable[tuple[tuple[Any, ...], Any]]) -> Any:
    return reduce(lambda left, link: kind(*link[0], left, link[1]), links, first)


def _links_of(expr: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    chain = [expr]
    while isinstance(chain[-1].left, type(expr)):
        chain.append(chain[-1].left)
    links = [(tuple(getattr(link, name) for name in link.__match_args__[:-2]), link.right) for link in reversed(chain)]
    return _chain_of, (type(expr), chain[-1].left, links)


copyreg.dispatch_table[tree.Binary] = _links_of
copyreg.dispatch_table[ast.Binary] = _links_of


# Arrow to Python and back -----------------------------------------------------------------------------------------------
def decoded(column: Any, type_: Type) -> list[Any]:
    """Return the Python values of a column."""
    if type_.kind is Kind.DATE_TIME:
        column = column.cast(pa.timestamp("us"))
    values: list[Any] = column.to_pylist()
    if not type_.is_dynamic:
        return values
    return [float("nan") if value == NAN else loads(value) for value in values]


def encode(value: Any, type_: Type) -> Any:
    """Return a value as its column holds it. A dynamic NaN is not null, because emitting it fails."""
    if type_.is_dynamic:
        return NAN if is_nan(value) else dumps(value)
    if type_.kind is Kind.DECIMAL:
        return None if value is None else decimals.rounded(value, type_.scale)
    return float(value) if type_.kind is Kind.FLOAT and value is not None else value


def arrow_type(type_: Type) -> "pa.DataType":
    """Return the Arrow type of a column."""
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(MOST_DIGITS, type_.scale)
    known = {Kind.BOOL: pa.bool_(), Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.DATE: pa.date32(), Kind.DATE_TIME: pa.timestamp("us", tz="UTC")}
    return known.get(type_.kind, pa.string())


def _records(batch: Batch, reads: tuple[Read, ...]) -> Iterator[tuple[Any, ...]]:
    columns = [decoded(batch[index], read.type) for index, read in enumerate(reads)]
    return zip(*columns, strict=True) if columns else iter([()] * len(batch[0]))


def _filled(frame_values: Mapping[str, list[tuple[Any, Any]]], values: tuple[Any, ...], reads: tuple[Read, ...]) -> None:
    for found in frame_values.values():
        found.clear()
    for read, value in zip(reads, values, strict=True):
        frame_values[read.source].append((read.key, value))


def evaluate_batch(task: Task, batch: Batch) -> Any:
    """Return a struct array of `v` (the value) and `f` (whether the row failed)."""
    ensure_room()
    if not task.masked:
        return _evaluated(task, batch)
    wanted = pc.fill_null(batch[-1], False)
    if wanted.true_count == len(wanted):
        return _evaluated(task, batch)
    found = _evaluated(task, tuple(column.filter(wanted) for column in batch))
    places = pc.if_else(wanted, pc.subtract(pc.cumulative_sum(wanted.cast(pa.int64())), 1), pa.scalar(None, pa.int64()))
    return found.take(places)


def _evaluated(task: Task, batch: Batch) -> Any:
    run = build(task.expr)
    results = [_outcome(run, task, values) for values in _records(batch, task.reads)]
    value = pa.array([one[0] for one in results], arrow_type(task.expr.type))
    return pa.StructArray.from_arrays([value, pa.array([one[1] for one in results], pa.bool_())], ["v", "f"])


def _outcome(run: Callable[[Frame], Any], task: Task, values: tuple[Any, ...]) -> tuple[Any, bool]:
    record, context, variables = _inputs(task.reads, values, task.max_expansion)
    frame = Frame(record, task.slots, context)
    for slot, value in variables:
        frame.locals[slot] = value
    try:
        return encode(run(frame), task.expr.type), False
    except CxlFailure:
        return None, True


def _inputs(reads: tuple[Read, ...], values: tuple[Any, ...], max_expansion: int) -> tuple[dict[str, Any], Context, list[tuple[int, Any]]]:
    found: dict[str, list[tuple[Any, Any]]] = {"field": [], "local": [], "system": []}
    _filled(found, values, reads)
    system = dict(found["system"])
    context = Context(system, max_expansion=max_expansion)
    if "now" in system:
        context = replace(context, now=lambda: system["now"])
    return dict(found["field"]), context, found["local"]


# Programs ---------------------------------------------------------------------------------------------------------------
def _each_record(task: ProgramTask, batch: Batch) -> Iterator[tuple[Runner, dict[str, Any], Context]]:
    ensure_room()
    runner = Runner(task.program)
    for values in _records(batch, task.reads):
        record, context, _ = _inputs(task.reads, values, task.max_expansion)
        yield runner, record, context


def fan_out_batch(task: ProgramTask, batch: Batch) -> Any:
    """Return a struct array of `rows` (the emitted records) and `f` (whether the record failed)."""
    row_type = pa.list_(fan_out_type(task.program))
    rows = [_emitted(runner, task.program, record, context) for runner, record, context in _each_record(task, batch)]
    failed = pa.array([one is None for one in rows], pa.bool_())
    return pa.StructArray.from_arrays([pa.array(rows, row_type), failed], ["rows", "f"])


def fan_out_members(program: Program) -> list[tuple[str, Type]]:
    """Return the members of an emitted record: `e<i>` for field i, `m<i>` for metadata i, and `names` where records have different fields."""
    fields = [(f"e{index}", type_) for index, type_ in enumerate(program.output.values())]
    names = [("names", STRING)] if program.is_uneven else []
    return [*fields, *((f"m{index}", type_) for index, type_ in enumerate(program.meta.values())), *names] or [("none", Type(Kind.BOOL))]


def fan_out_type(program: Program) -> Any:
    """Return the Arrow type of an emitted record."""
    return pa.struct([(name, arrow_type(type_)) for name, type_ in fan_out_members(program)])


def _emitted(runner: Runner, program: Program, record: dict[str, Any], context: Context) -> list[dict[str, Any]] | None:
    try:
        return [_row(program, one) for one in runner.outputs(record, context)]
    except CxlFailure:
        return None


def _row(program: Program, one: Output) -> dict[str, Any]:
    return (
        {f"e{i}": encode(one.fields.get(name), type_) for i, (name, type_) in enumerate(program.output.items())}
        | {f"m{i}": encode(one.meta.get(name), type_) for i, (name, type_) in enumerate(program.meta.items())}
        | ({"names": ",".join(one.fields)} if program.is_uneven else {})
    )  # fmt: skip


def failure_of(runner: Runner, record: Mapping[str, Any], context: Context) -> CxlFailure | None:
    """Return why a record fails, None where it does not."""
    try:
        if runner.program.expression is not None:
            runner.evaluate(record, context)
        else:
            runner.outputs(record, context)
    except CxlFailure as failure:
        return failure
    return None


def failures_batch(task: ProgramTask, batch: Batch) -> Any:
    """Return a struct array of `category`, `message`, `field`, `start`, `end`; null where the record does not fail."""
    found = (failure_of(*one) for one in _each_record(task, batch))  # one at a time: each holds the frames that it came through
    members = pa.struct([("category", pa.string()), ("message", pa.string()), ("field", pa.string()), ("start", pa.int64()), ("end", pa.int64())])
    return pa.array([None if one is None else _failure_row(one) for one in found], members)


def _failure_row(failure: CxlFailure) -> dict[str, Any]:
    start, end = (failure.span.start, failure.span.end) if failure.span is not None else (None, None)
    return {"category": failure.category, "message": failure.message, "field": failure.field, "start": start, "end": end}
