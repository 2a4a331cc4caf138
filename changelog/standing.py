"""The fold on the driver, for few op rows that are there as Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.ops import POSITIVE
from changelog.schema import CAUSE, EPOCH, KEY, OP

if TYPE_CHECKING:
    import pyarrow as pa


def standing(op_rows: pa.Table) -> pa.Table:
    """What `algebra.live` gives of these op rows, in their order."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc

    brings = pc.is_in(op_rows.column(OP), value_set=pa.array(sorted(map(int, POSITIVE)), op_rows.schema.field(OP).type))
    rows = op_rows.drop_columns([name for name in (OP, CAUSE) if name in op_rows.column_names])
    came, went = rows.filter(brings), rows.filter(pc.invert(brings))
    if not went.num_rows:
        return came
    taken = pl.DataFrame({KEY: went.column(KEY), "_dead": went.column(EPOCH)}).group_by(KEY).agg(pl.col("_dead").max())
    kept = pl.DataFrame({KEY: came.column(KEY), EPOCH: came.column(EPOCH)}).join(taken, on=KEY, how="left", maintain_order="left")
    stands = kept["_dead"].is_null() | (kept["_dead"] <= kept[EPOCH])
    return came.filter(pa.array(stands.to_list(), pa.bool_()))
