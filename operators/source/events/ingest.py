"""The delta of deliveries whose records are events: by the newest event of each key, or by all events."""

from __future__ import annotations

from changelog.lazy_imports import F
from changelog.rows import Rows
from operators.source.events.deliveries import Delivery
from operators.source.events.marking import Marks
from operators.source.events.winners import Winners
from operators.source.request import IngestRequest, IngestResult


def deliver_events(request: IngestRequest, marks: Marks) -> IngestResult:
    """Return the delta of files. `marks` makes events of their records."""
    return delta_of(Delivery.read(request, marks))


def delta_of(delivery: Delivery) -> IngestResult:
    """Return the delta of new events."""
    request = delivery.request
    rows = Winners(delivery).op_rows() if keeps_winners(request) else delivery.by_events()
    caused = rows.withColumn("_cause", F.when(F.col("_op") == 0, F.lit(request.fresh_cause)).otherwise(F.lit(request.cause)))
    return IngestResult(Rows(request.engine, frame=caused), request.prior is not None, delivery.files, delivery.uncounted, delivery.bound)


def keeps_winners(request: IngestRequest) -> bool:
    """Whether the newest event of a key decides alone. Events of Debezium may lack values, which earlier events have."""
    merge, feed = request.config.merge, request.config.feed
    if feed is not None:
        return feed != "debezium"
    if merge.version_field is None:
        return False
    return merge.ops is None or merge.unknown.correct == "append"
