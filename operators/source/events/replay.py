"""The effect of events on the prior rows of their keys, in columns: the net change of each key, and the records that are rejected.

The events of a key are replayed in order. A correction, a patch or an event with unavailable values needs a live row where `Rules` say so, and changes
nothing else about whether its key is live. So an event is good or bad by the last append or retraction before it, and no event decides about another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.equality import alike, fingerprint, parts
from changelog.lazy_imports import F, Window
from operators.core.row_type import CK
from operators.source.events import undeclared
from operators.source.events.columns import CORRECTS, GOES, ORDER, ORDER_OF_ANSWERS, PATCHES
from operators.source.events.marking import unavailable
from operators.source.request import IngestRequest
from operators.source.strategies.keyed_events import error, place_key
from storage.formats.base import SEPARATOR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REJECT: Final = 4
_OLD: Final = "__ev_old"
_OWN_PLACE: Final = ("_file", "_row", "_error", "_doc")
"""Stored columns that always come from the record."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How events are replayed.

    Attributes:
        names: Stored columns.
        compared: Columns whose difference is a correction.
        by_version: Whether the order begins with versions.
        refuses_corrections: Whether a correction of nothing is rejected.
        patches: Whether there are patches.
        keeps: Whether there may be events with unavailable values.
        empty_is_null: Whether an empty text says nothing in a patch.
        event_time: The column of the event time; None where there is none.
        clears: Whether events of all keys may have come between (`__wiped`, `__era`).
        answer: Of events of a database the file that their rows have; else None.
    """

    names: tuple[str, ...]
    compared: tuple[str, ...]
    by_version: bool = False
    refuses_corrections: bool = False
    patches: bool = False
    keeps: bool = False
    empty_is_null: bool = False
    event_time: str | None = None
    clears: bool = False
    answer: str | None = None

    @classmethod
    def of(cls, request: IngestRequest) -> Rules:
        """The rules of a source."""
        config = request.config
        return cls(
            tuple(request.files.shape.columns), tuple(request.compared()), config.merge.version_field is not None or config.asks,
            config.merge.unknown.correct == "reject", "patch" in (config.merge.ops or {}), config.feed == "debezium",
            config.type in ("csv", "fixed_width"), config.event_time.column if config.event_time else None,
            answer=config.answer_name if config.asks else None,
        )  # fmt: skip

    @property
    def order_names(self) -> list[str]:
        """The names of the columns by which events of a key are sorted."""
        return [*(["__version"] if self.by_version else []), *(ORDER if self.answer is None else ORDER_OF_ANSWERS)]

    @property
    def order(self) -> list[Column]:
        """The columns by which events of a key are sorted."""
        return [F.col(name).asc_nulls_first() for name in self.order_names]

    @property
    def printed(self) -> Sequence[str]:
        """The compared columns that events have as rows have them."""
        return self.compared if self.answer is None else [name for name in self.compared if name not in ("_file", "_row")]


def replayed(events: DataFrame, stood: DataFrame | None, rules: Rules) -> DataFrame:
    """The events that count, beside the prior row of their key, with their codes: op codes, and `REJECT` for a bad record.

    Args:
        events: Events with `__place`, `__fresh` and `__stale`, and `__wiped` and `__era` where the rules say so.
        stood: Prior rows with `_key` and the stored columns; None for none.
        rules: How events are replayed.
    """
    marked = _merged(_judged(_beside(events, stood, rules), rules), rules)
    return _with_codes(marked, stood, rules)


def op_rows(marked: DataFrame, rules: Rules, *, has_old: bool) -> DataFrame:
    """The op rows of replayed events, with `_op`, `_key` and the stored columns."""
    code = F.col("__code")
    single = marked.withColumn("__code", F.explode("__codes"))
    op = F.when(code == REJECT, 0).otherwise(code).cast("tinyint").alias("_op")
    key = F.when(code == REJECT, place_key()).otherwise(F.col("__of")).alias("_key")
    values = []
    for name in rules.names:
        new = F.when(code == REJECT, F.col("__wrong")).otherwise(F.col("_error")) if name == "_error" else _stored(name, rules)
        values.append((F.when(code.isin(1, 2), F.col(_OLD).getField(name)).otherwise(new) if has_old else new).alias(name))
    return single.select(op, key, *values)


def _stored(name: str, rules: Rules) -> Column:
    """A column of an event as its row has it."""
    if rules.answer is not None and name in ("_file", "_row"):
        return F.lit(rules.answer) if name == "_file" else F.lit(None).cast("bigint")
    return column(name)


def _beside(events: DataFrame, stood: DataFrame | None, rules: Rules) -> DataFrame:
    """Events with the prior row of their key, and whether it counts as live before them."""
    if stood is None:
        return events.withColumn("__known", F.lit(False))
    old = stood.select(F.col("_key").alias("__of"), F.struct(*map(column, rules.names)).alias(_OLD), fingerprint(stood, rules.printed).alias("__old_print"))
    return events.join(old, "__of", "left").withColumn("__known", F.col(_OLD).isNotNull())


def _judged(events: DataFrame, rules: Rules) -> DataFrame:
    """Events with `__stood` (whether the key was live before), `__wrong` (the error of a bad one), and `__final` (whether it is the last good one)."""
    does, eras = F.col("__does"), ["__of", "__era"] if rules.clears else ["__of"]
    kept = F.col("__kept").isNotNull()
    needs = kept | (does.isin(CORRECTS, PATCHES) if rules.refuses_corrections else F.lit(False))
    sets = F.when(does == GOES, False).when(~needs, True)
    before = Window.partitionBy(*eras).orderBy(*rules.order).rowsBetween(Window.unboundedPreceding, -1)
    known = F.col("__known") & (F.col("__era") == 0) if rules.clears else F.col("__known")
    marked = events.withColumn("__sets", sets)
    marked = marked.withColumn("__stood", F.coalesce(F.last("__sets", ignorenulls=True).over(before), known))
    to_correct = F.concat(F.lit("nothing to correct: there is no row with "), F.col("__shown"))
    to_retract = F.concat(F.lit("nothing to take back: there is no row with "), F.col("__shown"))
    nothing = ~F.col("__stood")
    wrong = F.when(nothing & kept, unavailable())
    if rules.refuses_corrections:
        wrong = F.when(nothing & F.col("__expects"), error("correction_of_unknown_key", to_correct)).otherwise(wrong)
    wrong = F.when(nothing & (does == GOES) & ~F.col("__quiet"), error("retraction_of_unknown_key", to_retract)).otherwise(wrong)
    marked = marked.withColumn("__wrong", wrong)
    every = Window.partitionBy("__of").orderBy(*rules.order)
    behind = F.max(F.col("__wrong").isNull().cast("int")).over(every.rowsBetween(1, Window.unboundedFollowing))
    return marked.withColumn("__final", F.col("__wrong").isNull() & (F.coalesce(behind, F.lit(0)) == 0))


def _merged(marked: DataFrame, rules: Rules) -> DataFrame:
    """Events with the values of the row after them, where some events keep earlier values."""
    if not rules.patches and not rules.keeps:
        return marked
    does, good = F.col("__does"), F.col("__wrong").isNull()
    eras = ["__of", "__era"] if rules.clears else ["__of"]
    begins = good & ((does == GOES) | ((does != PATCHES) & F.col("__kept").isNull()))
    to_here = Window.partitionBy(*eras).orderBy(*rules.order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    staged = marked.withColumn("__part_of", F.sum(begins.cast("int")).over(to_here))
    among = Window.partitionBy(*eras, "__part_of").orderBy(*rules.order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    first = F.col("__part_of") == 0
    first = first & (F.col("__era") == 0) if rules.clears else first
    has_old = _OLD in marked.columns
    types = {field.name: field.dataType.typeName() for field in marked.schema.fields if field.name in rules.names}
    says = good & (does != GOES)
    set_values = {
        name: F.when(says & ~_keeps(name, rules, is_text=types[name] == "string"), F.struct(column(name).alias("v")))
        for name in rules.names if name not in (*_OWN_PLACE, undeclared.FIELDS)
    }  # fmt: skip
    values = {name: F.last(value, ignorenulls=True).over(among) for name, value in set_values.items()}
    staged = staged.withColumns({f"__new_{at}": value for at, value in enumerate(values.values())})
    merged = {}
    for at, name in enumerate(values):
        newest = F.col(f"__new_{at}")
        old = F.when(first, F.col(_OLD).getField(name)) if has_old else F.lit(None)
        merged[name] = F.when(newest.isNotNull(), newest.getField("v")).otherwise(old)
    is_partial = good & ((does == PATCHES) | F.col("__kept").isNotNull())
    whole = [F.when(is_partial, merged[name]).otherwise(column(name)).alias(name) if name in merged else column(name) for name in marked.columns]
    if undeclared.FIELDS not in rules.names:
        return staged.select(*whole)
    before = undeclared.first(F.col(_OLD).getField(undeclared.FIELDS)) if has_old else F.lit(None).cast("string")
    steps = F.array_compact(F.collect_list(F.when(says, undeclared.step(does == PATCHES, F.col("__kept")))).over(among))
    chained = staged.withColumn(undeclared.CHAIN, steps)
    chain = F.when(is_partial, F.when(first & before.isNotNull(), F.concat(F.array(before), F.col(undeclared.CHAIN))).otherwise(F.col(undeclared.CHAIN)))
    return undeclared.merged(chained.select(*whole, chain.alias(undeclared.CHAIN)), empty_is_null=rules.empty_is_null)


def _keeps(name: str, rules: Rules, *, is_text: bool) -> Column:
    """Whether an event keeps the value that a column had."""
    empty = column(name).isNull() | (column(name) == "") if rules.empty_is_null and is_text else column(name).isNull()
    keeps = (F.col("__does") == PATCHES) & empty
    if not rules.keeps:
        return keeps
    data = rules.event_time if name == "_event_time" else name.removeprefix(CK)
    return keeps if data is None else keeps | F.coalesce(F.col("__kept").contains(f"{SEPARATOR}{data}{SEPARATOR}"), F.lit(False))


def _with_codes(marked: DataFrame, stood: DataFrame | None, rules: Rules) -> DataFrame:
    final, known = F.col("__final"), F.col("__known")
    good = F.col("_error").isNull()
    stays = (F.col("__does") != GOES) & (good | ~F.col("__stale"))
    stays = stays & ~(good & F.col("__wiped")) if rules.clears else stays  # a reject stays one, whatever is cleared later
    bad = F.when(F.col("__wrong").isNotNull() & ~F.col("__stale"), REJECT)
    if stood is None:
        codes = [F.when(final & stays, 0), bad]
    else:
        same = alike(F.col("__old_print"), fingerprint(marked, rules.printed), len(parts(stood, rules.printed)))
        corrected = final & stays & known & ~same
        codes = [F.when(final & stays & ~known, 0), F.when(final & ~stays & known, 1), F.when(corrected, 2), F.when(corrected, 3), bad]
    return marked.withColumn("__codes", F.array_compact(F.array(*codes))).drop("__old_print")


def unfound(marked: DataFrame) -> DataFrame:
    """The new corrections that found nothing to correct, of replayed events."""
    return marked.where(F.col("__fresh") & F.col("__expects") & ~F.col("__stood") & F.col("__wrong").isNull())

