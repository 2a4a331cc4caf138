"""Changes of a source's files since the last epoch: added, changed, grown, removed, moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, count, pairwise
from operator import attrgetter
from typing import Any, Final, Protocol

from changelog.keys.positions import labels_between
from storage.formats import Range

Label = tuple[int, ...]


class Stamped(Protocol):
    """The stamp of a file, which changes when the file does."""

    @property
    def size(self) -> int:
        """In bytes."""

    @property
    def mtime_ns(self) -> int:
        """When it was written, in nanoseconds since 1970."""

    @property
    def tag(self) -> str:
        """The mark by which a store tells versions of an object apart; empty for files of this machine."""


class Found(Stamped, Protocol):
    """A file that discovery found."""

    @property
    def name(self) -> str:
        """Its path below the pipeline's folder, or its URI."""


class ContentHash(Protocol):
    """The hash of a file's content, or of its first `length` bytes, to be compared with the hash `like`."""

    def __call__(self, name: str, like: str = "", length: int | None = None) -> str:
        """In hexadecimal."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a source after an epoch, as the ledger stores it.

    Attributes:
        path: Path as discovery found it.
        hash: Salted hash of the content (`storage.files.salted_hashes`). Of other sources: what tells their contents apart.
        label: Position among the source's files.
        rows: Number of records, rejects included.
        dense: Whether record n has order key n. For a Delta table: whether its rows are the live rows.
        undeclared: Columns outside the schema, with their types.
        present: False for a missing file whose records are live: a delivery, or rows that a revert restored.
        replaced: Whether earlier content of a delivery was overwritten.
        version: Version of a Delta table; `hash` distinguishes tables. 0 for an answer of a database.
        shifted: Whether the file changed, so that keyed records may have another row number than stored.
        listed: Whether the state has the file's chunk list, and it matches the live rows.
        stored_as: Path of its records in `_file`, where the file took the place of another one.
        arrived: Epoch that first read the present content of a delivery.
        token: Of an answer of a database: what says that it cannot have changed.
        stamp: Of an answer of a database in a file: size and times of that file.
        cursor: Of an answer that is read from a cursor on: the greatest value, as JSON.
        filled: Columns that the file lacks, and that its path fills.
        tag: Of an object in a store: its ETag and version. Its time says nothing.
    """

    path: str
    size: int
    mtime_ns: int
    hash: str
    label: Label
    rows: int = 0
    dense: bool = True
    undeclared: tuple[tuple[str, str], ...] = ()
    present: bool = True
    replaced: bool = False
    version: int | None = None
    shifted: bool = False
    listed: bool = False
    stored_as: str | None = None
    arrived: int = 0
    token: str | None = None
    stamp: str | None = None
    cursor: str | None = None
    filled: tuple[str, ...] = ()
    tag: str | None = None

    @property
    def stored(self) -> str:
        """The path that its records have in `_file`."""
        return self.stored_as or self.path

    def json(self) -> dict[str, Any]:
        """The record as the ledger stores it."""
        members = dict(zip(_MEMBERS, _VALUES(self), strict=True))  # `asdict` copies each value, and a source may have many files
        for name in ("token", "stamp", "cursor", "tag"):
            if members[name] is None:
                del members[name]
        return members

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> FileRecord:
        """Return a record from the ledger."""
        known = {name: value[name] for name in _MEMBERS if name in value}
        undeclared = tuple((name, type_) for name, type_ in value.get("undeclared", ()))
        return cls(**{**known, "label": tuple(value["label"]), "undeclared": undeclared, "filled": tuple(value.get("filled", ()))})

    @classmethod
    def all_of(cls, entry: Mapping[str, Any]) -> tuple[FileRecord, ...]:
        """The files that the ledger keeps of a source."""
        return tuple(map(cls.of, entry.get("files", ())))

    def partly(self) -> FileRecord:
        """Return the same file marked as changed, since a change in it was ignored in this run."""
        return replace(self, mtime_ns=0, hash="", tag=self.tag and "")

    def there(self) -> FileRecord:
        """Return the record of a file that is present."""
        return self if self.present else replace(self, present=True)

    def in_lists(self, listed: bool) -> FileRecord:
        """Return the record of a file whose chunks the state has a list of, or not."""
        return self if self.listed == listed else replace(self, listed=listed)

    def seen(self, file: Stamped) -> bool:
        """Return whether size and time, or of an object size and ETag, equal the values of the file that was read."""
        return (self.size, self.tag or self.mtime_ns) == (file.size, file.tag or file.mtime_ns)

    def read(self, file: Stamped) -> FileRecord:
        """Return the same record with the size and the time, or the ETag, of the file that is read now."""
        return replace(self, size=file.size, mtime_ns=0 if file.tag else file.mtime_ns, tag=file.tag or None)

    @classmethod
    def new(cls, file: Found, digest: str, label: Label) -> FileRecord:
        """Return the record of a file that is read for the first time."""
        return cls(file.name, file.size, 0, digest, label).read(file)


_MEMBERS: Final = tuple(member.name for member in fields(FileRecord))
"""The names of what the ledger keeps of a file."""
_VALUES: Final = attrgetter(*_MEMBERS)
"""What the ledger keeps of a file."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a file to read.

    Attributes:
        record: The file.
        start: Bytes of the records that were read already; 0: not known.
        rows: Number of these records.
        order: Position of the file in discovery order, from 0.
        ranges: Ranges to read, where they are known; they may be less than the whole file.
    """

    record: FileRecord
    start: int = 0
    rows: int = 0
    order: int = 0
    """The file's place in discovery order, from 0."""
    ranges: tuple[Range, ...] | None = None

    @property
    def size(self) -> int:
        """Bytes to be read."""
        return self.record.size - self.start if self.ranges is None else sum(one.size for one in self.ranges)


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The files of a source in discovery order, and what to do with them.

    Attributes:
        now: All files that the source knows; `rows` of added and changed ones count the last epoch.
        added: Files to read.
        changed: Files to read again.
        removed: Entries whose rows go. A moved file is removed and added.
        grown: New ends of files.
    """

    now: tuple[FileRecord, ...]
    added: tuple[FileRecord, ...] = ()
    changed: tuple[FileRecord, ...] = ()
    removed: tuple[FileRecord, ...] = ()
    grown: tuple[Part, ...] = ()

    @property
    def any(self) -> bool:
        """Whether rows come or go."""
        return bool(self.added or self.changed or self.removed or self.grown)

    @property
    def to_read(self) -> int:
        """The bytes that are to be read."""
        return sum(record.size for record in (*self.added, *self.changed)) + sum(part.size for part in self.grown)

    @property
    def reason(self) -> str | None:
        """Why the source has to be read; None where nothing changed."""
        counts = ((len(self.added), "new"), (len(self.changed), "changed"), (len(self.grown), "grown"), (len(self.removed), "gone"))
        parts = [f"{count} {word}" for count, word in counts if count]
        return f"files: {', '.join(parts)}" if parts else None

    def from_nothing(self) -> FileChanges:
        """Return the same files, all present ones to be read again in their positions."""
        return FileChanges(self.now, (), tuple(record for record in self.now if record.present), self.removed)


def compare_files(found: Sequence[Found], known: Sequence[FileRecord], content_hash: ContentHash) -> FileChanges:
    """Compare discovered files with the last epoch. A file is unchanged by size and time, else by its hash."""
    by_path = {record.path: record for record in known if record.stored_as is None}
    return _compared(found, known, content_hash, [by_path.get(file.name) for file in found])


def compare_contents(found: Sequence[Found], known: Sequence[FileRecord], content_hash: ContentHash) -> FileChanges:
    """Compare files whose paths nobody reads: a new file between the same neighbours takes the place of a missing one."""
    by_path = {record.path: record for record in known}
    present = [by_path.get(file.name) for file in found]
    changes = _compared(found, known, content_hash, _with_successors(present, found, known))
    taken = {record.stored for record in known}
    named = {record.label: stored_apart(record, by_path.get(record.path), taken) for record in changes.added}
    return replace(changes, now=tuple(named.get(record.label, record) for record in changes.now), added=tuple(named.values()))


def _compared(found: Sequence[Found], known: Sequence[FileRecord], content_hash: ContentHash, present: Sequence[FileRecord | None]) -> FileChanges:
    """The changes of the files, where `present` has the known record of each."""
    stays = in_order(present)
    before = [record if at in stays else None for at, record in enumerate(present)]
    now = [_as_found(old, file, label, content_hash) for old, file, label in zip(before, found, labels(present, stays, known), strict=True)]
    added = tuple(record for record, old in zip(now, before, strict=True) if old is None)
    changed = tuple(record for record, old in zip(now, before, strict=True) if old is not None and (record.hash, record.path) != (old.hash, old.path))
    restored = _restored(known, found)
    kept_labels = {record.label for record in (*now, *restored)} - {record.label for record in added}
    removed = tuple(record for record in known if record.label not in kept_labels)
    return FileChanges((*now, *restored), added, changed, removed)


def _as_found(record: FileRecord | None, file: Found, label: Label, content_hash: ContentHash) -> FileRecord:
    """A file's record; `record` is the one of before of a file that kept its place. It has another hash where the content is another."""
    if record is None:
        return FileRecord.new(file, content_hash(file.name), label)
    same_file = record.path == file.name
    if same_file and record.seen(file):
        return record.there()
    digest = content_hash(file.name, record.hash)
    if same_file and digest == record.hash:
        return replace(record.read(file), present=True)
    stored = record.stored_as if same_file else record.stored
    return replace(record.read(file), path=file.name, hash=digest, present=True, shifted=True, stored_as=stored)


def _with_successors(present: Sequence[FileRecord | None], found: Sequence[Found], known: Sequence[FileRecord]) -> list[FileRecord | None]:
    """The known record of each found file, where a new one comes that of a file that went from between the same neighbours: the first new one takes the place of the first."""
    here, stays = {file.name for file in found}, in_order(present)
    gone = sorted((record for record in known if record.present and record.path not in here), key=lambda record: record.label)
    places, made, first = [record.label for record in gone], list(present), 0
    new: list[int] = []
    for at, record in enumerate(present):
        if record is None:
            new.append(at)
        elif at in stays:
            behind = bisect_left(places, record.label)
            made = _placed(made, new, gone[first:behind])
            first, new = behind, []
    return _placed(made, new, gone[first:])


def _placed(made: list[FileRecord | None], new: Sequence[int], gone: Sequence[FileRecord]) -> list[FileRecord | None]:
    for at, record in zip(new, gone, strict=False):
        made[at] = record
    return made


def stored_apart(record: FileRecord, before: FileRecord | None, taken: Collection[str]) -> FileRecord:
    """Return an added file with a path for its records that no other file has. A file that moved (`before`) keeps its records' path."""
    if before is not None:
        return replace(record, stored_as=before.stored_as)
    names = chain([record.path], (f"{record.path}#{number}" for number in count(2)))
    stored = next(name for name in names if name not in taken)
    return record if stored == record.path else replace(record, stored_as=stored)


def _restored(known: Sequence[FileRecord], found: Sequence[Found]) -> list[FileRecord]:
    """The records of files that were gone before and still are: what brought their rows back holds."""
    here = {file.name for file in found}
    return [record for record in known if not record.present and record.path not in here]


def in_order(present: Sequence[FileRecord | None]) -> set[int]:
    """Return the positions of the known files that kept their order: the longest such selection."""
    positions = [at for at, record in enumerate(present) if record is not None]
    kept = longest_in_order([record.label for record in present if record is not None])
    return {positions[at] for at in kept}


def labels(present: Sequence[FileRecord | None], stays: set[int], known: Sequence[FileRecord]) -> list[Label]:
    """Return a position for each discovered file: its own where it stays, else a new one between its neighbours.

    No new position equals one of a known file, so that rows of removed and of added files never share a key.
    """
    taken = sorted(record.label for record in known)
    made: list[Label] = []
    low: Label | None = None
    at = 0
    while at < len(present):
        record = present[at]
        if at in stays and record is not None:
            made.append(record.label)
            low = record.label
            at += 1
            continue
        end = next((i for i in range(at, len(present)) if i in stays), len(present))
        stop = present[end] if end < len(present) else None
        high = None if stop is None else stop.label
        floor = max((label for label in taken if high is None or label < high), default=low)
        fresh = labels_between(floor, high, end - at)
        made.extend(fresh)
        low = fresh[-1]
        at = end
    return made


Compare = Callable[[Sequence[Found], Sequence[FileRecord], ContentHash], FileChanges]


def longest_ascending(values: list[int]) -> list[int]:
    """Positions of a longest strictly ascending subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    before = [-1] * len(values)
    for at, value in enumerate(values):
        place = bisect_left(tails, value)
        before[at] = ends[place - 1] if place else -1
        if place == len(tails):
            tails.append(value)
            ends.append(at)
        else:
            tails[place], ends[place] = value, at
    chain: list[int] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def longest_in_order(labels: list[tuple[int, ...]]) -> set[int]:
    """Return the positions of a longest ascending selection of file positions."""
    if all(one < other for one, other in pairwise(labels)):  # mostly; what follows takes five times as long
        return set(range(len(labels)))
    ranks = {label: rank for rank, label in enumerate(sorted(set(labels)))}
    return set(longest_ascending([ranks[label] for label in labels]))


def comparison(strategy: str, *, by_content: bool, scoped: bool = False) -> Compare:
    """Return how a merge strategy compares files: snapshots by what is present, all others by what was delivered.

    `by_content`: records are identified by their values, and no program reads their files. `scoped`: a snapshot consists of deliveries.
    """
    if strategy != "snapshot" or scoped:
        return compare_deliveries
    return compare_contents if by_content else compare_files


def compare_deliveries(found: Sequence[Found], known: Sequence[FileRecord], content_hash: ContentHash) -> FileChanges:
    """Compare discovered files with earlier deliveries. Missing files remain in `now`, after the others."""
    by_path = {record.path: record for record in known}
    present = [by_path.get(file.name) for file in found]
    now: list[FileRecord] = []
    added, changed, grown = [], [], []
    taken = {record.stored for record in known}
    for order, (file, label) in enumerate(zip(found, labels(present, in_order(present), known), strict=True)):
        record = present[order]
        if record is None:
            now.append(stored_apart(FileRecord.new(file, content_hash(file.name), label), None, taken))
            added.append(now[-1])
        elif record.seen(file):
            now.append(record.there())
        elif _begins_with(file, record, content_hash):
            now.append(replace(record.read(file), hash=content_hash(file.name, record.hash), present=True))
            grown.extend([Part(now[-1], record.size, record.rows, order)] if file.size > record.size else [])
        else:
            now.append(replace(record.read(file), hash=content_hash(file.name, record.hash), present=True))
            changed.append(now[-1])
    here = {file.name for file in found}
    gone = [replace(record, present=False) for record in known if record.path not in here]
    return FileChanges((*now, *gone), tuple(added), tuple(changed), (), tuple(grown))


def _begins_with(file: Found, record: FileRecord, content_hash: ContentHash) -> bool:
    """Whether the file's first bytes are what was read of it."""
    return file.size >= record.size and content_hash(file.name, record.hash, record.size) == record.hash


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
"""How each strategy treats a file whose content was replaced. A snapshot compares it; `append` ends the run."""


def rewritten(strategy: str, changes: FileChanges) -> Iterator[str]:
    """Yield warnings for files whose content was replaced after they were read."""
    for record in changes.changed if strategy in REWRITTEN else ():
        yield f"{record.path} was read before and has changed: under 'merge: {strategy}' {REWRITTEN[strategy]}"


def out_of_turn(changes: FileChanges) -> list[str]:
    """Return the paths of new and grown files that precede a file read earlier, in discovery order."""
    moved = {*(record.path for record in changes.added), *(part.record.path for part in changes.grown)}
    added = {record.path for record in changes.added}
    read = [order for order, record in enumerate(changes.now) if record.present and record.rows and record.path not in added]
    return [record.path for order, record in enumerate(changes.now) if record.path in moved and read and order < read[-1]]


def is_late(changes: FileChanges) -> bool:
    """Return whether new content precedes content that was read earlier."""
    fresh = {record.path for record in (*changes.added, *changes.changed)}
    moved = fresh | {part.record.path for part in changes.grown}
    places = [order for order, record in enumerate(changes.now) if record.path in moved]
    first = min(places, default=len(changes.now))
    return any(record.present and record.rows and record.path not in fresh for record in changes.now[first + 1 :])


def is_whole_history(changes: FileChanges) -> bool:
    """Return whether every delivery can be read again."""
    overwritten = {record.path for record in changes.changed}
    return all(record.present and not record.replaced and record.path not in overwritten for record in changes.now)
