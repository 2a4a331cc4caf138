"""`merge: append`: only records after the ones already read are new.

Earlier bytes are checked by their hash. Where the hash differs, or where a file cannot be read from the middle (a JSON array, an archive), its earlier
records are compared.
"""

from __future__ import annotations

from dataclasses import replace

from operators.source.diff.by_position import appended
from operators.source.diff.by_position import ingest as aligned
from operators.source.diff.sides import new_hashes, of_file, old_hashes
from operators.source.file_changes import FileRecord, Part, whole
from operators.source.request import IngestRequest, IngestResult, InputChanged, merge_strategy


@merge_strategy("append")
def ingest(request: IngestRequest) -> IngestResult:
    """Return the appended records. Raises InputChanged where earlier ones changed."""
    changes, files = request.changes, request.files
    if request.prior is None:
        return appended(request, [replace(part, record=files.undeclared(part.record)) for part in whole(changes, changes.added)])
    if request.rebuilt:
        return aligned(request)
    parts = [replace(part, record=files.undeclared(part.record)) for part in whole(changes, changes.added)]
    for part in (*changes.grown, *(Part(record, rows=record.rows) for record in changes.changed)):
        described = replace(part, record=files.undeclared(part.record))
        if not files.continues(described):
            _refuse_changed(request, described.record)
            described = replace(described, start=0)
        parts.append(described)
    return appended(request, parts)


def _refuse_changed(request: IngestRequest, record: FileRecord) -> None:
    """Raise InputChanged if an earlier record of a file changed."""
    assert request.prior is not None  # else nothing was read
    files, engine = request.files, request.engine
    old = old_hashes(request, of_file(request.prior.rows, files, record)).column("__hash")
    new = new_hashes(request, files.frame(engine, [Part(record)])).column("__hash")
    if not new.slice(0, len(old)).equals(old):
        first = next((at for at, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), min(len(old), len(new)))
        raise InputChanged(f"{record.path}: record {first + 1} is not what was read before; 'merge: append' takes new records only")
