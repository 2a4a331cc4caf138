"""The newest event of each key decides: by version, else by place. What is kept is one row a key, deletions among them.

Events that lack values, and truncations, are not of this kind: where they may come, all events are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.frames import any_of, chosen, united
from changelog.lazy_imports import F
from changelog.spark_algebra import diff
from operators.source.events.columns import ACTIVATES, GOES, STANDS
from operators.source.events.frames import as_events
from operators.source.events.replay import op_rows, replayed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from operators.source.events.deliveries import Delivery

KEPT: Final = ("__does", "__version", "__stream", "__anchor", "__turn", "_file", "_row", "__part")
"""The columns that are kept of an event beside its key."""
_TOGETHER: Final = b"\xfe"
"""The first byte of what is kept under no key: activated versions of streams."""


@dataclass(frozen=True, slots=True)
class Clearing:
    """The activation of a version of a stream."""

    stream: int | None
    place: tuple[int, int, int]


@dataclass(frozen=True)
class Winners:
    """The new events of a source."""

    delivery: Delivery

    def op_rows(self) -> DataFrame:
        """The op rows. Stores what is to be remembered."""
        delivery, request = self.delivery, self.delivery.request
        fresh = delivery.computed(delivery.placed(delivery.events))
        together, clears = F.col("__does") == ACTIVATES, request.config.feed == "singer"
        new = self._clearings(fresh.where(together)) if clears else []
        keyed = fresh.where(~together) if clears else fresh
        rows = delivery.memory.rows() if clears else None
        old = [] if rows is None else self._clearings(delivery.in_order(rows.where(together).select(*map(column, KEPT))))
        all_keys = bool(new) or request.rebuilt
        kept = delivery.memory.latest(None if all_keys else keyed.select(F.col("__of").alias("_key")).distinct())
        known = None if kept is None else delivery.in_order(chosen(kept.where(~together), ["_key", *KEPT]))
        if request.rebuilt:
            return self._again(keyed, known, new, old)
        return self._follow(keyed, known, new, old)

    def _clearings(self, rows: DataFrame) -> list[Clearing]:
        found = self.delivery.request.engine.to_arrow(rows.select("__stream", "__place", "__turn", "_row")).to_pylist()
        return [Clearing(one["__stream"], (one["__place"], one["__turn"], one["_row"])) for one in found]

    def _follow(self, fresh: DataFrame, known: DataFrame | None, new: Sequence[Clearing], old: Sequence[Clearing]) -> DataFrame:
        """The op rows of new events after earlier ones."""
        delivery, stood = self.delivery, self.delivery.request.prior_rows
        events = fresh if known is None else self._newer(fresh, known)
        rules = delivery.rules
        if new or old:
            events = events.withColumns({"__wiped": self._is_wiped([*new, *old]), "__era": F.lit(0)})
            rules = replace(rules, clears=True)
        events = events.withColumn("__injected", F.lit(False))
        if new and known is not None and stood is not None:
            gone = known.where((F.col("__does") == STANDS) & self._is_wiped(new))
            wiped = {"__of": F.col("_key"), "__does": F.lit(GOES), "__wiped": F.lit(True), "__era": F.lit(0), "__injected": F.lit(True)}
            events = united(events, as_events(gone, events.columns, wiped, events))
        marked = delivery.computed(replayed(events, stood, rules))
        delivery.warn(marked)
        self._remember(marked, fresh=delivery.events)
        return delivery.with_gone(op_rows(marked, rules, has_old=stood is not None))

    def _newer(self, fresh: DataFrame, known: DataFrame) -> DataFrame:
        """The new events that come behind the kept ones of their keys."""
        names = [name for name in self.delivery.rules.order_names if name != "__part"]
        slim = known.select(F.col("_key").alias("__of"), *(column(name).alias(f"__kept{name}") for name in names))
        both = fresh.join(slim, "__of", "left")
        unknown, later = F.col("__kept_row").isNull(), F.lit(False)
        for name in reversed(names):
            new, old = column(name), column(f"__kept{name}")
            bigger = F.when(new.isNull(), False).when(old.isNull(), True).otherwise(new > old)
            later = bigger | (new.eqNullSafe(old) & later)
        return chosen(both.where(unknown | later), fresh.columns)

    def _is_wiped(self, clearings: Sequence[Clearing]) -> Column:
        """Whether one of some clearings takes an event back."""
        return F.coalesce(any_of([_is_before(one) for one in _frontier(clearings)]), F.lit(False))

    def _remember(self, marked: DataFrame, fresh: DataFrame, left: DataFrame | None = None) -> None:
        """Store the newest event of each key, and the clearings."""
        delivery, request = self.delivery, self.delivery.request
        final = marked.where(F.col("__final") & ~F.col("__injected") & F.col("_error").isNull())
        rows = final.select(F.col("__of").alias("_key"), *map(column, KEPT))
        if request.config.feed == "singer":
            together = fresh.where(F.col("__does") == ACTIVATES)
            place = F.concat(F.lit(_TOGETHER), F.col("_file").cast("binary"), F.lit(b"\x00"), F.col("_row").cast("string").cast("binary"), F.lit(b"\x00"), F.col("__turn").cast("string").cast("binary"))
            rows = united(rows, together.select(place.alias("_key"), *map(column, KEPT)))
        if left is not None:
            rows = united(rows, left)
        delivery.keep(rows, delivery.count if left is None else None)

    def _again(self, fresh: DataFrame, known: DataFrame | None, new: Sequence[Clearing], old: Sequence[Clearing]) -> DataFrame:
        """The op rows of an edited source: all present files, and what is kept of files that are gone."""
        delivery, request = self.delivery, self.delivery.request
        stood, gone = request.prior_rows, delivery.gone
        events, rules = fresh, delivery.rules
        clearings = [*new, *(one for one in old if delivery.is_gone(one.place[0]))]
        if stood is not None and delivery.has_left:
            events = united(events, self._left(events, known, stood, gone))
        if clearings:
            events = events.withColumns({"__wiped": self._is_wiped(clearings), "__era": F.lit(0)})
            rules = replace(rules, clears=True)
        events = events.withColumn("__injected", F.lit(False))
        left = self._gone_clearings(gone) if gone and old else None
        delivery.memory.forget()
        marked = replayed(events, None, rules)
        delivery.warn(marked)
        self._remember(marked, delivery.events, left)
        after = op_rows(marked, rules, has_old=False)
        return after if stood is None else diff(stood, after.drop("_op"), request.cause, compare=rules.compared)

    def _gone_clearings(self, gone: Sequence[str]) -> DataFrame | None:
        """The kept clearings of files that are gone, on the driver: their table is emptied."""
        request = self.delivery.request
        kept = self.delivery.memory.rows()
        if kept is None:
            return None
        rows = kept.where((F.col("__does") == ACTIVATES) & F.col("_file").isin(list(gone))).select("_key", *map(column, KEPT))
        return request.engine.from_arrow(request.engine.to_arrow(rows))

    def _left(self, events: DataFrame, known: DataFrame | None, stood: DataFrame, gone: Sequence[str]) -> DataFrame:
        """The kept events of files that are gone, with the live rows of their keys; and rows of such files that nothing is kept of."""
        engine = self.delivery.request.engine
        rows = stood.where(F.col("_file").isin(list(gone))) if gone else stood.limit(0)
        plain = {"__of": F.col("_key"), "__does": F.lit(STANDS), "__anchor": F.col("_file"), "__turn": F.lit(0), "__version": self._version_of()}
        if known is None:
            return self.delivery.in_order(as_events(rows, [name for name in events.columns if name != "__place"], plain, events))
        there = engine.from_arrow(engine.to_arrow(known.where(self.delivery.is_left()).select("_key", *map(column, KEPT))))
        image = [name for name in stood.columns if name not in (*KEPT, "_epoch")]
        found = there.join(stood.select(*map(column, image)), "_key", "left")
        of_key = {"__of": F.col("_key")}
        lost = rows.join(there.select("_key"), "_key", "left_anti")
        names = [name for name in events.columns if name != "__place"]
        return self.delivery.in_order(united(as_events(found, names, of_key, events), as_events(lost, names, plain, events)), events.columns)

    def _version_of(self) -> Column:
        """The version of a row, where columns say it."""
        return F.lit(None)


def _is_before(clearing: Clearing) -> Column:
    """Whether an event of an older version of the stream comes before its activation."""
    names = ("__place", "__turn", "_row")
    before: Column = F.lit(False)
    for name, bound in zip(reversed(names), reversed(clearing.place), strict=True):
        before = (F.col(name) < bound) | ((F.col(name) == bound) & before)
    return before & (F.col("__stream").isNull() | (F.col("__stream") < F.lit(clearing.stream)))


def _frontier(activations: Sequence[Clearing]) -> list[Clearing]:
    """The activations that none with a later place and as high a version makes needless."""
    found: list[Clearing] = []
    for one in sorted(activations, key=lambda one: (one.place, one.stream or 0), reverse=True):
        if not found or (one.stream or 0) > (found[-1].stream or 0):
            found.append(one)
    return found

