"""Accumulators of few groups added up on the driver: to plan such a query takes an engine longer than all else of a small node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from changelog.arrow_algebra import weights
from changelog.exact import rounding
from changelog.exact.rounding import carried
from changelog.keys.encoding import encode_key
from changelog.lazy_imports import np, pa, pc, pl
from operators.aggregate.accumulators import Accumulator, rounded
from operators.aggregate.terms import ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray


def change(rows: pa.Table, groups: Sequence[str], accumulators: Sequence[Accumulator]) -> pa.Table:
    """The terms of op rows (`_op`, `_key` of their group, fields of the group, the calls' columns) in the states of their groups; also without rows, where all is one group."""
    weight = weights(rows)
    parts = {name: values for one in accumulators for name, values in one.contributed(rows, weight).items()} | {ROWS: weight}
    found = _summed(rows.select(["_key", *groups]), parts)
    return found if groups or found.num_rows else pa.table({"_key": pa.array([encode_key((), ())], pa.binary()), **{name: [0] for name in parts}})


def added(change: pa.Table, before: pa.Table | None, accumulators: Sequence[Accumulator]) -> pa.Table:
    """Return the carried states of the changed groups, with their prior states added: `_key`, group fields, state columns, `ROWS`."""
    rows = change if before is None else pa.concat_tables([change, before.select(change.column_names).cast(change.schema)])
    names = [*(name for one in accumulators for name in one.columns), ROWS]
    states = _summed(rows.drop_columns(names), {name: rows.column(name).to_numpy() for name in names})
    sums = {name: states.column(name).to_numpy() for name in names}
    for exact in (exact for one in accumulators for exact in one.totals):
        sums |= carried(sums, exact)
    return pa.table({name: pa.array(sums[name]) if name in sums else states.column(name) for name in states.column_names})


def _summed(rows: pa.Table, parts: Mapping[str, NDArray[np.int64]]) -> pa.Table:
    """The first row of each `_key` with the sums of `parts` over all of its rows."""
    sums = [pl.col("at").first(), *(pl.col(name).sum() for name in parts)]
    found = pl.DataFrame({"_key": rows.column("_key"), **parts}).with_row_index("at").group_by("_key", maintain_order=True).agg(sums)
    groups = rows.take(found["at"].to_arrow())
    for name in parts:
        groups = groups.append_column(name, found[name].to_arrow())
    return groups


def with_rows(states: pa.Table) -> pa.Table:
    """The groups that have rows."""
    return states.filter(pc.greater(states.column(ROWS), 0))


def totalled(states: pa.Table, accumulators: Sequence[Accumulator]) -> pa.Table:
    """`exact_totals.with_totals` of states on the driver."""
    [batch] = states.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=states.schema)]
    for one in rounded(accumulators):
        states = states.append_column(one.value, rounding.values_of(batch, one))
    return states
