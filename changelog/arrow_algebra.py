"""The algebra on the driver, for few op rows as Arrow: to plan a query would take longer (`changelog.algebra`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.columns import CAUSE, ENVELOPE, EPOCH, KEY, OP
from changelog.lazy_imports import np, pa, pc, pl
from changelog.ops import POSITIVE, Op

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fold(op_rows: pa.Table) -> pa.Table:
    """The live rows of a changelog, in the order of its rows."""
    brings = _brings(op_rows)
    rows = op_rows.drop_columns([name for name in (OP, CAUSE) if name in op_rows.column_names])
    return _remaining(rows.filter(brings), rows.filter(pc.invert(brings)))


def remaining(op_rows: pa.Table, taken: pa.Table) -> pa.Table:
    """The live rows among some op rows. `taken`: `_key` and `_epoch` of all rows of the changelog that take something back."""
    rows, brings = op_rows.drop_columns([name for name in (OP, CAUSE) if name in op_rows.column_names]), _brings(op_rows)
    came = rows if pc.all(brings, min_count=0).as_py() else rows.filter(brings)
    met = pc.is_in(came.column(KEY), value_set=taken.column(KEY))
    return _remaining(came, taken.filter(pc.is_in(taken.column(KEY), value_set=came.column(KEY).filter(met))))


def _remaining(came: pa.Table, went: pa.Table) -> pa.Table:
    """The rows of `came` that were not taken back in a later epoch."""
    if not went.num_rows:
        return came
    keys = went.column(KEY).unique()
    last = np.full(len(keys) + 1, np.iinfo(np.int64).min)  # the last epoch that took each key away; behind them that of all other keys
    np.maximum.at(last, pc.index_in(went.column(KEY), value_set=keys).to_numpy(), went.column(EPOCH).to_numpy())
    at = pc.fill_null(pc.index_in(came.column(KEY), value_set=keys), len(keys))
    return came.filter(pa.array(last[at.to_numpy()] <= came.column(EPOCH).to_numpy()))


def signed(live_rows: pa.Table, op: Op, cause: str) -> pa.Table:
    """Live rows as op rows of one kind."""
    image = live_rows.drop_columns([name for name in (EPOCH, OP, CAUSE) if name in live_rows.column_names])
    return image.append_column(OP, pa.repeat(pa.scalar(int(op), pa.int8()), image.num_rows)).append_column(CAUSE, pa.repeat(cause, image.num_rows))


def latest(rows: pa.Table) -> pa.Table:
    """The row of each key's last epoch, without `_epoch`."""
    return of_last_epochs(rows).drop_columns([EPOCH])


def of_last_epochs(rows: pa.Table) -> pa.Table:
    """The rows that each key has in its last epoch."""
    versions = pl.DataFrame({KEY: rows.column(KEY), EPOCH: rows.column(EPOCH)})
    last = versions.select(pl.col(EPOCH) == pl.col(EPOCH).max().over(KEY)).to_series()
    return rows.filter(last.to_arrow())


def consolidate(op_rows: pa.Table) -> pa.Table:
    """The net change of each key (`changelog.algebra.consolidate`)."""
    rows = op_rows.drop_columns([EPOCH]) if EPOCH in op_rows.column_names else op_rows
    if not rows.num_rows:
        return rows
    came, cause = pl.col("sign") > 0, pl.col("cause")
    given = pl.DataFrame({"key": rows.column(KEY), "cause": rows.column(CAUSE), **images(rows)})
    weighted = given.with_columns(sign=pl.Series(weights(rows)), at=pl.int_range(pl.len()))
    same = [name for name in given.columns if name != "cause"]
    totals = [pl.col("sign").sum().alias("net"), pl.col("at").first(), cause.filter(~came).min().alias("went"), cause.filter(came).min().alias("came")]
    left = weighted.group_by(same, maintain_order=True).agg(*totals).filter(pl.col("net") != 0).with_columns(both=pl.len().over("key") > 1)
    into, both = pl.col("net") > 0, pl.col("both")
    op = pl.when(into & both).then(Op.CORRECT_TO).when(into).then(Op.APPEND).when(both).then(Op.CORRECT_FROM).otherwise(Op.RETRACT)
    why = pl.when(into).then(pl.col("came")).when(both).then(pl.col("came").filter(into).first().over("key")).otherwise(pl.col("went"))
    net = left.select("at", op=op.cast(pl.Int8), why=why)
    taken = rows.take(pa.array(net["at"].to_list(), pa.int64()))
    own = {OP: pa.array(net["op"].to_list(), pa.int8()), CAUSE: pa.array(net["why"].to_list(), pa.string())}
    return pa.table({name: own.get(name, taken.column(name)) for name in taken.column_names})


def weights(op_rows: pa.Table) -> NDArray[np.int64]:
    """1 for each row that brings its image in, -1 for each that takes it away."""
    return np.where(_brings(op_rows).to_numpy(), 1, -1).astype("i8")


def _brings(op_rows: pa.Table) -> pa.ChunkedArray:
    """Whether each row brings its image in."""
    return pc.is_in(op_rows.column(OP), value_set=pa.array(sorted(map(int, POSITIVE)), op_rows.schema.field(OP).type))


def images(rows: pa.Table) -> dict[str, pl.Series]:
    """The image's columns under names of their own, equal exactly where they print the same (`changelog.equality`): doubles by their bits, NaN as one."""
    import pyarrow.types as kinds

    found: dict[str, pl.Series] = {}
    for at, name in enumerate(name for name in rows.column_names if name not in ENVELOPE):
        values = pl.Series(rows.column(name))
        if kinds.is_floating(rows.schema.field(name).type):
            found[f"nan{at}"], found[f"zero{at}"] = values.is_nan(), (values == 0.0) & (1.0 / values < 0.0)
            values = values.fill_nan(None)
        found[f"image{at}"] = values
    return found
