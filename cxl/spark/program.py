"""Row programs on DataFrames.

Statements become columns in layers: a layer reads the input and the layers before it. The input stays as it came; the columns
of a program have names that begin with `_cxl_`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cxl.functions.spark_call import NOT_CONSTANT
from cxl.runtime.interpret import nan_message
from cxl.spark.columns import Lowered, any_of, both, canonical_text
from cxl.spark.fallback import failures, fan_out, interpreted
from cxl.spark.inputs import Context
from cxl.spark.lowering import MOST_COPIED, Lowering
from cxl.spark.names import FAILED, INDEX, PASS
from cxl.spark.worker import NAN
from cxl.typed import tree
from cxl.typed.growth import growth
from cxl.typed.program import Program
from cxl.typed.rewrite import inline, weight
from cxl.types.types import Kind
from cxl.values.operators import is_nan


@dataclass(frozen=True, slots=True)
class DistinctKey:
    """A distinct statement: the columns of its key, and the column that is true where the row reached it."""

    columns: tuple[str, ...]
    reached: str


@dataclass(frozen=True, slots=True)
class Applied:
    """A frame with the columns of a program.

    `PASS` and `FAILED` are boolean columns, never null; literals where the program cannot filter or fail. A row with FAILED has
    failed, whatever PASS is. At a distinct statement a row is dropped where it reached the statement and is not the first of its key.

    Args:
        values, meta: Emitted name to column, an expression over `frame`.
        fans_out: Whether a record has one row for each record that emit each made, numbered by `INDEX`. A record without any has one row without PASS.
        nan: The interpreter's message, where rows can fail only by an emitted NaN (category `NAN_CATEGORY`).
        names: The names of a record's fields, joined by commas, where records have different fields.
    """

    frame: DataFrame
    values: Mapping[str, Column]
    meta: Mapping[str, Column]
    distinct: tuple[DistinctKey, ...] = ()
    fans_out: bool = False
    can_fail: bool = True
    nan: Column | None = None
    names: Column | None = None


def apply(frame: DataFrame, program: Program, context: Context | None = None) -> Applied:
    """Run a program of statements on every row of a frame with the columns of its schema."""
    context = context or Context()
    if not program.fans_out:
        layers = _Layers(frame, Lowering(context, hoist=True))
        applied = layers.run(program)
        if layers.height <= _MOST_LAYERS or program.distinct:
            return applied
    made = _interpreted(frame, program, Lowering(context, hoist=True))
    return replace(made, fans_out=program.fans_out)


_MOST_LAYERS = 100
"""How many layers of columns a frame may get, because engines read plans by recursion. A program with more runs in the interpreter."""


_MEASURED = 64
"""How many times longer than its inputs a text may become in columns, which do not measure it. Longer texts are left to the interpreter, which does."""


def _interpreted(frame: DataFrame, program: Program, lowering: Lowering) -> Applied:
    done = frame.withColumn("_cxl_each", fan_out(lowering, program))
    exploded = done.select("*", F.posexplode_outer(F.col("_cxl_each").getField("rows")).alias(INDEX, "_cxl_row"))
    marked = exploded.withColumns({PASS: F.col(INDEX).isNotNull(), FAILED: F.col("_cxl_each").getField("f")}).drop("_cxl_each")
    values = {name: F.col("_cxl_row").getField(f"e{index}") for index, name in enumerate(program.output)}
    meta = {name: F.col("_cxl_row").getField(f"m{index}") for index, name in enumerate(program.meta)}
    names = F.col("_cxl_row").getField("names") if program.is_uneven else None
    return Applied(marked, values, meta, fans_out=True, names=names)


@dataclass
class _Layers:
    """The columns made so far, and the columns of the next layer."""

    frame: DataFrame
    lowering: Lowering
    pending: dict[str, Column] = field(default_factory=dict)
    before: list[dict[str, Column]] = field(default_factory=list)
    """Layers below the next one: what its columns read first. Statements of one layer share them."""
    fresh: set[int] = field(default_factory=set)
    values: dict[str, Column] = field(default_factory=dict)
    meta: dict[str, Column] = field(default_factory=dict)
    distinct: list[DistinctKey] = field(default_factory=list)
    definitions: dict[int, tree.Expr] = field(default_factory=dict)
    dated: dict[int, tree.Expr] = field(default_factory=dict)
    """Definitions of dynamic values that may hold dates. A column holds those as text, so readers compute them again."""
    passed: Column | None = None
    failures: list[Column] = field(default_factory=list)
    nans: list[tuple[Column, str]] = field(default_factory=list)
    weights: dict[int, int] = field(default_factory=dict)
    """How many nodes each variable has with everything it reads copied into it."""
    growths: dict[int, float] = field(default_factory=dict)
    """How much longer each variable may be than the record's texts."""
    made: int = 0
    height: int = 0

    def run(self, program: Program) -> Applied:
        for statement in program.statements:
            _STATEMENTS[type(statement)](self, statement)
        self.flush()
        failed = any_of(*self.failures)
        known = {PASS: F.lit(True) if self.passed is None else self.passed, FAILED: F.lit(False) if failed is None else failed}
        return Applied(self.frame.withColumns(known), self.values, self.meta, tuple(self.distinct), can_fail=failed is not None, nan=self.nan())

    def nan(self) -> Column | None:
        """Why a row failed, where only an emitted NaN can fail it."""
        if not self.nans or len(self.nans) < len(self.failures):
            return None
        return F.coalesce(*(F.when(failed, F.lit(why)) for failed, why in self.nans))

    def flush(self) -> None:
        """Add the next layer to the frame, on the layers that it reads."""
        for columns in (*self.before, self.pending):
            if columns:
                self.frame = self.frame.withColumns(columns)
                self.height += 1
        self.pending, self.before, self.fresh = {}, [], set()

    def lower(self, expr: tree.Expr) -> Lowered:
        """An expression over the frame. Results of the interpreter are added to the frame before it is read."""
        expr = inline(expr, self.dated) if self.dated else expr
        self.share(expr)
        if self.fresh and any(isinstance(node, tree.Local) and node.slot in self.fresh for node in tree.walk(expr)):
            self.flush()
        lowered = self.lowering.lower(expr) if growth(expr, self.growths) <= _MEASURED else interpreted(self.lowering, expr)
        for level, (name, column) in enumerate(self.lowering.prelude.items()):  # each may read the columns before it
            if level == len(self.before):
                self.before.append({})
            self.before[level][name] = column
        self.lowering.prelude.clear()
        return lowered

    def share(self, expr: tree.Expr) -> None:
        """Put an explode below what an expression reads, where copies of that would be too large.

        An engine that moves a filter below the columns that it reads copies their expressions to every reader, and so on below.
        It moves none below an explode.
        """
        reads = [node.slot for node in tree.walk(expr) if isinstance(node, tree.Local) and node.slot in self.weights]
        if sum(self.weights[slot] for slot in reads) <= MOST_COPIED:
            return
        self.flush()
        name, stored = f"_cxl_b{self.height}", {slot: self.lowering.locals[slot] for slot in sorted({*reads}) if self.weights[slot] > 1}
        copied = F.struct(*(lowered.value.alias(f"v{slot}") for slot, lowered in stored.items()))
        self.frame = self.frame.select("*", F.explode(F.array(copied)).alias(name))
        self.height += 1
        for slot, lowered in stored.items():
            value = F.col(name).getField(f"v{slot}")
            self.lowering.locals[slot] = replace(lowered, value=value, leaves={(name, slot): value} if lowered.leaves else {})
            self.weights[slot] = 1

    def keep(self, lowered: Lowered) -> tuple[Lowered, bool]:
        """The value in a column of its own, and whether that column is in the next layer."""
        if lowered.constant is not NOT_CONSTANT:
            return lowered, False
        name = self.column(lowered.value)
        stored = F.col(name)
        leaves = {} if lowered.never_null else {name: stored}
        return Lowered(stored, lowered.type, leaves), True

    def column(self, value: Column) -> str:
        """Add a column to the next layer."""
        name = f"_cxl_{self.made}"
        self.made += 1
        self.pending[name] = value
        return name

    def fail(self, failed: Column | None) -> None:
        """Record a failure of a statement that is reached where all filters before it passed."""
        if failed is not None:
            self.failures.append(failed if self.passed is None else self.passed & failed)

    def define(self, slot: int, expr: tree.Expr) -> Lowered:
        """Define a value that later statements read."""
        lowered = self.lower(expr)
        self.weights[slot], self.growths[slot] = weight(expr, self.weights), growth(expr, self.growths)
        if isinstance(expr, tree.Field | tree.Local | tree.Result):
            self.lowering.locals[slot] = lowered
            return lowered
        stored, is_new = self.keep(lowered)
        self.lowering.locals[slot] = stored
        if is_new:
            self.fresh.add(slot)
        self.fail(lowered.at(stored.value).failure)
        return stored

    def let(self, statement: tree.Let) -> None:
        self.define(statement.slot, statement.value)
        self.remember(statement)

    def remember(self, statement: tree.Let | tree.Emit) -> None:
        """Record what a variable is, for readers that cannot use its column."""
        self.definitions[statement.slot] = statement.value
        if not statement.value.type.is_dynamic:
            return
        value = inline(statement.value, self.dated)
        if any(node.type.kind in (Kind.DATE, Kind.DATE_TIME) for node in tree.walk(value)):
            self.dated[statement.slot] = value

    def emit(self, statement: tree.Emit) -> None:
        stored = self.define(statement.slot, statement.value)
        self.remember(statement)
        self.values[statement.name] = stored.value
        nan = None if self.passes_through(statement.value) else _is_nan(stored)
        if nan is not None:
            self.fail(nan)
            self.nans.append((self.failures[-1], nan_message(statement.name)))

    def passes_through(self, expr: tree.Expr) -> bool:
        """Whether a value is an input field unchanged, so that its NaN was not computed here."""
        while isinstance(expr, tree.Local) and expr.slot in self.definitions:
            expr = self.definitions[expr.slot]
        return isinstance(expr, tree.Field)

    def emit_meta(self, statement: tree.EmitMeta) -> None:
        self.meta[statement.name] = self.define(statement.slot, statement.value).value

    def filter(self, statement: tree.Filter) -> None:
        lowered = self.lower(statement.condition)
        stored, _ = self.keep(lowered)
        self.fail(lowered.at(stored.value).failure)
        self.passed = both(self.passed, F.coalesce(stored.value, F.lit(False)))

    def add_distinct(self, statement: tree.Distinct) -> None:
        keys = [self.lower(value) for _, value in statement.keys]
        columns = tuple(self.column(_one_zero(key)) for key in keys)
        self.fail(any_of(*(key.failure for key in keys)))
        self.flush()
        failed = any_of(*self.failures)
        reached = both(self.passed, None if failed is None else ~failed)
        self.distinct.append(DistinctKey(columns, self.column(F.lit(True) if reached is None else reached)))
        self.flush()

    def trace(self, statement: tree.Trace) -> None:
        message = self.lower(statement.message)
        if statement.guard is None:
            self.fail(message.failure)
            return
        guard = self.lower(statement.guard)
        reached = F.coalesce(guard.value, F.lit(False))
        self.fail(any_of(guard.failure, None if message.failure is None else reached & message.failure))


def _one_zero(key: Lowered) -> Column:
    """A value of a distinct key, with 0.0 for -0.0, and Decimals in one spelling for all scales."""
    if key.type.holds_decimals:
        return canonical_text(key.value)
    return F.when(key.value == 0.0, F.lit(0.0)).otherwise(key.value) if key.type.kind is Kind.FLOAT else key.value


def _is_nan(stored: Lowered) -> Column | None:
    """True where a value is NaN; None where it cannot be."""
    if stored.constant is not NOT_CONSTANT:
        return F.lit(True) if is_nan(stored.constant) or (stored.type.is_dynamic and stored.constant == NAN) else None
    if stored.type.kind is Kind.FLOAT:
        return F.coalesce(F.isnan(stored.value), F.lit(False))
    if stored.type.kind in (Kind.NUMERIC, Kind.ANY):
        return F.coalesce(stored.value == F.lit(NAN), F.lit(False))
    return None


_STATEMENTS: dict[type, Callable[[_Layers, Any], None]] = {
    tree.Let: _Layers.let, tree.Emit: _Layers.emit, tree.EmitMeta: _Layers.emit_meta, tree.Filter: _Layers.filter,
    tree.Distinct: _Layers.add_distinct, tree.Trace: _Layers.trace,
}  # fmt: skip


def errors(frame: DataFrame, program: Program, context: Context | None = None, name: str = "_cxl_error") -> DataFrame:
    """Return a frame of failed rows with a struct column: category, message, field (emitted), start and end in the text.

    The struct is null where the interpreter finds no failure.
    """
    return frame.withColumn(name, failures(Lowering(context or Context()), program))


def column(
    expr: tree.Expr, context: Context | None = None, columns: Mapping[str, Column] | None = None
) -> tuple[Column, Column | None]:
    """Return the column of one expression, and a boolean column, never null, that is true where it failed (None: it cannot fail).

    Args:
        columns: Input fields that have another column than their name (`qualifier.name` in a combine).
    """
    lowered = Lowering(context or Context(), columns or {}).lower(expr)
    return lowered.value, lowered.failure
