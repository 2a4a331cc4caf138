"""Since when a dead letter is there: a version that says what the one before said, as an edit of the pipeline writes it, makes it no newer."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from changelog.keys.decode import arrow_keys
from changelog.lazy_imports import pa
from changelog.ops import Op
from changelog.rows import Rows, has_value

_CORRECTED = has_value("_op", int(Op.CORRECT_FROM)) | has_value("_op", int(Op.CORRECT_TO))
_COMES = has_value("_op", int(Op.APPEND)) | has_value("_op", int(Op.CORRECT_TO))


def first_epochs(live: pa.Table, op_rows: Rows, names: Sequence[str]) -> pl.Series:
    """For each live reject the epoch in which its error and its data came.

    Args:
        live: The live rejects.
        op_rows: All op rows of rejects of their node.
        names: The data columns. Other columns, as of correlation keys, may change without making a reject a new one.
    """
    epochs = pl.Series("epoch", live.column("_epoch"))
    known = ["_key", "_epoch", "_error", *(name for name in names if name in live.column_names)]
    corrected = pl.DataFrame(pl.from_arrow(op_rows.where(_CORRECTED).select(known).as_table()))
    same = corrected.group_by(known).len().filter(pl.col("len") == 2).select("_key", "_epoch")  # both sides
    if not same.height:
        return epochs
    keys = Rows(op_rows.engine, pa.table({"_key": arrow_keys(same["_key"].unique())}))
    came = pl.DataFrame(pl.from_arrow(op_rows.semi_join(keys, "_key").where(_COMES).select(["_key", "_epoch"]).as_table()))
    first = came.join(same, ["_key", "_epoch"], "anti").group_by("_key").agg(pl.col("_epoch").max().alias("__first"))
    known_keys = pl.DataFrame({"_key": live.column("_key"), "epoch": epochs})
    return known_keys.join(first, "_key", "left", maintain_order="left").select(pl.coalesce("__first", "epoch").alias("epoch"))["epoch"]
