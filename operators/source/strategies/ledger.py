"""`merge: ledger`: the first record of a primary key counts, later ones are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changelog.lazy_imports import F
from operators.source.request import IngestRequest, IngestResult, merge_strategy
from operators.source.strategies.keyed_events import deliver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@merge_strategy("ledger")
def ingest(request: IngestRequest) -> IngestResult:
    """The records whose keys are new."""
    return deliver(request, _appends, first_wins=True, judged=False)


def _appends(rows: DataFrame) -> DataFrame:
    return rows.withColumns({"__stays": F.lit(True), "__wrong": F.lit(None).cast("string")})
