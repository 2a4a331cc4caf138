"""Typed columns as the JSON text that dynamic values are kept in (DESIGN section 3, "Dynamic values").

Python writes the text, a batch at a time: engines disagree on numbers and leave nulls out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from cxl.dynamic import dumps
from cxl.types import Type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column


def json_text(value: Column, type_: Type) -> Column:
    """The text of a value of a static type; null stays null. A column of a dynamic type is returned as it is."""
    from pyspark.sql.pandas.functions import arrow_udf

    if type_.is_dynamic:
        return value
    made: Column = _function(arrow_udf)(partial(_texts, type_), "string")(value)
    return made


def maps_text(rows: Column, members: Mapping[str, Type]) -> Column:
    """The text of an array of maps from an array of structs, whose fields `m0`, `m1`, ... are the members in order."""
    from pyspark.sql.pandas.functions import arrow_udf

    made: Column = _function(arrow_udf)(partial(_map_texts, dict(members)), "string")(rows)
    return made


def _function(decorator: Any) -> Any:
    """`arrow_udf` over a partial, which has no annotations that it could read."""

    def wrapped(work: Any, returns: str) -> Any:
        def run(batch: pa.Array) -> pa.Array:
            return work(batch)

        return decorator(run, returns)

    return wrapped


def _texts(type_: Type, values: pa.Array) -> pa.Array:
    import pyarrow as pa

    from cxl.spark.worker import decoded

    return pa.array(map(dumps, decoded(values, type_)), pa.string())


def _map_texts(members: Mapping[str, Type], rows: pa.Array) -> pa.Array:
    import pyarrow as pa

    from cxl.spark.worker import decoded

    flat = rows.flatten()
    columns = [decoded(flat.field(f"m{index}"), type_) for index, type_ in enumerate(members.values())]
    maps = [dict(zip(members, values, strict=True)) for values in zip(*columns, strict=True)]
    offsets = [offset - rows.offsets[0].as_py() for offset in rows.offsets.to_pylist()] if len(rows) else [0]
    return pa.array([dumps(maps[start:end]) for start, end in zip(offsets, offsets[1:], strict=False)], pa.string())
