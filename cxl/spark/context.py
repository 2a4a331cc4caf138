"""System variables for both backends: a value each, or a column of the frame."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from cxl.spark.columns import Lowered, constant, opaque, spark_type
from cxl.spark.worker import encode
from cxl.typed.tree import System


@dataclass(frozen=True, slots=True)
class Context:
    """What `$...` and `now` are: dotted names (`source.row`, `pipeline.name`, `doc.header.id`, `now`) to values or columns.

    A name that is missing is null; `now` is the engine's clock then. Columns hold values as other columns do (dynamic ones
    as JSON text); those of `$doc` hold text, which is cast to the type that the program was compiled with. `max_expansion` is the limit of emit each for one record.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    max_expansion: int = 10_000

    def lower(self, node: System) -> Lowered:
        """A system variable as a column."""
        if node.name not in self.values:
            return opaque(F.current_timestamp(), node.type) if node.name == "now" else constant(None, node.type)
        value = self.values[node.name]
        if not isinstance(value, Column):
            return constant(encode(value, node.type), node.type)
        return opaque(value.cast(spark_type(node.type)) if node.namespace == "doc" else value, node.type)
