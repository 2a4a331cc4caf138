"""The undeclared fields of an output's rows as columns of a frame (user guide, "The $widened sidecar absorber"): what a table of its rows has, its file has too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from changelog.columns import RESERVED
from changelog.frames import mapped, told
from changelog.lazy_imports import pa
from errata.outputs.writer import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def expanded(rows: DataFrame, shape: Shape) -> DataFrame:
    """Rows with the columns of a shape behind their others, the undeclared ones as texts out of `_widened`. Those with a name of the system's are left out."""
    from pyspark.sql.types import StringType, StructField, StructType

    if not shape.extra:
        return rows
    own = {field.name: field for field in rows.schema.fields}
    fields = {name: type_ for name, type_ in shape.extra if name not in (*own, *RESERVED)}
    data = [name for name in shape.names if name in fields or name not in shape.shown]
    system = [name for name in own if name not in data and name != "_widened"]
    schema = StructType([own.get(name, StructField(name, StringType())) for name in (*system, *data)])
    whole = Shape(tuple(schema.names), tuple(fields.items()))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(whole, batches)

    return told(mapped(rows, work, schema), schema)
