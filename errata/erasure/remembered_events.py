"""Events that a source remembers, and whose they are: which ones leave with erased records, and which ones stay without anything of them.

An event acts on a key. The events of an erased key leave. A record that takes back another record's key is an event of that key too: such an event
stays, without the values of its record, so that what it took back stays taken back. All other events are other people's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from changelog.keys.decode import bare_keys
from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pl
from changelog.ops import Op
from errata.erasure.selection import ErasedKeys
from errata.erasure.values import SYSTEM
from operators.source.events.columns import COLUMNS, GOES, PATCHES, PLACE
from operators.source.node import SourceNode
from operators.source.row_layout import REJECT_TAG

FIELDS: Final = frozenset({*SYSTEM, *COLUMNS, *PLACE})
"""The columns of remembered events that hold no value of the data by themselves."""
_LABEL: Final = 7
"""The bytes of the number of a record, at the end of the key of its place."""


def are_events(rows: pl.DataFrame) -> pl.Series:
    """Which rows of a source's memory are events; others are known records or scopes."""
    return rows["__does"].is_not_null() if "__does" in rows.columns else pl.repeat(False, rows.height, eager=True)


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows of a source's memory by whose they are, as masks.

    Attributes:
        leave: Events of erased keys, and erased rejects.
        lent: Events of erased records that act on keys of others.
        widowed: Events of others whose record also took back an erased key.
        others: Events of others, widowed ones among them.
    """

    leave: pl.Series
    lent: pl.Series
    widowed: pl.Series
    others: pl.Series


@dataclass(frozen=True, slots=True)
class RememberedEvents:
    """Tells the events of erased records in the memory of a source.

    Attributes:
        source: The source.
        erased: Its erased keys.
        rejects: The op rows of its erased rejects, with the `_file` and the `_row` of their places.
        standing: The places of the ones that were rejects until the erasure.
    """

    source: SourceNode
    erased: ErasedKeys
    rejects: pl.DataFrame
    standing: pl.DataFrame

    @classmethod
    def of(cls, source: SourceNode, erased: ErasedKeys, rows: pl.DataFrame, epoch: int) -> RememberedEvents:
        """Make it out of all op rows of the erased records. `epoch`: the epoch of the erasure."""
        rejects = rows.filter(rows["_key"].bin.starts_with(REJECT_TAG)) if source.keyed else rows.clear()
        places = [_place(bytes(key)) for key in bare_keys(rejects["_key"])]
        rejects = rejects.with_columns(_file=pl.Series([file for file, _ in places], dtype=pl.String), _row=pl.Series([row for _, row in places], dtype=pl.Int64))
        standing = rejects.filter(pl.col("_epoch") == epoch, pl.col("_op") == int(Op.RETRACT)).select("_file", "_row").unique()
        return cls(source, erased, rejects, standing)

    def sorted(self, rows: pl.DataFrame) -> Sorted:
        """Tell whose rows of the memory are."""
        events = are_events(rows)
        no = pl.repeat(False, rows.height, eager=True)
        if not self.erased or not events.any():
            return Sorted(no, no, no, events)
        named = rows["__of"] if "__of" in rows.columns else rows["_key"]
        placed, standing = self._placed(rows)
        wrong = rows["_error"].is_not_null() if "_error" in rows.columns else no
        undoes = rows["__does"].is_in([GOES, PATCHES])
        leave = events & (self._is_erased(named) | (placed & (wrong | standing | ~undoes)))
        lent = events & ~leave & (placed | self._is_erased(self._own(rows)))
        others = events & ~leave & ~lent
        widowed = others & (rows["__part"] == 2) & self._is_erased(rows["__ref"]) if "__ref" in rows.columns else no
        return Sorted(*(one.fill_null(value=False) for one in (leave, lent, widowed, others)))

    def _is_erased(self, keys: pl.Series) -> pl.Series:
        """Which keys are an erased record's at all times. A place that was another record's too says nothing."""
        found = self.erased.matched(keys)
        return found.is_not_null() & ~found.is_in(pl.Series([*self.erased.spans], dtype=pl.Binary).implode()).fill_null(value=False)

    def _own(self, rows: pl.DataFrame) -> pl.Series:
        """The key of the record of each event that acts on another one; null for others."""
        if "__of" not in rows.columns:
            return pl.repeat(None, rows.height, dtype=pl.Binary, eager=True)
        halves = rows.select(pl.when(pl.col("__part") == 1).then("__ref"))["__ref"]
        names, kinds = zip(*self.source.identity, strict=True)
        if not self.source.config.merge.of or not {*names} <= {*rows.columns}:
            return halves
        whole = rows.with_row_index("__at").filter(pl.col("__does") == GOES, pl.col("__part") == 0).drop_nulls(names)
        keys = [encode_key(values, kinds) for values in whole.select(names).iter_rows()]
        return halves.scatter(whole["__at"], pl.Series(keys, dtype=pl.Binary)) if keys else halves

    def _placed(self, rows: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        """Which events are records that were erased as rejects, by their places and values; and which ones were rejects until the erasure."""
        no = pl.repeat(False, rows.height, eager=True)
        data = [name for name in self.source.output.data if name in rows.columns and name in self.rejects.columns and not rows.schema[name].is_nested()]
        if not self.rejects.height or "__of" not in rows.columns:
            return no, no
        known = self.rejects.select("_file", "_row", *(pl.col(name).cast(rows.schema[name], strict=False) for name in data), "_error").unique()
        events = rows.select("_file", "_row", *data, "_error")
        good = events.join(known.drop("_error").unique().with_columns(__met=True), ["_file", "_row", *data], "left", nulls_equal=True, maintain_order="left")["__met"]
        bad = events.join(known.with_columns(__met=True), ["_file", "_row", *data, "_error"], "left", nulls_equal=True, maintain_order="left")["__met"]
        standing = events.join(self.standing.with_columns(__met=True), ["_file", "_row"], "left", maintain_order="left")["__met"]
        met = good.zip_with(events["_error"].is_null(), bad)
        return met.fill_null(value=False), standing.fill_null(value=False)


def _place(key: bytes) -> tuple[str, int]:
    """The file and the number of the record at the place of a reject."""
    return key[len(REJECT_TAG) : -_LABEL - 1].decode(errors="replace"), int.from_bytes(key[-_LABEL:-1], "big")


def without_values(rows: pl.DataFrame, which: Sorted) -> pl.DataFrame:
    """Events without what they hold of erased records: lent ones without their values, and both kinds of halves for themselves."""
    alone = which.lent | which.widowed
    unlinked: dict[str, object] = {"__ref": None, "__shown": None, "__part": 0}
    lent = {**dict.fromkeys(name for name in rows.columns if name not in FIELDS), "_error": None, "__expects": False, "__quiet": True}
    changed = {**{name: (alone, value) for name, value in unlinked.items()}, **{name: (which.lent, value) for name, value in lent.items()}}
    return rows.with_columns(
        pl.when(~mask).then(pl.col(name)).otherwise(pl.lit(value, dtype=rows.schema[name])).alias(name) for name, (mask, value) in changed.items() if name in rows.columns
    )
