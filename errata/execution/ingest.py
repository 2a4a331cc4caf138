"""The files of a pipeline's sources: what was found, what changed, and the deltas that they lead to (DESIGN section 5, Ingest)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from changelog.arrow_algebra import standing
from changelog.frames import united, without
from changelog.lazy_imports import F, pa
from errata.core.failures import StorageFailed
from errata.plan.plan import Node, Plan
from errata.state.chunk_index import ChunkIndex, read_lists, write_lists
from errata.state.committed_node import CommittedNode
from errata.state.node_tables import folded
from errata.state.source_files import discovered
from operators.core.evaluate import Narrow, as_it_is
from operators.core.provenance import FileLabels
from operators.source.file_changes import FileChanges, FileRecord, Label

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.execution.local_copies import Copies
    from errata.execution.node_runner import NodeDelta, NodeRunner
    from operators.output.operator import Output
    from operators.source.arrivals import Arrival
    from operators.source.node import SourceNode
    from operators.source.reading import FileReader
    from operators.source.request import IngestRequest, IngestResult, ResumePoint
    from storage.state.entry import Entry


BY_PLACES, BY_VALUES, BY_TABLE = "their places in files", "the values of a primary key", "their values in a table"
"""What tells records apart."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """One source before a run: its number in keys, its files as they are now against those of the last epoch (`known`)."""

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
        """Whether records have keys of another kind than those of the last epoch (`before`: its summary of the node)."""
        return self.rebuilt and keys_of(cast("SourceNode", self.node.operator)) != keys_in(before, self.known)

    def anew(self) -> SourceFiles:
        """The same files as if none had been read before."""
        now = tuple(replace(record, rows=0) for record in self.changes.now)
        return replace(self, changes=FileChanges(now, tuple(record for record in now if record.present)))

    @property
    def reason(self) -> str | None:
        """Why the source has to be read; None where nothing changed."""
        return self.changes.reason


def look_at_sources(plan: Plan, before: Mapping[str, Any]) -> dict[str, SourceFiles]:
    """Discover every source's files and compare them with what the last epoch's ledger entry says (`before`). Raises StorageFailed."""
    numbers = _numbers(plan, before)
    return {node.name: _look(node, plan, before.get(node.name, {}), numbers[node.name]) for node in plan.of_kind("source")}


def keys_of(source: SourceNode) -> str:
    """What tells the records of a source apart, in words."""
    return BY_TABLE if source.versioned else BY_VALUES if source.keyed else BY_PLACES


def keys_in(before: Mapping[str, Any], known: Sequence[FileRecord]) -> str:
    """What told the rows of a node apart in an epoch. `before`: its summary of the node, `known`: the files that it had as a source."""
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


def _look(node: Node, plan: Plan, before: Mapping[str, Any], number: int) -> SourceFiles:
    from operators.source.file_changes import comparison
    from storage.files.discovery import content_hash

    known = FileRecord.all_of(before)
    source = cast("SourceNode", node.operator)
    if source.versioned:
        return SourceFiles(node, number, _table_of(node, plan, known), known=known)
    compare = comparison(source.config.merge.strategy, by_content=source.keyed and not source.wanted & {"source.file", "source.path"})
    found = discovered(node, plan)
    places = {file.name: file.path for file in found}
    try:
        changes = compare(found, known, lambda name, length=None: content_hash(places[name], length))
    except OSError as error:
        raise StorageFailed(f"source '{node.name}': {error.filename}: {error.strerror}", file=str(error.filename)) from error
    return SourceFiles(node, number, changes, known=known)


def _table_of(node: Node, plan: Plan, known: Sequence[FileRecord]) -> FileChanges:
    """What became of the table of a source since the last epoch. Raises StorageFailed."""
    from operators.source.diff.by_version import look
    from storage.errors import StorageError

    try:
        return look(cast("SourceNode", node.operator), plan.settings, known[0] if known else None)
    except StorageError as error:
        raise StorageFailed(f"source '{node.name}': {error}") from error


def undeclared(plan: Plan, node: Node, files: Mapping[str, Sequence[FileRecord]]) -> list[tuple[str, str]]:
    """The undeclared columns that an output writes, in order: their names in its file and their types. One that two fields have is there once for each."""
    fields = cast("Output", node.operator).fields
    return [(shown, type_) for name, type_ in arriving(plan, node, files) for shown in fields.shown(name, (name,))]


def arriving(plan: Plan, node: Node, files: Mapping[str, Sequence[FileRecord]]) -> list[tuple[str, str]]:
    """Names in the files and types of the undeclared columns that the records of sources bring to an output, in order: not those of a combine's build side."""
    names = node.operator.inputs[0].key.sources()
    return list(dict.fromkeys(pair for name in names for record in files.get(name, ()) for pair in record.undeclared))


def reshaped(plan: Plan, before: Entry | None, files: Mapping[str, Sequence[FileRecord]]) -> frozenset[str]:
    """The outputs that are written otherwise than after the epoch before though their rows may be the same: other columns come undeclared, or files to be written one for each."""
    outputs = plan.of_kind("output")
    if before is None:
        return frozenset(node.name for node in outputs)
    known = files_before(before)
    return frozenset(node.name for node in outputs if any(of(plan, node, known) != of(plan, node, files) for of in (undeclared, origins)))


def files_before(head: Entry) -> dict[str, tuple[FileRecord, ...]]:
    """The files of each source as an epoch left them."""
    return {name: FileRecord.all_of(one) for name, one in head.sources.items()}


def origins(plan: Plan, node: Node, files: Mapping[str, Sequence[FileRecord]]) -> frozenset[str]:
    """The files of sources of which an output has one each: not those of a combine's build side."""
    from storage.files.path_tokens import PathTemplate

    if not PathTemplate.parse(node.spec.config.path).by_file:
        return frozenset()
    names = node.operator.inputs[0].key.sources()
    return frozenset(record.path for name in names for record in files.get(name, ()) if record.present)


def without_files(sources: Iterable[SourceFiles]) -> Iterator[str]:
    """What is told of sources that no file matches, where that shall be warned of (`on_no_match: warn`)."""
    for one in sources:
        config = cast("SourceNode", one.node.operator).config
        if config.files.on_no_match == "warn" and config.matchers() and not any(record.present for record in one.changes.now):
            matcher = config.matchers()[0]
            yield f"source '{one.node.name}': no file matches {matcher} {getattr(config, matcher)}"


def place_of(reject: Mapping[str, Any], files: Sequence[FileRecord]) -> tuple[str, int | None] | None:
    """The file and the number of a record that a source rejected; None for other rejects. The number is None where records moved."""
    from changelog.keys.positions import parse_label

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
    from changelog.keys.positions import row_label

    known = ((one.number, record) for one in sources.values() for record in (*one.changes.removed, *one.changes.now))
    paths = {bytes([number]) + row_label(record.label): record.path for number, record in known}
    return FileLabels(paths)


def ingest(
    flow: NodeRunner,
    source: SourceFiles,
    folder: Path,
    *,
    before: Mapping[str, Any] | None,
    suppressed: int = 0,
    floors: Mapping[str, ResumePoint] | None = None,
    copies: Copies | None = None,
    warn: Callable[[str], object] = str,
) -> tuple[NodeDelta, tuple[FileRecord, ...]]:
    """Make a source's delta, keep it, and give the records of its files. `warn` is told what does not stop the run.

    `before`: what the last epoch's ledger entry says of the node, None where it is new.
    `suppressed`: how many records are rolled back; the delta tells of them as if they took part. `floors`: by path the files that are
    read from a cursor on. `copies`: what is read in place of files that are staged.
    Raises what reading raises, and InputChanged for input that the merge strategy cannot take.
    """
    from operators.source.file_changes import rewritten
    from operators.source.request import IngestRequest

    operator = cast("SourceNode", source.node.operator)
    files = operator.files(source.number, folder, copies.local if copies else None)
    stood = None if before is None else CommittedPriorRows(flow, source.node, suppressed)
    anew = before is not None and source.rekeyed(before)
    changes = source.anew().changes if anew else source.changes
    lists = read_lists(flow.tables.state(source.node.name), () if anew else source.known, flow.tables.changelog(source.node))
    trusted = {label: one.stretches for label, one in lists.items()}
    intake = IngestRequest(
        operator, files, changes, None if anew else stood, flow.engine, flow.values, source.rebuilt, floors or {}, warn, trusted, flow.epoch, flow.rejected_live(source.node.name), source.since, _arrivals(source),
    )  # fmt: skip
    _warn_of(warn, (f"source '{operator.name}': {text}" for text in rewritten(operator.config.merge.strategy, intake.delivered)))
    made = _read(intake) if stood is None or not source.rebuilt else _read_again(source, intake, stood, before or {}, anew=anew)
    delta = _accepted(_kept(flow, source.node, made), made)
    counted = _counted(flow, delta, made, files)
    counted = counted if before is None or source.rebuilt else _with_columns_that_stand(operator, counted, source.known, delta)
    _warn_of(warn, _without_records(operator, counted, changes))
    return delta, _with_lists(flow, source.node, counted, made, _unread(lists, changes))


def _read_again(source: SourceFiles, intake: IngestRequest, stood: CommittedPriorRows, before: Mapping[str, Any], *, anew: bool) -> IngestResult:
    """What a source gives that was edited, against its live rows. `anew`: its keys are others."""
    from errata.execution.reingest import read_again, replaced

    if anew:
        return replaced(stood.flow, _read(intake), stood.rows)
    return read_again(source, intake, stood, CommittedNode.of(source.node.name, before), _read)


def _warn_of(warn: Callable[[str], object], texts: Iterable[str]) -> None:
    for text in texts:
        warn(text)


def _arrivals(source: SourceFiles) -> Mapping[str, Arrival]:
    """How the files of a source arrived, where they are read again and its strategy asks for that."""
    if cast("SourceNode", source.node.operator).config.merge.strategy != "ledger":
        return {}
    from operators.source.arrivals import arrivals_in

    return arrivals_in(entry.sources[source.node.name] for entry in source.history if source.node.name in entry.sources)


def arrivals_kept(source: SourceFiles, history: Callable[[], Sequence[Entry]], files: Sequence[FileRecord]) -> dict[str, Any]:
    """What the ledger keeps of the order in which the files of a source arrived, once the runs before (`history`) are forgotten."""
    if cast("SourceNode", source.node.operator).config.merge.strategy != "ledger":
        return {}
    from operators.source.arrivals import KEY, kept

    return {KEY: kept(_arrivals(replace(source, history=history())), files)}


def _without_records(operator: SourceNode, records: Iterable[FileRecord], changes: FileChanges) -> Iterator[str]:
    """What is told of files that were read and in which no record was found, where that may be a mistake in the pipeline."""
    told, read = operator.reader().nothing_found(), _read_labels(changes)
    for record in records if told else ():
        if record.label in read and record.present and not record.rows:
            yield f"source '{operator.name}': {record.path}: {told}: it gives no records"


def _with_columns_that_stand(operator: SourceNode, records: Sequence[FileRecord], known: Sequence[FileRecord], delta: NodeDelta) -> tuple[FileRecord, ...]:
    """The files' records; with `compare` rows stand as they were read, also in undeclared columns that their file lost, and where none changed none comes."""
    if operator.config.merge.compare is None:
        return tuple(records)
    before = {record.label: record.undeclared for record in known}
    told = {record.label: before.get(record.label, record.undeclared) for record in records}
    return tuple(replace(one, undeclared=told[one.label] if delta.empty else tuple(dict.fromkeys((*told[one.label], *one.undeclared)))) for one in records)


def _accepted(delta: NodeDelta, made: IngestResult) -> NodeDelta:
    """The delta, unless what it holds must not be. Raises InputChanged."""
    if made.refuse is not None and delta.frame is not None:
        made.refuse(delta.frame)
    return delta


def _unread(lists: Mapping[Label, ChunkIndex], changes: FileChanges) -> dict[Label, ChunkIndex]:
    """The lists of the files that were not read."""
    read = _read_labels(changes)
    return {label: one for label, one in lists.items() if label not in read}


def _read_labels(changes: FileChanges) -> set[Label]:
    """The files of which something is read, by label."""
    return {record.label for record in (*changes.added, *changes.changed, *(part.record for part in changes.grown))}


def _with_lists(flow: NodeRunner, node: Node, records: Sequence[FileRecord], made: IngestResult, before: Mapping[Label, ChunkIndex]) -> tuple[FileRecord, ...]:
    """The files' records with whether their stretches are listed, once the lists are kept; `before`: those of files that were not read."""
    fresh = {record.label: ChunkIndex(record.hash, made.lists[record.label]) for record in records if record.label in made.lists}
    lists = {**{record.label: before[record.label] for record in records if record.label in before}, **fresh}
    if fresh:
        write_lists(flow.tables.state(node.name), lists, flow.epoch)
    return tuple(replace(record, listed=record.label in lists) for record in records)


@dataclass(frozen=True)
class CommittedPriorRows:
    """The rows of a source that stood after the last epoch, with those that are rolled back (`suppressed` of them) as if they took part."""

    flow: NodeRunner
    node: Node
    suppressed: int
    other: Mapping[str, str] = field(default_factory=dict)
    """Columns that the source had, which are read besides its own."""

    @cached_property
    def rows(self) -> DataFrame:
        """All of them."""
        return self.narrowed(as_it_is)

    def narrowed(self, narrow: Narrow) -> DataFrame:
        """Those that a function chooses, which sees all of them as if they took part."""
        if not self.suppressed:
            return self._shaped(self._live(narrow))
        from errata.state.suppressed_rows import is_suppressed, unmarked

        held = self._live(lambda rows: rows.where(is_suppressed())) if self.other else self._rejects().where(is_suppressed())
        return self._shaped(united(self._live(lambda rows: narrow(rows.where(~is_suppressed()))), narrow(unmarked(held))))

    def resigned(self, _record: FileRecord) -> bool:
        """They are as they stand whatever records a file has."""
        return False

    def beside(self, columns: Mapping[str, str]) -> CommittedPriorRows:
        """The same rows with columns that the source had."""
        return replace(self, other=columns)

    def _rejects(self) -> DataFrame:
        return self.flow.tables.rejects(self.flow.engine, self.node, self.flow.epoch - 1)

    def _live(self, narrow: Narrow) -> DataFrame:
        flow = self.flow
        if self.other:
            return folded(flow.engine, flow.tables.wider(self.node, self.other), flow.epoch - 1, narrow)
        return flow.tables.narrowed(flow.engine, self.node, flow.values, narrow, flow.epoch - 1)

    def near(self, ranges: Sequence[tuple[bytes, bytes]]) -> pa.Table:
        """Those whose keys lie within some ranges, on the driver, without `_epoch`."""
        from errata.state.suppressed_rows import truth_arrow

        flow = self.flow
        live = standing(flow.tables.changelog(self.node).ranges_arrow(ranges, flow.epoch - 1)).drop_columns(["_epoch"])
        return truth_arrow(live) if self.suppressed else live

    def _shaped(self, live: DataFrame) -> DataFrame:
        return live if cast("SourceNode", self.node.operator).keyed and self.node.operator.keeps_state else without(live, "_epoch")


def _read(intake: IngestRequest) -> IngestResult:
    from operators.source.diff import by_version
    from operators.source.request import strategy

    return by_version.ingest(intake) if intake.source.versioned else strategy(intake.config.merge.strategy)(intake)


def _kept(flow: NodeRunner, node: Node, made: IngestResult) -> NodeDelta:
    from operators.core.operator import Outcome

    if made.table is not None:
        return flow.keep_table(node, made.table, made.signed)
    return flow.keep_nothing(node) if made.frame is None else flow.keep(node, Outcome(made.frame, made.signed), made.bound)


def _counted(flow: NodeRunner, delta: NodeDelta, made: IngestResult, files: FileReader) -> tuple[FileRecord, ...]:
    """The files' records; to the rows of those that the engine read is added what the delta brought and took."""
    if not made.uncounted or delta.frame is None:
        return made.files
    if len(made.uncounted) == 1 and not (made.signed or made.lists):
        came = {made.uncounted[0].label: delta.net + delta.rejected}
    else:
        came = _came(flow, delta.frame, made.uncounted, files)
    return tuple(replace(record, rows=record.rows + came.get(record.label, 0)) for record in made.files)


def _came(flow: NodeRunner, rows: DataFrame, records: Sequence[FileRecord], files: FileReader) -> dict[Label, int]:
    """By how many records op rows make files longer, by label."""
    from changelog.ops import weight
    from operators.core.provenance import label_prefix

    named = "_file" in rows.columns
    group = F.col("_file") if named else label_prefix(F.col("_key"))
    counts = flow.engine.to_arrow(rows.groupBy(group.alias("file")).agg(F.sum(weight(F.col("_op"))).alias("rows"))).to_pylist()
    grew = {row["file"]: row["rows"] for row in counts}
    return {record.label: grew.get(record.stored if named else files.prefix(record), 0) for record in records}
