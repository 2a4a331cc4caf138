"""`merge: changelog`: records that contain their operation, in the words of ODF, Debezium or Flink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from changelog.columns import column
from changelog.lazy_imports import F
from operators.source.config import SourceConfig
from operators.source.events.ingest import deliver_events
from operators.source.events.marking import Marks, by_groups, by_last, by_message
from operators.source.request import IngestRequest, IngestResult, merge_strategy
from operators.source.strategies.keyed_events import deliver, error, rejected

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COMES: Final = ("0", "3", "+A", "+C", "c", "r", "u", "+I", "+U")
"""Operations after which the record is live, whether its key was live before or not: ODF's codes and symbols, Debezium's, Flink's."""
GOES: Final = ("1", "2", "-R", "-C", "d", "-D", "-U")
"""Operations that retract the row of the key; the record's values are ignored."""

UNKNOWN_KEY: Final = "retraction_of_unknown_key"
"""The category of rejected records that take back what is not there."""


@merge_strategy("changelog")
def ingest(request: IngestRequest) -> IngestResult:
    """Return the net change of each key. Retractions of unknown keys and unknown operations are rejects."""
    marks = marks_of(request.config)
    return deliver(request, lambda rows: marked(request, rows)) if marks is None else deliver_events(request, marks)


def marks_of(config: SourceConfig) -> Marks | None:
    """The marks that make events of records whose order does not depend on their arrival; None where each record follows the ones before it."""
    if config.feed is not None:
        return by_message
    if config.merge.ops is not None:
        return by_groups
    return by_last(marked) if config.merge.version_field is not None else None


def marked(request: IngestRequest, rows: DataFrame) -> DataFrame:
    """Records with `__stays` and `__wrong`; those with an unknown operation are rejected."""
    word = F.trim(F.col("__mark").cast("string"))
    known = F.coalesce(word.isin(*COMES, *GOES), F.lit(False))
    named = F.coalesce(F.concat(F.lit("'"), word, F.lit("'")), F.lit("null"))
    detail = F.concat(F.lit(f"{request.config.merge.op} is "), named, F.lit(", which is no operation"))
    checked = rejected(rows, F.col("_error").isNull() & ~known, "unknown_operation", detail)
    goes = F.col("_error").isNull() & F.coalesce(word.isin(*GOES), F.lit(False))
    nothing = F.concat(F.lit("nothing to take back: there is no row with "), _shown(request))
    return checked.withColumns({"__stays": ~goes, "__wrong": F.when(goes, error(UNKNOWN_KEY, nothing))})


def _shown(request: IngestRequest) -> Column:
    parts = [F.concat(F.lit(f"{name}="), column(name).cast("string")) for name in request.config.merge.primary_key]
    return F.concat_ws(", ", *parts)
