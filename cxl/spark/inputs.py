"""Inputs of expressions on Spark: columns, results, variables, system variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from cxl.spark.columns import Lowered, column_named, constant, opaque, spark_type
from cxl.spark.worker import encode
from cxl.typed import tree


@dataclass(frozen=True, slots=True)
class Context:
    """System variables by dotted name: `source.row`, `pipeline.name`, `doc.header.id`, `now`.

    Args:
        values: A Python value or a column for each name. A column of a dynamic type holds JSON text. A column of `$doc` holds
            text, which is cast to the declared type. A name without a value is null, and `now` is the engine's clock.
        max_expansion: How many records emit each may make of one record.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    max_expansion: int = 10_000

    def lower(self, node: tree.System) -> Lowered:
        """Return a system variable as a column."""
        if node.name not in self.values:
            return opaque(F.current_timestamp(), node.type) if node.name == "now" else constant(None, node.type)
        value = self.values[node.name]
        if not isinstance(value, Column):
            return constant(encode(value, node.type), node.type)
        return opaque(value.cast(spark_type(node.type)) if node.namespace == "doc" else value, node.type)


@dataclass
class Inputs:
    """Inputs of the expressions over one frame, and the columns that the frame needs before they are used.

    Args:
        columns: Input fields that have another column than their name (`qualifier.name` in a combine).
        hoist: Whether results of the interpreter go to `prelude`.
        locals: The values of variables by slot.
        prelude: Columns to add to the frame first. Each may read the columns before it.
    """

    context: Context
    columns: Mapping[str, Column] = field(default_factory=dict)
    hoist: bool = False
    locals: dict[int, Lowered] = field(default_factory=dict)
    prelude: dict[str, Column] = field(default_factory=dict)
    hoisted: int = 0

    def field(self, node: tree.Field) -> Lowered:
        """Return an input column."""
        key = node.name if node.qualifier is None else f"{node.qualifier}.{node.name}"
        column = self.columns[key] if key in self.columns else column_named(key)
        return Lowered(column, node.type, {("field", key): column})

    def local(self, node: tree.Local) -> Lowered | None:
        """Return the value of a variable, None inside the body that binds it."""
        return self.locals.get(node.slot)

    def result(self, node: tree.Result) -> Lowered:
        """Return a column that the operator computes."""
        return Lowered(column_named(node.column), node.type, {("result", node.column): column_named(node.column)})

    def system(self, node: tree.System) -> Lowered:
        """Return a system variable."""
        return self.context.lower(node)

    def read(self, node: tree.Expr) -> Column:
        """Return the column of a field, a result, a system variable or a known variable."""
        if isinstance(node, tree.Local):
            return self.locals[node.slot].value
        if isinstance(node, tree.Field):
            return self.field(node).value
        if isinstance(node, tree.Result):
            return self.result(node).value
        assert isinstance(node, tree.System)
        return self.system(node).value

    def add(self, column: Column) -> Column:
        """Add a column to `prelude` and return a reference to it."""
        name = f"_cxl_h{self.hoisted}"
        self.hoisted += 1
        self.prelude[name] = column
        return F.col(name)
