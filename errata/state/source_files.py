"""The files of sources, compared with the last epoch, and the undeclared columns that they bring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

from changelog.keys.positions import parse_label, row_label
from errata.core.failures import StorageFailed
from errata.plan.plan import Node, Plan
from errata.plan.source_inputs import discovered
from operators.core.provenance import FileLabels
from operators.output.operator import Output
from operators.source.file_changes import Compare, FileChanges, FileRecord, comparison
from operators.source.node import SourceNode
from storage.errors import StorageError
from storage.files.path_tokens import PathTemplate
from storage.files.salted_hashes import salted_hash
from storage.files.stores import read_ahead
from storage.state.entry import Entry
from storage.stores.client import Changed

BY_PLACES, BY_VALUES, BY_TABLE = "their places in files", "the values of a primary key", "their values in a table"
"""The parts of records that their keys are made of."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """One source before a run: its number in keys, and its files now against the last epoch's (`known`)."""

    node: Node
    number: int
    changes: FileChanges
    rebuilt: bool = False
    known: tuple[FileRecord, ...] = ()
    since: FileChanges | None = None
    """Of files that are all read again: what had become of them."""
    history: Sequence[Entry] = ()
    """The runs before, where files are read again."""

    def from_nothing(self, history: Sequence[Entry]) -> SourceFiles:
        """The same files, all that are there to be read again in the places that they have."""
        return replace(self, changes=self.changes.from_nothing(), rebuilt=True, since=self.changes, history=history)

    def rekeyed(self, before: Mapping[str, Any]) -> bool:
        """Whether records have other keys than in the last epoch (`before`: its summary of the node)."""
        return self.rebuilt and keys_of(cast("SourceNode", self.node.operator)) != keys_in(before, self.known)

    def anew(self) -> SourceFiles:
        """The same files as if none had been read before."""
        now = tuple(replace(record, rows=0) for record in self.changes.now)
        return replace(self, changes=FileChanges(now, tuple(record for record in now if record.present)))

    @property
    def reason(self) -> str | None:
        """Why the source has to be read; None where nothing changed."""
        return self.changes.reason


def look_at_sources(plan: Plan, before: Mapping[str, Any], answers: Mapping[str, FileChanges] = MappingProxyType({})) -> dict[str, SourceFiles]:
    """Discover every source's files and compare them with what the last epoch's ledger entry says (`before`). Raises StorageFailed.

    `answers`: what became of the answers of databases; of others nothing is known, so that they count as unchanged.
    """
    numbers = _numbers(plan, before)
    return {node.name: _look(node, plan, before.get(node.name, {}), numbers[node.name], answers) for node in plan.of_kind("source")}


def keys_of(source: SourceNode) -> str:
    """The part of the records that the keys of a source are made of, in words."""
    return BY_TABLE if source.versioned else BY_VALUES if source.keyed else BY_PLACES


def keys_in(before: Mapping[str, Any], known: Sequence[FileRecord]) -> str:
    """How the keys of a node's rows were made in an epoch. `before`: its summary of the node, `known`: the files that it had as a source."""
    if before["type"] != "source":
        return f"the keys of a node of type {before['type']}"
    if any(record.version is not None for record in known):
        return BY_TABLE
    return BY_VALUES if any(name == "_file" for name, _ in before["hidden"]) else BY_PLACES


def files_left(plan: Plan, head: Entry) -> dict[str, SourceFiles]:
    """Every source's files as the last epoch left them, whatever became of them since; none of a source that it does not know."""
    numbers = _numbers(plan, head.sources)
    found = {}
    for node in plan.of_kind("source"):
        records = FileRecord.all_of(head.sources.get(node.name, {}))
        found[node.name] = SourceFiles(node, numbers[node.name], FileChanges(records))
    return found


def _numbers(plan: Plan, before: Mapping[str, Any]) -> dict[str, int]:
    """The first key byte of each source; it stays the same for the life of the state."""
    numbers = {name: int(entry["number"]) for name, entry in before.items()}
    following = max(numbers.values(), default=-1) + 1
    for node in plan.of_kind("source"):
        if node.name not in numbers:
            numbers[node.name] = following
            following += 1
    return numbers


def _look(node: Node, plan: Plan, before: Mapping[str, Any], number: int, answers: Mapping[str, FileChanges]) -> SourceFiles:
    known = FileRecord.all_of(before)
    source = cast("SourceNode", node.operator)
    if source.config.asks:
        return SourceFiles(node, number, answers.get(node.name, FileChanges(known)), known=known)
    if source.versioned:
        return SourceFiles(node, number, _table_of(node, plan, known), known=known)
    by_content = source.keyed and not source.wanted & {"source.file", "source.path"}
    compare = comparison(source.config.merge.strategy, by_content=by_content, scoped=source.config.merge.scope is not None)
    try:
        changes = _changes(node, plan, known, compare)
    except Changed:  # an object was replaced while it was read: it is read anew once
        changes = _changes(node, plan, known, compare, last=True)
    return SourceFiles(node, number, changes, known=known)


def _changes(node: Node, plan: Plan, known: Sequence[FileRecord], compare: Compare, *, last: bool = False) -> FileChanges:
    """The changes of the files of a source. Raises StorageFailed, and, unless it is the `last` try, Changed for an object that was replaced meanwhile."""
    found, source = discovered(node, plan), cast("SourceNode", node.operator)
    if (dataset := plan.datasets.get(node.name)) is not None:
        dataset.refuse_other_history(known, found)
        return compare(found, known, lambda name, _like="", _length=None: dataset.digest(plan.settings.places / name))
    given = source.given
    places = {file.name: file for file in found}
    seen = {record.path: record for record in known}
    read_ahead(file.path for file in found if file.name not in seen or not seen[file.name].seen(file))
    try:
        if given is not None:
            return compare(found, known, lambda _name, _like="", _length=None: given.digest)
        return compare(found, known, lambda name, like="", length=None: salted_hash(places[name].path, like, length))
    except OSError as error:
        raise StorageFailed(f"source '{node.name}': {error.filename}: {error.strerror}", file=str(error.filename)) from error
    except StorageError as error:
        if isinstance(error, Changed) and not last:
            raise
        raise StorageFailed(f"source '{node.name}': {error}") from error


def _table_of(node: Node, plan: Plan, known: Sequence[FileRecord]) -> FileChanges:
    """The changes of the table of a source since the last epoch. Raises StorageFailed."""
    from operators.source.diff.by_version import look  # only sources that are tables need it

    try:
        return look(cast("SourceNode", node.operator), plan.settings, known[0] if known else None)
    except StorageError as error:
        raise StorageFailed(f"source '{node.name}': {error}") from error


def undeclared(plan: Plan, node: Node, files: Mapping[str, Sequence[FileRecord]]) -> list[tuple[str, str]]:
    """The undeclared columns that an output writes, in order: their names in its file and their types. One that two fields have is there once for each."""
    fields = cast("Output", node.operator).fields
    return [(shown, type_) for name, type_ in arriving(plan, node, files) for shown in fields.shown(name, (name,))]


def arriving(plan: Plan, node: Node, files: Mapping[str, Sequence[FileRecord]]) -> list[tuple[str, str]]:
    """Names and types of the undeclared columns that sources bring to an output, in order; build sides of combines bring none."""
    names = node.operator.inputs[0].key.sources()
    return list(dict.fromkeys(pair for name in names for record in files.get(name, ()) for pair in record.undeclared))


def reshaped(plan: Plan, before: Entry | None, files: Mapping[str, Sequence[FileRecord]]) -> frozenset[str]:
    """The outputs that are written although their rows may be the same: undeclared columns changed, or files that are written one each."""
    outputs = plan.of_kind("output")
    if before is None:
        return frozenset(node.name for node in outputs)
    known = files_before(before)
    return frozenset(node.name for node in outputs if any(of(plan, node, known) != of(plan, node, files) for of in (undeclared, origins)))


def files_before(head: Entry) -> dict[str, tuple[FileRecord, ...]]:
    """The files of each source as an epoch left them."""
    return {name: FileRecord.all_of(one) for name, one in head.sources.items()}


def origins(plan: Plan, node: Node, files: Mapping[str, Sequence[FileRecord]]) -> frozenset[str]:
    """The source files that an output has one file each for; build sides of combines have none."""
    if cast("Output", node.operator).in_database or not PathTemplate.parse(node.spec.config.path).by_file:
        return frozenset()
    names = node.operator.inputs[0].key.sources()
    return frozenset(record.path for name in names for record in files.get(name, ()) if record.present)


def without_files(sources: Iterable[SourceFiles]) -> Iterator[str]:
    """Warnings for sources that no file matches (`on_no_match: warn`)."""
    for one in sources:
        config = cast("SourceNode", one.node.operator).config
        if config.files.on_no_match == "warn" and config.matchers() and not any(record.present for record in one.changes.now):
            matcher = config.matchers()[0]
            yield f"source '{one.node.name}': no file matches {matcher} {getattr(config, matcher)}"


def place_of(reject: Mapping[str, Any], files: Sequence[FileRecord]) -> tuple[str, int | None] | None:
    """The file and the number of a record that a source rejected; None for other rejects. The number is None where records moved."""
    if not files:
        return None
    file, row = reject.get("_file"), reject.get("_row")
    if file is not None:
        file = next((one.path for one in files if one.stored == file), file)
    else:
        label, behind = parse_label(reject["_key"], 1)
        record = next((one for one in files if one.label == label), None)
        if record is None:
            return None
        file, row = record.path, parse_label(reject["_key"], behind)[0][0] if record.dense else None
    return file, row


def labels_of(sources: Mapping[str, SourceFiles]) -> FileLabels:
    """The paths of all present files, and of those whose records go now, by the first bytes of the keys of their records."""
    known = ((one.number, record) for one in sources.values() for record in (*one.changes.removed, *one.changes.now))
    paths = {bytes([number]) + row_label(record.label): record.path for number, record in known}
    return FileLabels(paths)
