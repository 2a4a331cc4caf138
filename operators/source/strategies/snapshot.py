"""`merge: snapshot`: the present files are the whole truth, compared by key where there is one, else by position."""

from operators.source.diff import by_key, by_position, by_scope
from operators.source.request import IngestRequest, IngestResult, merge_strategy


@merge_strategy("snapshot")
def ingest(request: IngestRequest) -> IngestResult:
    """Return the delta from the prior rows to the present files."""
    if request.config.merge.scope is not None:
        return by_scope.ingest(request)
    return by_key.ingest(request) if request.source.keyed else by_position.ingest(request)
