"""What became of a source's files since the last epoch: kept, touched, changed, added, removed, moved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from changelog.labels import labels_between
from operators.ingest.align import longest_in_order

Label = tuple[int, ...]


class Found(Protocol):
    """A file that discovery found."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def mtime_ns(self) -> int: ...


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a source as an epoch left it, kept in the ledger.

    `path` as discovery gave it, `label` its place among the source's files, `rows` its records (rejected ones too), `dense`
    whether record n has label n, `undeclared` the columns beyond the schema with their types.
    """

    path: str
    size: int
    mtime_ns: int
    hash: str
    label: Label
    rows: int = 0
    rejected: int = 0
    dense: bool = True
    undeclared: tuple[tuple[str, str], ...] = ()

    def json(self) -> dict[str, Any]:
        """The record as the ledger stores it."""
        return asdict(self)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "FileRecord":
        """A record out of the ledger."""
        undeclared = tuple((name, type_) for name, type_ in value["undeclared"])
        return cls(**{**value, "label": tuple(value["label"]), "undeclared": undeclared})


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The files of a source in discovery order with their labels, and what is to be done.

    `now` has every present file (of added and changed ones `rows` is still to be counted); `added` and `changed` are to be
    read; `removed` are records of versions whose rows go; a file that moved is removed and added.
    """

    now: tuple[FileRecord, ...]
    added: tuple[FileRecord, ...]
    changed: tuple[FileRecord, ...]
    removed: tuple[FileRecord, ...]

    @property
    def any(self) -> bool:
        """Whether rows come or go."""
        return bool(self.added or self.changed or self.removed)


def compare_files(found: Sequence[Found], known: Sequence[FileRecord], content_hash: Callable[[str], str]) -> FileChanges:
    """Compare what discovery found with the last epoch. A file is unchanged by size and mtime, else by its hash."""
    by_path = {record.path: record for record in known}
    present = [by_path.get(file.name) for file in found]
    kept_order = longest_in_order([record.label for record in present if record is not None])
    positions = [at for at, record in enumerate(present) if record is not None]
    stays = {positions[at] for at in kept_order}
    now: list[FileRecord] = []
    added, changed = [], []
    for at, (file, label) in enumerate(zip(found, _labels(present, stays), strict=True)):
        record = present[at]
        if record is None or at not in stays:
            fresh = FileRecord(file.name, file.size, file.mtime_ns, content_hash(file.name), label)
            now.append(fresh)
            added.append(fresh)
        elif (record.size, record.mtime_ns) == (file.size, file.mtime_ns):
            now.append(record)
        elif (digest := content_hash(file.name)) == record.hash:
            now.append(replace(record, mtime_ns=file.mtime_ns))
        else:
            fresh = replace(record, size=file.size, mtime_ns=file.mtime_ns, hash=digest)
            now.append(fresh)
            changed.append(fresh)
    kept_labels = {record.label for record in now} - {record.label for record in added}
    removed = tuple(record for record in known if record.label not in kept_labels)
    return FileChanges(tuple(now), tuple(added), tuple(changed), removed)


def _labels(present: Sequence[FileRecord | None], stays: set[int]) -> list[Label]:
    """A label for each found file: its own where it stays, new ones between those of its neighbours."""
    labels: list[Label] = []
    low: Label | None = None
    at = 0
    while at < len(present):
        record = present[at]
        if at in stays and record is not None:
            labels.append(record.label)
            low = record.label
            at += 1
            continue
        end = next((i for i in range(at, len(present)) if i in stays), len(present))
        stop = present[end] if end < len(present) else None
        fresh = labels_between(low, None if stop is None else stop.label, end - at)
        labels.extend(fresh)
        low = fresh[-1]
        at = end
    return labels
