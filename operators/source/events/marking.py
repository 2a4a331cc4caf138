"""Records as events: what each one does, by its operation, by its message, or by a predicate for deletions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from changelog.columns import column
from changelog.frames import any_of
from changelog.keys.spark import key_column
from changelog.lazy_imports import F
from cxl import Program, spark
from cxl.types.types import Kind
from operators.core.evaluate import prepare
from operators.source.config import SourceConfig
from operators.source.events.columns import ACTIVATES, COLUMNS, CORRECTS, GOES, PASSED, PATCHES, STANDS, TRUNCATES
from operators.source.request import IngestRequest
from operators.source.strategies.keyed_events import error, place_key, rejected

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Marks = Callable[[IngestRequest, "DataFrame"], "DataFrame"]
"""Adds `__does` to records that are no rejects, and makes rejects of some."""


def events_of(request: IngestRequest, rows: DataFrame, marks: Marks) -> DataFrame:
    """The events of records: the columns that the source stores, `COLUMNS`. Rejects are events of their places."""
    config = request.config
    events = marks(request, rows)
    good = F.col("_error").isNull()
    events = events.where(~good | (F.col("__does") != PASSED)).withColumn("__does", F.when(good, F.col("__does")).otherwise(STANDS))
    if config.merge.version_field:
        versioned = ~F.col("__does").isin(ACTIVATES)
        names = ", ".join(config.merge.version_field)
        events = rejected(events, F.col("_error").isNull() & versioned & F.col("__version").isNull(), "null_version", F.lit(f"the version ({names}) is null"))
    return _split(request, _with_keys(request, events))


def _with_keys(request: IngestRequest, events: DataFrame) -> DataFrame:
    """Add `__own` and `__named`: the record's own key, and the key of the record that it means. Rejects records without the key that they need."""
    config, keys = request.config, request.source.identity
    if not config.merge.of:
        null = any_of([column(name).isNull() for name, _ in keys])
        events = events.withColumns({"__own": F.col("_key"), "__named": F.col("_key"), "__shown": _shown([(name, column(name)) for name, _ in keys])})
    else:
        named = _named(config, [name for name, _ in keys])
        means = F.col("__does").isin(GOES, PATCHES)
        needed = [F.when(means, value).otherwise(column(name)) for name, value in named]
        null = any_of([value.isNull() for value in needed])
        shown = _shown(named)
        events = events.withColumns({"__own": F.col("_key"), "__named": key_column([(value, kind) for (_, value), (_, kind) in zip(named, keys, strict=True)]), "__shown": shown})
    wanted = ~F.col("__does").isin(TRUNCATES, ACTIVATES)
    detail = F.lit(f"the primary key ({', '.join(name for name, _ in keys)}) is null")
    return rejected(events, F.col("_error").isNull() & wanted & null, "null_primary_key", detail)


def _named(config: SourceConfig, names: Sequence[str]) -> list[tuple[str, Column]]:
    """The key that a record means: of each column what `of` names, where that is not empty, else its own value."""
    of = config.merge.of or {}
    found = []
    for name in names:
        meant = column(of[name]) if name in of else None
        filled = None if meant is None else F.when(F.trim(meant.cast("string")) != "", meant)
        found.append((name, column(name) if filled is None else F.coalesce(filled, column(name))))
    return found


def _shown(values: Sequence[tuple[str, Column]]) -> Column:
    return F.concat_ws(", ", *(F.concat(F.lit(f"{name}="), value.cast("string")) for name, value in values))


def _split(request: IngestRequest, events: DataFrame) -> DataFrame:
    """One event a key: a record that takes back another key than it appends becomes two."""
    config = request.config
    good, is_feed = F.col("_error").isNull(), config.feed is not None
    events = _with_parts(config, events)
    first, second = F.col("__part") == 1, F.col("__part") == 2
    versioned = config.merge.version_field is not None
    quiet = F.lit(is_feed or versioned or config.merge.unknown.retract == "ignore")
    does = F.when(first, GOES).when(second | ~good, STANDS).otherwise(F.col("__does"))
    meant = F.col("__does").isin(GOES, PATCHES)
    made = {
        "__of": F.when(~good, F.col("_key")).when(first | (meant & (F.col("__part") == 0)), F.col("__named")).otherwise(F.col("__own")),
        "__does": does,
        "__quiet": quiet | first,
        "__expects": good & (F.lit(is_feed) == F.lit(False)) & F.col("__does").isin(CORRECTS, PATCHES) & ~second,
        "__ref": F.when(first, F.col("__own")).when(second, F.col("__named")),
        "__kept": F.when(good & ~first, F.col("__kept")) if is_feed else F.lit(None),
        "__version": F.col("__version") if versioned or config.asks else F.lit(None),
        "__stream": F.col("__stream") if is_feed else F.lit(None),
    }
    kinds = {name: made.get(name, column(name)).cast(kind) for name, kind in COLUMNS.items()}
    values = _image(request)
    return events.select(*(value.alias(name) for name, value in kinds.items()), *(value.alias(name) for name, value in values.items()), *([] if "_row" in values else ["_row"]))


def _with_parts(config: SourceConfig, events: DataFrame) -> DataFrame:
    """Add `__part`: 1 and 2 for the events of a record that takes back another key than it appends, else 0."""
    good = F.col("_error").isNull()
    moves = good & (F.col("__does") == CORRECTS) & (F.col("__own") != F.col("__named"))
    if config.feed is not None:
        moves = good & (F.col("__does") == STANDS) & F.col("__old_key").isNotNull() & F.col("__kept").isNull()  # else it may be a reject, which moves nothing
        events = events.withColumn("__named", F.coalesce(F.col("__old_key"), F.col("__own")))
    elif not config.merge.of:
        return events.withColumn("__part", F.lit(0))
    return events.withColumn("__part", F.explode(F.when(moves, F.array(F.lit(1), F.lit(2))).otherwise(F.array(F.lit(0)))))


def _image(request: IngestRequest) -> dict[str, Column]:
    """The values of the stored columns."""
    config, keys = request.config, [name for name, _ in request.source.identity]
    values = {name: column(name) for name in request.files.shape.columns}
    if not config.merge.of:
        return values
    patches = F.col("_error").isNull() & (F.col("__does") == PATCHES)  # what is live under the named key keeps that key
    return values | {name: F.when(patches, value).otherwise(column(name)) for name, value in _named(config, keys)}


# -- what records do


def by_groups(request: IngestRequest, rows: DataFrame) -> DataFrame:
    """`ops`: the group of the operation's value."""
    ops = request.config.merge.ops or {}
    program = request.source.operation
    events, word = _words(request, rows) if program is None else _computed(request, rows, program)
    codes = {"append": STANDS, "correct": CORRECTS, "patch": PATCHES, "retract": GOES, "ignore": PASSED}
    groups = [(codes[group], words) for group, words in ops.items()]
    found = [F.when(_is_among(word, words), code) for code, words in groups]
    events = events.withColumn("__does", F.coalesce(*found))
    named = F.coalesce(F.concat(F.lit("'"), word, F.lit("'")), F.lit("null"))
    what = request.config.merge.op if program is None else "the operation"
    detail = F.concat(F.lit(f"{what} is "), named, F.lit(", which is in no group of ops"))
    return rejected(events, F.col("_error").isNull() & F.col("__does").isNull(), "unknown_operation", detail)


def _is_among(word: Column, words: Sequence[str | None]) -> Column:
    some = [one for one in words if one is not None]
    listed = F.coalesce(word.isin(*some), F.lit(False)) if some else F.lit(False)
    return listed | word.isNull() if None in words else listed


def _words(request: IngestRequest, rows: DataFrame) -> tuple[DataFrame, Column]:
    name = str(request.config.merge.op)
    kind = next(one for one in request.config.schema_ if one.name == name).cxl_type.kind
    return rows, as_word(column(name), kind)


def as_word(value: Column, kind: Kind) -> Column:
    """A value as the text by which it is looked up in `ops`; null for blanks."""
    text = value.cast("string")
    if kind is Kind.FLOAT:
        whole = (value == F.floor(value)) & (F.abs(value) < 1e15)
        text = F.when(whole, value.cast("bigint").cast("string")).otherwise(text)
    elif kind in (Kind.ANY, Kind.NUMERIC):
        text = F.regexp_replace(text, '^"(.*)"$', "$1")
        text = F.when(text != "null", text)
    trimmed = F.trim(text)
    return F.when(trimmed != "", trimmed)


def _computed(request: IngestRequest, rows: DataFrame, program: Program) -> tuple[DataFrame, Column]:
    """Records with `__word`, the value of an expression; those in which it fails are rejects."""
    assert program.expression is not None  # it was compiled as one
    ready, context = prepare(rows, program.reads_system, request.source.output, request.values)
    value, failed = spark.column(program.expression, context)
    word = as_word(value, program.expression.type.kind)
    if failed is None:
        return ready.withColumn("__word", word), F.col("__word")
    good = F.col("_error").isNull()
    sound = ready.where(~(good & failed)).withColumn("__word", word)
    wrong = spark.errors(ready.where(good & failed), program, context, "__why")
    text = F.to_json(F.struct(F.col("__why.category").alias("category"), F.col("__why.message").alias("detail")))
    refused = wrong.withColumns({"_error": text, "_key": place_key(), "__word": F.lit(None).cast("string")}).drop("__why")
    return sound.unionByName(refused), F.col("__word")


def by_message(_request: IngestRequest, rows: DataFrame) -> DataFrame:
    """A change feed: the reader has said it."""
    return rows


def by_last(is_live: Callable[[IngestRequest, DataFrame], DataFrame]) -> Marks:
    """Strategies that say whether a key is live after a record (`__stays`)."""

    def marks(request: IngestRequest, rows: DataFrame) -> DataFrame:
        judged = is_live(request, rows)
        return judged.withColumn("__does", F.when(F.col("__stays"), STANDS).otherwise(GOES))

    return marks


def unavailable() -> Column:
    """The error of an event that keeps what is not there."""
    return error("unavailable_value", F.lit("a value is unavailable, and there is no row that has it"))
