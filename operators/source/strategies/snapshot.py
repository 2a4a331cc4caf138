"""`merge: snapshot`: the present files are the whole truth, compared by key where there is one, else by position."""

from operators.source.diff import by_key, by_position
from operators.source.request import IngestRequest, IngestResult, merge_strategy


@merge_strategy("snapshot")
def ingest(request: IngestRequest) -> IngestResult:
    """Return the delta from the prior rows to the present files."""
    return by_key.ingest(request) if request.source.keyed else by_position.ingest(request)
