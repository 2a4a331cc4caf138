"""The interpreter for expressions and programs without a column: the engine calls it with Arrow batches."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, cast

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType

from cxl.lazy_imports import pa
from cxl.runtime.context import Context as RunContext
from cxl.runtime.evaluate import Frame, build
from cxl.spark.columns import Lowered, constant, opaque, spark_type
from cxl.spark.inputs import Inputs
from cxl.spark.worker import ProgramTask, Read, Task, encode, evaluate_batch, failures_batch, fan_out_batch, fan_out_members
from cxl.typed import tree
from cxl.typed.program import Program
from cxl.values.failure import CxlFailure

FAILURE_TYPE = "struct<category:string,message:string,field:string,start:bigint,end:bigint>"


def arrow_column(function: Callable[[Any], Any], returns: str, parts: list[Column], *, apart: bool = False) -> Column:
    """Return a column computed from batches of the parts.

    Args:
        function: Takes a tuple of at least one Arrow array.
        returns: The type, in the words of the engine.
        parts: The columns of the arrays.
        apart: Whether the column is a column of a frame, which no engine may copy to its readers: they would compute it again.
    """
    def run(*batch: pa.Array) -> pa.Array:
        return function(batch)

    computed = cast("Any", arrow_udf)(run, _parsed(returns))
    column: Column = (computed.asNondeterministic() if apart else computed)(*(parts or [F.lit(None).cast("boolean")]))
    return column


@cache
def _parsed(returns: str) -> DataType:
    """A type as PySpark's object. The engine parses the text, once."""
    return DataType.fromDDL(returns)


# Expressions ------------------------------------------------------------------------------------------------------------
def interpreted(inputs: Inputs, expr: tree.Expr, wanted: Column | None = None) -> Lowered:
    """Return an expression evaluated by the interpreter: once where it reads nothing, else for each row where `wanted` is true."""
    reads = list(_reads(expr))
    if not reads:
        return _folded(expr)
    parts = [inputs.read(node) for node in reads]
    task = Task(expr, tuple(_read(node) for node in reads), slots_of(expr), inputs.context.max_expansion, wanted is not None)
    parts += [] if wanted is None else [wanted]
    outcome = arrow_column(partial(evaluate_batch, task), f"struct<v:{spark_type(expr.type)},f:boolean>", parts, apart=inputs.hoist)
    if inputs.hoist:
        outcome = inputs.add(outcome)
    failed = outcome.getField("f")
    return opaque(outcome.getField("v"), expr.type, failed if wanted is None else F.coalesce(failed, F.lit(False)))


def _folded(expr: tree.Expr) -> Lowered:
    try:
        value = build(expr)(Frame({}, slots_of(expr), RunContext()))
    except CxlFailure:
        return opaque(F.lit(None).cast(spark_type(expr.type)), expr.type, F.lit(True))
    return constant(encode(value, expr.type), expr.type)


def slots_of(expr: tree.Expr) -> int:
    """Return how many variables a frame must have room for."""
    slots = (getattr(node, "slot", -1) for node in tree.walk(expr))
    return max(slots, default=-1) + 1


def _reads(expr: tree.Expr) -> Iterator[tree.Expr]:
    """The distinct fields, results, system variables and outer variables that an expression reads."""
    bound = {node.slot for node in tree.walk(expr) if isinstance(node, tree.Closure | tree.Comprehension | tree.Bind)}
    seen: set[tuple[str, Any]] = set()
    for node in tree.walk(expr):
        is_read = isinstance(node, tree.Field | tree.Result | tree.System) or (isinstance(node, tree.Local) and node.slot not in bound)
        if is_read and _identity(node) not in seen:
            seen.add(_identity(node))
            yield node


def _identity(node: Any) -> tuple[str, Any]:
    if isinstance(node, tree.Local):
        return "local", node.slot
    if isinstance(node, tree.System):
        return "system", node.name
    if isinstance(node, tree.Result):
        return "field", node.column
    return "field", node.name if node.qualifier is None else f"{node.qualifier}.{node.name}"


def _read(node: tree.Expr) -> Read:
    return Read(*_identity(node), node.type)


# Programs ---------------------------------------------------------------------------------------------------------------
def _program_parts(inputs: Inputs, program: Program) -> tuple[ProgramTask, list[Column]]:
    distinct: dict[tuple[str, Any], tree.Expr] = {}
    for node in program.nodes():
        if isinstance(node, tree.Field | tree.Result | tree.System):
            distinct.setdefault(_identity(node), node)
    reads = list(distinct.values())
    task = ProgramTask(program, tuple(_read(node) for node in reads), inputs.context.max_expansion)
    return task, [inputs.read(node) for node in reads]


def fan_out(inputs: Inputs, program: Program) -> Column:
    """Return a struct: `rows`, the records that the program emits for a row, and `f`, whether it failed."""
    task, parts = _program_parts(inputs, program)
    members = ",".join(f"{name}:{spark_type(type_)}" for name, type_ in fan_out_members(program))
    return arrow_column(partial(fan_out_batch, task), f"struct<rows:array<struct<{members}>>,f:boolean>", parts)


def failures(inputs: Inputs, program: Program) -> Column:
    """Return a struct of category, message, emitted field and place; null where the program does not fail."""
    task, parts = _program_parts(inputs, program)
    return arrow_column(partial(failures_batch, task), FAILURE_TYPE, parts)
