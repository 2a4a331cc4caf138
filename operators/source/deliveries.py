"""Files as deliveries, for sources that keep what was once delivered: append, ledger, changelog, upsert (DESIGN section 6).

A file that is gone was delivered all the same; of a file that grew the new end is read; a file that was overwritten is a
delivery of its own. A path is a file's identity: the same content under another name is delivered again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from operators.source.file_changes import (
    Compare,
    ContentHash,
    FileChanges,
    FileRecord,
    Found,
    Part,
    compare_contents,
    compare_files,
    in_order,
    labels,
    stored_apart,
)


def comparison(strategy: str, *, by_content: bool) -> Compare:
    """How a merge strategy compares files with those of the last epoch: a snapshot's are what is there now, those of all others are deliveries.

    `by_content`: records are told apart by their values, and nobody asks for their files.
    """
    if strategy != "snapshot":
        return compare_deliveries
    return compare_contents if by_content else compare_files


def compare_deliveries(found: Sequence[Found], known: Sequence[FileRecord], content_hash: ContentHash) -> FileChanges:
    """Compare what discovery found with what was delivered. Files that are gone stay among `now`, behind the others."""
    by_path = {record.path: record for record in known}
    present = [by_path.get(file.name) for file in found]
    now: list[FileRecord] = []
    added, changed, grown = [], [], []
    taken = {record.stored for record in known}
    for order, (file, label) in enumerate(zip(found, labels(present, in_order(present), known), strict=True)):
        record = present[order]
        if record is None:
            now.append(stored_apart(FileRecord(file.name, file.size, file.mtime_ns, content_hash(file.name), label), None, taken))
            added.append(now[-1])
        elif record.seen(file):
            now.append(replace(record, present=True))
        elif _begins_with(file, record, content_hash):
            now.append(replace(record, size=file.size, mtime_ns=file.mtime_ns, hash=content_hash(file.name), present=True))
            grown.extend([Part(now[-1], record.size, record.rows, order)] if file.size > record.size else [])
        else:
            now.append(replace(record, size=file.size, mtime_ns=file.mtime_ns, hash=content_hash(file.name), present=True))
            changed.append(now[-1])
    here = {file.name for file in found}
    gone = [replace(record, present=False) for record in known if record.path not in here]
    return FileChanges((*now, *gone), tuple(added), tuple(changed), (), tuple(grown))


def _begins_with(file: Found, record: FileRecord, content_hash: ContentHash) -> bool:
    """Whether the file's first bytes are what was read of it."""
    return file.size >= record.size and content_hash(file.name, record.size) == record.hash


def order_of(changes: FileChanges) -> dict[str, int]:
    """The place of each file in discovery order, by path."""
    return {record.path: order for order, record in enumerate(changes.now)}


def whole(changes: FileChanges, records: Sequence[FileRecord]) -> list[Part]:
    """Files to be read from their beginning."""
    order = order_of(changes)
    return [Part(record, order=order[record.path]) for record in records]


REWRITTEN = {
    "ledger": "it takes the records of new keys; all others stay as they were first read",
    "upsert": "it counts as a new delivery: its records replace those of their keys, and keys that it has no more keep their rows",
    "changelog": "it counts as a new delivery: each of its operations is applied to what stands now",
}
"""What a strategy does with a file that was read and has other content now. A snapshot compares, `append` ends the run."""


def rewritten(strategy: str, changes: FileChanges) -> Iterator[str]:
    """Warnings of files whose content was replaced after they were read."""
    for record in changes.changed if strategy in REWRITTEN else ():
        yield f"{record.path} was read before and has changed: under 'merge: {strategy}' {REWRITTEN[strategy]}"


def out_of_turn(changes: FileChanges) -> list[str]:
    """The paths of new and grown files ahead of a file that was read already, in discovery order."""
    moved = {*(record.path for record in changes.added), *(part.record.path for part in changes.grown)}
    added = {record.path for record in changes.added}
    read = [order for order, record in enumerate(changes.now) if record.present and record.rows and record.path not in added]
    return [record.path for order, record in enumerate(changes.now) if record.path in moved and read and order < read[-1]]


def is_late(changes: FileChanges) -> bool:
    """Whether something new stands before something that was read already, so that it is not simply the latest."""
    fresh = {record.path for record in (*changes.added, *changes.changed)}
    moved = fresh | {part.record.path for part in changes.grown}
    places = [order for order, record in enumerate(changes.now) if record.path in moved]
    first = min(places, default=len(changes.now))
    return any(record.present and record.rows and record.path not in fresh for record in changes.now[first + 1 :])


def is_whole_history(changes: FileChanges) -> bool:
    """Whether everything that was ever delivered can be read again."""
    overwritten = {record.path for record in changes.changed}
    return all(record.present and not record.replaced and record.path not in overwritten for record in changes.now)
