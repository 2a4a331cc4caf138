"""`merge: upsert`: the last record of a primary key wins; one for which `deleted` is true removes the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.lazy_imports import F
from cxl import spark
from operators.core.evaluate import prepare
from operators.source.config import SourceConfig
from operators.source.events.ingest import deliver_events
from operators.source.events.marking import Marks, by_last
from operators.source.request import IngestRequest, IngestResult, merge_strategy
from operators.source.strategies.keyed_events import deliver, place_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@merge_strategy("upsert")
def ingest(request: IngestRequest) -> IngestResult:
    """Return the changes of the last records of their keys. Deleting an unknown key changes nothing."""
    marks = marks_of(request.config)
    return deliver(request, lambda rows: marked(request, rows), judged=False) if marks is None else deliver_events(request, marks)


def marks_of(config: SourceConfig) -> Marks | None:
    """The marks that make events of records that have versions; None where each record follows the ones before it."""
    return by_last(marked) if config.merge.version_field is not None else None


def marked(request: IngestRequest, rows: DataFrame) -> DataFrame:
    """Records with `__stays` and `__wrong`; those whose predicate fails are rejected."""
    plain = rows.withColumn("__wrong", F.lit(None).cast("string"))
    program = request.source.deleted
    if program is None:
        return plain.withColumn("__stays", F.lit(True))
    assert program.expression is not None  # a predicate
    ready, context = prepare(plain, program.reads_system, request.source.output, request.values)
    deleted, failed = spark.column(program.expression, context)
    good = F.col("_error").isNull()
    gone = good & F.coalesce(deleted, F.lit(False))
    judged = ready.withColumn("__stays", ~gone if failed is None else ~(gone & ~failed))
    if failed is None:
        return judged
    sound = judged.where(~(good & failed))
    wrong = spark.errors(judged.where(good & failed), program, context, "__why")
    text = F.to_json(F.struct(F.col("__why.category").alias("category"), F.col("__why.message").alias("detail")))
    return sound.unionByName(wrong.withColumns({"_error": text, "_key": place_key(), "__stays": F.lit(True)}).drop("__why"))
