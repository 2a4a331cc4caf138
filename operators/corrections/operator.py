"""The operator of corrections: each record with the values that people gave it.

A correction holds where the record says what the correction was written for. So it is a function of the record and of the files alone, whatever came first.
The node's state has the corrections of the last epoch. An edit of the files touches the records that it names and no other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from changelog.algebra import insertions
from changelog.columns import column
from changelog.frames import of_keys
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, pa
from changelog.rows import Rows
from cxl.types.types import type_name
from operators.core.context import OperatorContext
from operators.core.delta import Delta
from operators.core.evaluate import ENVELOPE
from operators.core.operator import Linear
from operators.core.row_type import RowType, by_value, key_type, physical_type, spelling
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.corrections.correction import Correction, Fixed
from operators.corrections.states import State, remarks, state_columns, states_of
from storage.values.types import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GONE: Final = "__gone"
SHAPE_KEY: Final = b""
"""The key of the state that says for what columns the others were written."""


class Corrections(Linear):
    """Records as files beside the pipeline correct them."""

    kind = "corrections"
    explain_class = "affected-key"

    def __init__(self, spec: NodeSpec, row: RowType, corrections: Sequence[Correction], fixed: Mapping[str, Fixed]) -> None:
        self.key = tuple(spec.config.key)
        self.fixed = fixed
        self.all = tuple(corrections)
        self.active = tuple(one for one in corrections if one.active)
        self.changed = tuple(dict.fromkeys(one.column for one in self.active if one.column is not None))
        sorted_by = row.sorted_by[: next((at for at, name in enumerate(row.sorted_by) if name in self.changed), len(row.sorted_by))]
        output = replace(row, hidden=(), sorted_by=sorted_by).carrying(["_lookup"])
        lines = sorted((one.lookup.hex(), one.logic) for one in self.active)
        digest = hashlib.blake2b(json.dumps(lines).encode(), digest_size=16).hexdigest()
        super().__init__(spec.name, (row,), output, {"key": list(self.key), "corrections": digest} | spelling(row.data[name] for name in self.changed))
        self.path = spec.config.path

    @property
    def may_reject(self) -> bool:
        """A correction that does not hold changes nothing."""
        return False

    @property
    def keeps_state(self) -> bool:
        """The corrections of the last epoch, and what became of each."""
        return True

    def beside(self) -> Mapping[str, Any]:
        """The corrections by the path of their files."""
        return {self.path: sorted(one.lookup.hex() + one.logic for one in self.active)}

    def describe(self) -> Sequence[str]:
        """Files, key and number of the corrections."""
        return (f"corrections of {self.path}: {len(self.active):,} active of {len(self.all):,}", f"key: {', '.join(self.key)}")

    # -- rows

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """Each op row as the corrections make it."""
        return rows.through(lambda frame: self._corrected(frame, rows.engine.from_arrow(self._wide) if self.active else None))

    def _corrected(self, frame: DataFrame, corrections: DataFrame | None) -> DataFrame:
        named = frame.withColumn("_lookup", self._lookup())
        names = [*(name for name in frame.columns if name in ENVELOPE), *self.output.columns()]
        if corrections is None:
            return named.select(*map(column, names))
        met = named.join(F.broadcast(corrections), "_lookup", "left")
        kept = met.where(~F.coalesce(F.col(GONE), F.lit(False)))
        cells = {name: self._cell(at, name).alias(name) for at, name in enumerate(self.changed)}
        return kept.select(*(cells.get(name, column(name)) for name in names))

    def _lookup(self) -> Column:
        types = self.inputs[0].data
        return key_column([(column(name), key_type(types[name])) for name in self.key])

    def _cell(self, at: int, name: str) -> Column:
        type_ = self.inputs[0].data[name]
        value, before = by_value(column(name), type_), by_value(F.col(f"__from{at}"), type_)
        return F.when(F.coalesce(F.col(f"__set{at}"), F.lit(False)) & value.eqNullSafe(before), F.col(f"__to{at}")).otherwise(column(name)).cast(physical_type(type_))

    @cached_property
    def _wide(self) -> pa.Table:
        """One row a corrected record: `_lookup`, `GONE`, and for each corrected column whether it is set, from what and to what."""
        by_record: dict[bytes, dict[str, Any]] = {}
        for one in self.active:
            row = by_record.setdefault(one.lookup, {"_lookup": one.lookup, GONE: False})
            if one.column is None:
                row[GONE] = True
            else:
                at = self.changed.index(one.column)
                row |= {f"__set{at}": True, f"__from{at}": one.before, f"__to{at}": one.after}
        fields: list[tuple[str, pa.DataType]] = [("_lookup", pa.binary()), (GONE, pa.bool_())]
        for at, name in enumerate(self.changed):
            kind = arrow_type(type_name(self.inputs[0].data[name]))
            fields += [(f"__set{at}", pa.bool_()), (f"__from{at}", kind), (f"__to{at}", kind)]
        return pa.Table.from_pylist(list(by_record.values()), pa.schema(fields))

    # -- deltas

    def answer(self, context: OperatorContext) -> Delta:
        """Correct both images of each change, and note what became of the corrections of these records."""
        made = super().answer(context)
        self._note(context, None if context.first else self._touched(context), {})
        return made

    def rebuild(self, context: OperatorContext, cause: str = "logic") -> Delta:
        """Correct the records again whose corrections are others than before. All records where the columns or the key changed."""
        before = None if context.first else self._before(context)
        if before is None:
            made = super().rebuild(context, cause)
            self._note(context, None, {})
            return made
        touched = self._edited(before) | self._touched(context)
        made = self._of_records(context, touched)
        self._note(context, touched, before)
        return made

    def _of_records(self, context: OperatorContext, lookups: frozenset[bytes]) -> Delta:
        """The delta of the corrected records, and of all that the input brings."""
        keys = _keys(context, lookups)
        live = context.rows(context.live_input(0, lambda rows: self._of(rows, keys)))
        prior = context.materialized(context.live_own(keys))
        now = self._mapped(insertions(live, "correction"), 0, context.values)
        made = Delta.between(prior, now, "correction")
        brought = context.delta(0)
        if brought is None:
            return made
        return Delta.loose(made.rows.union(self._mapped(brought.rows, 0, context.values).anti_join(keys, "_lookup")))

    def _of(self, rows: DataFrame, keys: Rows) -> DataFrame:
        """The input's rows of some records, as they came."""
        names = rows.columns
        return of_keys(rows.withColumn("_lookup", self._lookup()), keys.as_frame(), "_lookup").select(*map(column, names))

    # -- what became of the corrections

    def _touched(self, context: OperatorContext) -> frozenset[bytes]:
        """The corrected records that the input's delta changes."""
        delta = context.delta(0)
        if delta is None or not self.active:
            return frozenset()
        keys = _keys(context, {one.lookup for one in self.active})
        named = of_keys(delta.frame.select(self._lookup().alias("_lookup")), keys.as_frame(), "_lookup").distinct()
        return frozenset(context.rows(named).as_table().column("_lookup").to_pylist())

    def _shape(self) -> str:
        return json.dumps([list(self.key), {name: type_name(type_) for name, type_ in self.inputs[0].data.items()}, list(self.output.hidden), sorted(self.output.riders)])

    def _before(self, context: OperatorContext) -> Mapping[bytes, State] | None:
        """The corrections of the last epoch; None where they were written for other columns."""
        state = context.own_state()
        if state is None:
            return None
        found = {row["_key"]: State.of(row) for row in state.as_table().to_pylist()}
        shape = found.pop(SHAPE_KEY, None)
        return found if shape is not None and shape.content == self._shape() else None

    def _edited(self, before: Mapping[bytes, State]) -> frozenset[bytes]:
        """The records whose corrections are others than in the last epoch."""
        now = {one.id: (one.lookup, one.logic) for one in self.active}
        then = {key: (state.lookup, state.logic) for key, state in before.items()}
        return frozenset(side[key][0] for key in now.keys() | then.keys() for side in (now, then) if now.get(key) != then.get(key) and key in side)

    def _note(self, context: OperatorContext, touched: frozenset[bytes] | None, before: Mapping[bytes, State]) -> None:
        """Keep the corrections with their states, of all records or of the touched ones. Warn of corrections that stopped holding."""
        anew = touched is None
        concerned = [one for one in self.active if touched is None or one.lookup in touched]
        states = states_of(concerned, self._records(context, concerned), self.inputs[0].data) if concerned else []
        kept = [*(state.row() for state in states), *([State(SHAPE_KEY, b"", "", self._shape(), "", 0).row()] if anew else self._removed(before))]
        if kept:
            context.keep_state(context.rows(pa.Table.from_pylist(kept, pa.schema(list(state_columns().items())))), anew=anew)
        for text in remarks(self.name, concerned, states):
            context.remark(text)

    def _removed(self, before: Mapping[bytes, State]) -> list[dict[str, Any]]:
        """Rows that remove the states of corrections that are no longer in the files."""
        now = {one.id for one in self.active}
        return [dict.fromkeys(state_columns()) | {"_key": key} for key in before if key not in now]

    def _records(self, context: OperatorContext, concerned: Sequence[Correction]) -> pa.Table:
        """The input's live rows that the corrections name: `_lookup` and the columns that are corrected."""
        names = [*dict.fromkeys(one.column for one in concerned if one.column is not None)]
        keys = _keys(context, {one.lookup for one in concerned})
        live = context.live_input(0, lambda rows: self._of(rows, keys))
        return context.rows(live.select(self._lookup().alias("_lookup"), *map(column, names))).as_table()


def _keys(context: OperatorContext, lookups: Collection[bytes]) -> Rows:
    """Keys of records as rows."""
    return context.rows(pa.table({"_lookup": pa.array(sorted(lookups), pa.binary())}))
