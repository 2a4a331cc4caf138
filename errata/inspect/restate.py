"""`errata restate`: what was published first for each period, what is said now, and why.

A period is the values of some fields. Rows that nothing touched behind its first publication say what they said, so only the others are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.frames import united
from changelog.keys.spark import key_column
from changelog.lazy_imports import F, pl
from changelog.ops import POSITIVE
from cxl.types.types import STRING, Type
from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage
from errata.core.options import Restatement
from errata.inspect.causes import RECOMPUTE, traced
from errata.inspect.row_keys import key_columns
from operators.core.row_type import key_parts
from storage.values.python_rows import dictionaries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.inspect.snapshot import Snapshot
    from errata.state.committed_node import CommittedNode

Row = Mapping[str, Any]
COLUMNS = ("key", "field", "first", "now", "difference", "first_epoch", "last_epoch", "changes", "status", "causes")
"""The columns of the answer behind the fields of the period."""
_EXACT = Context(prec=80)
_PERIOD, _FIRST = "__period", "__first"
_GROUP = ["period", "key"]


def columns_of(by: Sequence[str]) -> tuple[str, ...]:
    """The columns of the answer."""
    return (*by, *COLUMNS)


def restate(reading: Snapshot, name: str, wanted: Restatement) -> Iterator[Row]:
    """One row for each period, key and column whose value first published and whose value now differ, in this order.

    Raises Usage for an unknown node, field or epoch.
    """
    node = reading.committed(name)
    last = reading.known_epoch(wanted.end)
    start = None if wanted.start is None else reading.known_epoch(wanted.start)
    if start is not None and start > last:
        raise Usage(f"--from {start} is behind --to {last}")
    types = dict(node.data) | dict.fromkeys(reading.undeclared(node, (1, last)), STRING.or_null)
    for field in (*wanted.by, *wanted.fields):
        if field not in types:
            raise Usage(f"node '{name}' has no field '{field}'", help=did_you_mean(field, list(types)) or f"its fields: {', '.join(types)}")
    taken = [field for field in wanted.by if field in COLUMNS]
    if taken:
        raise Usage(f"the answer has a column '{taken[0]}' of its own, so --by cannot name a field of this name")
    changed = _changed(reading, node, types, wanted.by, (start, last))
    yield from Comparison(reading, node, types, wanted, changed).lines()


def _changed(reading: Snapshot, node: CommittedNode, types: Mapping[str, Type], by: Sequence[str], epochs: tuple[int | None, int]) -> pl.DataFrame:
    """The op rows of rows that were touched behind the first publication of their period, from that publication on."""
    names = ["_epoch", "_op", "_key", "_cause"]
    start, last = epochs
    rows = reading.changelog(node.name, (1 if start is None else start + 1, last)).select(*map(column, [*names, *types]))
    if start is not None:
        then = reading.keyed(node.name, start)
        system = [F.lit(start).cast("bigint").alias("_epoch"), F.lit(0).cast("tinyint").alias("_op"), F.col("_key"), F.lit("").alias("_cause")]
        rows = united(then.select(*system, *map(column, types)), rows)
    parts = [part for field in by for part in key_parts(column(field), types[field])]
    dated = rows.withColumn(_PERIOD, key_column(parts))
    came = dated.where(F.col("_op").isin([int(op) for op in POSITIVE]))
    firsts = came.groupBy(_PERIOD).agg(F.min("_epoch").alias(_FIRST))
    placed = dated.join(firsts, _PERIOD)
    touched = placed.where(F.col("_epoch") > F.col(_FIRST)).select(_PERIOD, "_key").distinct()
    return _here(reading, placed.join(touched, [_PERIOD, "_key"], "left_semi"), types)


def _here(reading: Snapshot, rows: DataFrame, types: Mapping[str, Type]) -> pl.DataFrame:
    system = {"_epoch": "epoch", "_op": "op", "_key": "key", "_cause": "cause", _PERIOD: "period", _FIRST: "first"}
    named = [*(F.col(name).alias(shown) for name, shown in system.items()), *(column(name).alias(f"c{at}") for at, name in enumerate(types))]
    return pl.DataFrame(reading.engine.to_arrow(rows.select(*named))).with_row_index("at")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares the first publication with what is said now.

    Attributes:
        types: The columns of the node in order.
        rows: Op rows as `_changed` returns them: `at`, `epoch`, `op`, `key`, `cause`, `period`, `first`, and the columns as `c0`, `c1` and so on.
    """

    reading: Snapshot
    node: CommittedNode
    types: Mapping[str, Type]
    wanted: Restatement
    rows: pl.DataFrame

    def lines(self) -> Iterator[Row]:
        """The answer."""
        events = self._events()
        groups = self._groups(events)
        columns = self._key_and_fields()
        causes = self._causes(events, groups)
        values = self._values(groups)
        for group in groups.iter_rows(named=True):
            yield from self._of_group(group, columns, causes, values)

    def _key_and_fields(self) -> tuple[list[str], list[tuple[int, str]]]:
        """The columns that name a row, and the columns that lines are about, by number."""
        named = self._key_columns or ()
        fields = self.wanted.fields or tuple(self.types)
        skipped = {*self.wanted.by, *named}
        return list(named), [(at, name) for at, name in enumerate(self.types) if name in fields and name not in skipped]

    @property
    def _key_columns(self) -> tuple[str, ...] | None:
        plan = self.reading.plan
        found = key_columns(plan, plan[self.node.name]) if plan is not None and self.node.name in plan.nodes else None
        return found if found is None or set(found) <= set(self.types) else None

    # -- what changed

    def _events(self) -> pl.DataFrame:
        """One row a period, key and epoch behind the first publication: the row before and after (`old`, `new`: whether there is one), which columns changed (`d0`, ...)."""
        count = len(self.types)
        came = pl.col("op").is_in([int(op) for op in POSITIVE])
        later = self.rows.filter(pl.col("epoch") > pl.col("first"))
        columns = [*_GROUP, "epoch", "at", "cause", "first", *(f"c{at}" for at in range(count))]
        before, after = later.filter(~came).select(columns), later.filter(came).select(columns)
        both = after.join(before, on=[*_GROUP, "epoch", "first"], how="full", suffix="_old", coalesce=True, nulls_equal=True)
        old, new = pl.col("at_old").is_not_null(), pl.col("at").is_not_null()
        changed = [((old != new) | pl.col(f"c{at}").ne_missing(pl.col(f"c{at}_old"))).alias(f"d{at}") for at in range(count)]
        found = both.select(*_GROUP, "epoch", "first", old.alias("old"), new.alias("new"), "at", pl.coalesce("cause", "cause_old").alias("cause"), *changed)
        return found.sort(*_GROUP, "epoch")

    def _groups(self, events: pl.DataFrame) -> pl.DataFrame:
        """One row a period and key that differs: row numbers of the first image (`was`) and of the present one (`now`), which columns differ (`d0`, ...), when it changed last."""
        count = len(self.types)
        came = pl.col("op").is_in([int(op) for op in POSITIVE])
        base = self.rows.filter(came & (pl.col("epoch") == pl.col("first"))).select(*_GROUP, pl.col("at").alias("was"))
        any_changed = pl.any_horizontal([f"d{at}" for at in range(count)])
        last = events.group_by(_GROUP, maintain_order=True).agg(
            pl.col("first").first(), pl.col("at").last().alias("now"), pl.col("epoch").filter(any_changed).max().alias("last")
        )
        sides = last.join(base, on=_GROUP, how="left")
        images = self.rows.select(pl.col("at"), *(f"c{at}" for at in range(count)))
        both = sides.join(images, left_on="was", right_on="at", how="left").join(images, left_on="now", right_on="at", how="left", suffix="_now")
        was, now = pl.col("was").is_not_null(), pl.col("now").is_not_null()
        differ = [((was != now) | (was & now & pl.col(f"c{at}").ne_missing(pl.col(f"c{at}_now")))).alias(f"d{at}") for at in range(count)]
        found = both.select(*_GROUP, "first", "last", "was", "now", *differ)
        return found.filter(pl.any_horizontal([f"d{at}" for at in range(count)])).sort(_GROUP)

    def _values(self, groups: pl.DataFrame) -> Mapping[int, Row]:
        """The columns of the images that are shown, by the number of their row."""
        numbers = pl.concat([groups["was"], groups["now"]]).drop_nulls().unique().to_list()
        names = dict(zip((f"c{at}" for at in range(len(self.types))), self.types, strict=True))
        chosen = self.rows.filter(pl.col("at").is_in(numbers))
        table = chosen.select(list(names)).rename(names).to_arrow()
        return dict(zip(chosen["at"].to_list(), dictionaries(table), strict=True))

    # -- why

    def _causes(self, events: pl.DataFrame, groups: pl.DataFrame) -> Mapping[tuple[bytes, bytes], list[tuple[int, list[str], list[bool]]]]:
        """By period and key: epoch, causes, and which columns changed, in order of epoch."""
        count = len(self.types)
        wanted = events.join(groups.select(_GROUP), on=_GROUP, how="semi")
        asked = wanted.filter(pl.col("cause") == RECOMPUTE).select("epoch", "key").unique().sort("epoch", "key")
        found_causes = traced(self.reading, self.node.name, [(epoch, key) for epoch, key in asked.iter_rows()])
        found: dict[tuple[bytes, bytes], list[tuple[int, list[str], list[bool]]]] = {}
        for period, key, epoch, cause, *changed in wanted.select(*_GROUP, "epoch", "cause", *(f"d{at}" for at in range(count))).iter_rows():
            behind = found_causes.get((epoch, key), [cause]) if cause == RECOMPUTE else [cause]
            found.setdefault((period, key), []).append((epoch, behind, changed))
        return found

    # -- lines

    def _of_group(
        self, group: Row, columns: tuple[list[str], list[tuple[int, str]]],
        causes: Mapping[tuple[bytes, bytes], list[tuple[int, list[str], list[bool]]]], values: Mapping[int, Row],
    ) -> Iterator[Row]:  # fmt: skip
        """The lines of a period and key."""
        was, now = (None if group[side] is None else values[group[side]] for side in ("was", "now"))
        shown = tuple(None if row is None else self.shown(row) for row in (was, now))
        image = shown[0] or shown[1] or {}
        named, fields = columns
        key = {name: image[name] for name in named} if self._key_columns is not None else {"_key": bytes(group["key"]).hex()}
        status = _status(was, now)
        events = causes[group["period"], group["key"]]
        for at, name in fields:
            if not group[f"d{at}"]:
                continue
            counted = [(epoch, behind) for epoch, behind, changed in events if changed[at]]
            yield {
                **{field: image[field] for field in self.wanted.by}, "key": key, "field": name, **_values_of(name, (was, now), shown),
                "first_epoch": group["first"], "last_epoch": group["last"], "changes": len(counted), "status": status,
                "causes": list(dict.fromkeys(cause for _, behind in counted for cause in behind)),
            }  # fmt: skip

    def shown(self, row: Row) -> dict[str, Any]:
        """The values of a row as people and programs see them."""
        return {**self.node.values({**row, "_widened": None}), **{name: row[name] for name in self.types if name not in self.node.data}}


def _status(was: Row | None, now: Row | None) -> str:
    return "added" if was is None else "withdrawn" if now is None else "restated"


def _values_of(name: str, typed: Sequence[Row | None], shown: Sequence[Row | None]) -> Row:
    """The first and the present value of a column, and their difference. `typed` and `shown`: the first and the present row."""
    old, new = (None if row is None else row[name] for row in typed)
    first, present = (None if row is None else row[name] for row in shown)
    exact = isinstance(old, Decimal) and isinstance(new, Decimal)
    return {"first": first, "now": present, "difference": difference(old, new) if exact else difference(first, present)}


def difference(was: Any, now: Any) -> Any:
    """The present value less the first where both are numbers, else None. Decimals keep their digits."""
    if isinstance(was, Decimal) and isinstance(now, Decimal):
        return format(_EXACT.subtract(now, was), "f")
    if isinstance(was, bool) or isinstance(now, bool) or not isinstance(was, int | float) or not isinstance(now, int | float):
        return None
    return now - was
