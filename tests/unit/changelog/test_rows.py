"""Operations, their signs, and the columns of a changelog."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from changelog import columns as schema
from changelog import ops
from changelog.ops import Op


def test_codes_and_symbols_are_those_of_open_data_fabric():
    assert {op.symbol: int(op) for op in Op} == {"+A": 0, "-R": 1, "-C": 2, "+C": 3}
    assert all(ops.BY_SYMBOL[op.symbol] is op for op in Op)


def test_signs(engine):
    frame = engine.from_arrow(pa.table({"_op": pa.array([0, 1, 2, 3], pa.int8())})).select(
        "_op", ops.is_positive(F.col("_op")).alias("p"), ops.is_negative(F.col("_op")).alias("n"), ops.weight(F.col("_op")).alias("w")
    )
    made = {row["_op"]: (row["p"], row["n"], row["w"]) for row in engine.to_arrow(frame).to_pylist()}
    assert made == {0: (True, False, 1), 1: (False, True, -1), 2: (False, True, -1), 3: (True, False, 1)}
    assert [op.weight for op in Op] == [made[op][2] for op in Op]


@pytest.mark.parametrize(("known", "expected"), [(None, False), (set(), True), ({Op.APPEND}, True), ({Op.APPEND, Op.RETRACT}, False)])
def test_only_appends(known, expected):
    assert ops.only_appends(known) is expected


def test_data_columns(sail):
    columns = dict.fromkeys(("_epoch", "_op", "_key", "_cause", "_row", "_port", "v", "_mine"), "bigint")
    frame = sail.session.createDataFrame([], StructType(schema.fields(columns)))
    assert schema.data_columns(frame, ["_port"]) == ["v", "_mine"]
    assert schema.image_columns(frame) == ["_row", "_port", "v", "_mine"]


@pytest.mark.rarely_on_spark
@pytest.mark.parametrize("name", ["a.b", "a`b", "a b", "`", "ключ"])
def test_columns_of_any_name(engine, name):
    frame = engine.from_arrow(pa.table({name: [1]})).select(schema.column(name))
    assert frame.columns == [name]
