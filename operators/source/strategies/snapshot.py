"""`merge: snapshot`: the files are the whole truth; by key where there is one, else like a text (DESIGN section 6)."""

from operators.source.diff import by_key, by_position
from operators.source.request import IngestRequest, IngestResult, merge_strategy


@merge_strategy("snapshot")
def ingest(request: IngestRequest) -> IngestResult:
    """The delta from what stood to what the files say now."""
    return by_key.ingest(request) if request.source.keyed else by_position.ingest(request)
