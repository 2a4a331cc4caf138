"""The delta of a source: reads what changed in its files, or all of them after an edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from changelog.lazy_imports import F
from changelog.ops import weight
from errata.core.failures import StorageFailed
from errata.erasure.kept_out import KeptOut
from errata.erasure.nameless import nameless_keys
from errata.erasure.unread_records import Layout, LayoutOf
from errata.execution.epoch import Epoch
from errata.execution.guards import MAX_RETRACT_SHARE, guard, guard_scopes
from errata.execution.local_copies import Copies
from errata.execution.manual_corrections import undone_corrections
from errata.execution.prior_rows import CommittedPriorRows
from errata.execution.reingest import read_again, replaced
from errata.plan.correlation import PriorRollback
from errata.plan.plan import Node
from errata.rollback.cursors import resume_points
from errata.state.chunk_index import ChunkIndex, read_lists, write_lists
from errata.state.committed_node import CommittedNode
from errata.state.node_writer import NodeWriter
from errata.state.run_state import Ingested, NodeDelta, RunState
from errata.state.source_files import SourceFiles
from errata.state.source_memory import SourceMemory
from operators.core.delta import Delta
from operators.core.provenance import label_prefix
from operators.source.arrivals import KEY, Arrival, arrivals_in, kept
from operators.source.diff import by_answer, by_version
from operators.source.file_changes import FileChanges, FileRecord, Label, rewritten
from operators.source.node import SourceNode
from operators.source.reading import FileReader
from operators.source.request import IngestRequest, IngestResult, InputChanged, ResumePoint, strategy
from storage.errors import engine_failures
from storage.formats import FormatError, InputError
from storage.state.entry import Entry
from storage.stores.places import Places

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MANY: Final = 2
"""A source of fewer files is judged by the guard alone."""


def ingest_files(epoch: Epoch, writer: NodeWriter, source: SourceFiles, copies: Copies) -> Ingested:
    """Store what is new of a source's files.

    Args:
        epoch: The epoch that the rows belong to.
        writer: Stores them.
        source: The source and its files.
        copies: Local copies that are read in place of staged files.

    Raises:
        Failure: A file cannot be read, or the guard stops the run.
    """
    try:
        return _ingest_files(epoch, writer, source, copies)
    except (FormatError, InputChanged, OSError) as error:
        raise StorageFailed(f"source '{source.node.name}': {error}", help=getattr(error, "help", ""), file=_named_file(str(error), source)) from error
    except engine_failures() as error:
        text = InputError.found_in(str(error))
        if text is None:
            raise
        raise StorageFailed(f"source '{source.node.name}': {text}", file=_named_file(text, source)) from error


def _ingest_files(epoch: Epoch, writer: NodeWriter, source: SourceFiles, copies: Copies) -> Ingested:
    run, head, name = writer.run, epoch.head, source.node.name
    known, suppressed = head.plan.get(name) if head else None, PriorRollback.of(head).suppressed.get(name, 0)
    before = run.live_rows.get(name, 0) - run.rejected_live(name) + suppressed
    points = {}
    if head is not None and known is not None and epoch.options.from_cursors and not source.rebuilt:
        points = resume_points(head, epoch.state, run, source)

    def judge(delta: NodeDelta, made: IngestResult) -> None:
        if made.standing is None:
            guard(epoch.options, source.node, delta, before)
        elif delta.ops.get("-R"):
            guard_scopes(epoch.options, source.node, delta, made.standing())

    out = KeptOut.of(epoch.plan, epoch.state, epoch.prior, source.node)
    if out is not None and out.lost:
        epoch.warn(f"source '{name}': erased records were kept out by {', '.join(out.lost)}, which it has no more: they may come back")
    delta, records = ingest(
        writer, source, epoch.plan.settings.places, before=known, suppressed=suppressed, floors=points, copies=copies, warn=epoch.warn, note=epoch.note, judge=judge, kept_out=out,
        nameless=nameless_keys(head, name),
    )  # fmt: skip
    if not source.rebuilt:
        _warn_of(epoch.warn, undone_corrections(run, source.node, delta, epoch.history))
    return delta, records


def _named_file(text: str, source: SourceFiles) -> str:
    """The file of a source that a message names; empty where it names none."""
    named = [record.path for record in source.changes.now if f"{record.path}:" in text]
    return max(named, key=len, default="")


def ingest(
    writer: NodeWriter,
    source: SourceFiles,
    places: Places,
    *,
    before: Mapping[str, Any] | None,
    suppressed: int = 0,
    floors: Mapping[str, ResumePoint] | None = None,
    copies: Copies | None = None,
    warn: Callable[[str], object] = str,
    note: Callable[[str], object] = str,
    judge: Callable[[NodeDelta, IngestResult], None] | None = None,
    kept_out: KeptOut | None = None,
    nameless: frozenset[bytes] = frozenset(),
) -> tuple[NodeDelta, tuple[FileRecord, ...]]:
    """Store a source's delta.

    Args:
        writer: Stores the rows.
        source: The source and its files.
        places: Where paths of the pipeline lead.
        before: The last ledger entry's summary of the node; None where the node is new.
        suppressed: The number of suppressed records; the delta treats them as if they took part.
        floors: By path the files that are read from a cursor on.
        copies: Local copies that are read in place of staged files.
        warn: Takes what does not stop the run.
        note: Takes what is no fault.
        judge: Stops a run that takes too much back.
        kept_out: Erased records that stay out.
        nameless: Keys of rows that no file has.

    Returns:
        The delta, and the records of the source's files after it.

    Raises:
        InputChanged: The merge strategy cannot take the input. Errors of reading pass too.
    """
    run, operator = writer.run, cast("SourceNode", source.node.operator)
    files = operator.files(source.number, places, copies.local if copies else None)
    prior = None if before is None else CommittedPriorRows(run, source.node, suppressed, nameless=nameless)
    anew = before is not None and source.rekeyed(before)
    changes = source.anew().changes if anew else source.changes
    lists = read_lists(run.tables.state(source.node.name), () if anew else source.known, run.tables.changelog(source.node))
    intake = IngestRequest(
        operator, files, changes, None if anew else prior, run.engine, run.values, source.rebuilt, floors or {}, warn, {label: one.chunks for label, one in lists.items()}, run.epoch,
        run.rejected_live(source.node.name), source.since, _arrivals(source), SourceMemory(run, source.node) if operator.has_memory else None,
    )  # fmt: skip
    _warn_of(warn, _overwritten(intake))
    made = _read(intake) if prior is None or not source.rebuilt else _read_again(source, intake, prior, before or {}, anew=anew)
    made, out = (made, None) if kept_out is None else kept_out.left_out(made, _layouts(files, changes), warn)
    delta = _accepted(_store(writer, source.node, made), made)
    if judge is not None:
        judge(delta, made)
    counted = _counted(run, delta, made, files, out)
    counted = _with_columns_that_stand(source, counted, delta, first=before is None)
    _warn_of(warn, _shortened(source, counted))
    _warn_of(warn, _without_records(operator, counted, changes))
    _warn_of(warn, _remarks(operator, files.remarks, counted, changes))
    _warn_of(note, _remarks(operator, files.left_out, counted, changes))
    return delta, _with_lists(run, source.node, counted, made, _unread(lists, changes))


def _read_again(source: SourceFiles, intake: IngestRequest, prior: CommittedPriorRows, before: Mapping[str, Any], *, anew: bool) -> IngestResult:
    """The delta of a source that was edited, against its live rows. `anew`: its keys are others."""
    if anew:
        return replaced(prior.run, _read(intake), prior.rows)
    return read_again(source, intake, prior, CommittedNode.of(source.node.name, before), _read)


def _overwritten(intake: IngestRequest) -> Iterator[str]:
    """Warnings for files that were written anew, where their strategy does not expect that."""
    config = intake.config
    if not config.asks and config.merge.version_field is None:
        for text in rewritten(config.merge.strategy, intake.delivered):
            yield f"source '{config.name}': {text}"


def _warn_of(warn: Callable[[str], object], texts: Iterable[str]) -> None:
    for text in texts:
        warn(text)


def _arrivals(source: SourceFiles) -> Mapping[str, Arrival]:
    """How the files of a source arrived, where they are read again and its strategy asks for that."""
    if cast("SourceNode", source.node.operator).config.merge.strategy != "ledger":
        return {}

    return arrivals_in(entry.sources[source.node.name] for entry in source.history if source.node.name in entry.sources)


def arrivals_kept(source: SourceFiles, history: Callable[[], Sequence[Entry]], files: Sequence[FileRecord]) -> dict[str, Any]:
    """The order in which the files of a source arrived, for the ledger, once the runs before (`history`) are forgotten."""
    if cast("SourceNode", source.node.operator).config.merge.strategy != "ledger":
        return {}

    return {KEY: kept(_arrivals(replace(source, history=history())), files)}


def _shortened(source: SourceFiles, records: Sequence[FileRecord]) -> Iterator[str]:
    """Warnings for files that lost most of their records: the guard, which judges the source as a whole, may not see it."""
    if cast("SourceNode", source.node.operator).config.merge.strategy != "snapshot" or len(records) < MANY:
        return
    before = {record.label: record.rows for record in source.known}
    for record in records:
        rows = before.get(record.label, 0)
        if record.present and rows - record.rows > MAX_RETRACT_SHARE * rows:
            has = f"{record.rows:,} record{'' if record.rows == 1 else 's'}" if record.rows else "no records"
            yield f"source '{source.node.name}': {record.path} has {has}, and had {rows:,}: if it was delivered in part, deliver it again"


def _without_records(operator: SourceNode, records: Iterable[FileRecord], changes: FileChanges) -> Iterator[str]:
    """Warnings for files that contained no records, where that may be a mistake in the pipeline."""
    remark, read = operator.reader().nothing_found(), _read_labels(changes)
    for record in records if remark else ():
        if record.label in read and record.present and not record.rows:
            yield f"source '{operator.name}': {record.path}: {remark}: it gives no records"


def _remarks(operator: SourceNode, texts_of: Callable[[FileRecord], Sequence[str]], records: Iterable[FileRecord], changes: FileChanges) -> Iterator[str]:
    """Texts of the format on the files that were read."""
    read = _read_labels(changes) if operator.reader().tells else set()
    for record in records:
        if record.label in read and record.present:
            yield from (f"source '{operator.name}': {record.path}: {text}" for text in texts_of(record))


def _layouts(files: FileReader, changes: FileChanges) -> LayoutOf:
    """Gives how a file of the source has its records as cells; a file is opened when it is first asked for."""
    records = {record.path: record for record in changes.now if record.present} if files.reader.delimited else {}

    @cache
    def layout(path: str) -> Layout | None:
        return Layout(files.cell_order(records[path]), *files.reader.separators) if path in records else None

    return layout


def _with_columns_that_stand(source: SourceFiles, records: Sequence[FileRecord], delta: NodeDelta, *, first: bool) -> tuple[FileRecord, ...]:
    """The files' records; with `compare` rows stand as they were read, also in undeclared columns that their file lost, and where none changed none comes."""
    if first or source.rebuilt or cast("SourceNode", source.node.operator).config.merge.compare is None:
        return tuple(records)
    before = {record.label: record.undeclared for record in source.known}
    columns = {record.label: before.get(record.label, record.undeclared) for record in records}
    return tuple(replace(one, undeclared=columns[one.label] if delta.empty else tuple(dict.fromkeys((*columns[one.label], *one.undeclared)))) for one in records)


def _accepted(delta: NodeDelta, made: IngestResult) -> NodeDelta:
    """The delta, unless what it holds must not be. Raises InputChanged."""
    if made.refuse is not None and delta.rows is not None:
        made.refuse(delta.rows.as_frame())
    return delta


def _unread(lists: Mapping[Label, ChunkIndex], changes: FileChanges) -> dict[Label, ChunkIndex]:
    """The lists of the files that were not read."""
    read = _read_labels(changes)
    return {label: one for label, one in lists.items() if label not in read}


def _read_labels(changes: FileChanges) -> set[Label]:
    """The labels of the files that are read."""
    return {record.label for record in (*changes.added, *changes.changed, *(part.record for part in changes.grown))}


def _with_lists(run: RunState, node: Node, records: Sequence[FileRecord], made: IngestResult, before: Mapping[Label, ChunkIndex]) -> tuple[FileRecord, ...]:
    """The files' records, marked where their chunks are indexed, once the indexes are stored. `before`: the indexes of unread files."""
    fresh = {record.label: ChunkIndex(record.hash, made.lists[record.label]) for record in records if record.label in made.lists}
    lists = {**{record.label: before[record.label] for record in records if record.label in before}, **fresh}
    if fresh:
        write_lists(run.tables.state(node.name), lists, run.epoch)
    return tuple(record.in_lists(record.label in lists) for record in records)


def _read(intake: IngestRequest) -> IngestResult:
    if intake.config.asks:
        return by_answer.ingest(intake)
    return by_version.ingest(intake) if intake.source.versioned else strategy(intake.config.merge.strategy)(intake)


def _store(writer: NodeWriter, node: Node, made: IngestResult) -> NodeDelta:
    if made.rows is None:
        return writer.keep_nothing(node)
    return writer.keep_rows(node, made.rows, made.signed) if made.rows.are_here else writer.keep(node, Delta(made.rows, made.signed, apart=made.apart), made.bound)


def _counted(run: RunState, delta: NodeDelta, made: IngestResult, files: FileReader, out: pa.Table | None) -> tuple[FileRecord, ...]:
    """The files' records; the engine's delta is added to the row counts of the files that it read. `out`: op rows that were left out of it."""
    if not made.uncounted or (delta.rows is None and out is None):
        return made.files
    if len(made.uncounted) == 1 and not (made.signed or made.lists):
        came = {made.uncounted[0].label: delta.net + delta.rejected + (0 if out is None else out.num_rows)}
    else:
        came = Counter() if delta.rows is None else Counter(_came(run, delta.rows.as_frame(), made.uncounted, files))
        came.update({} if out is None else _came(run, run.engine.from_arrow(out), made.uncounted, files))
    return tuple(replace(record, rows=record.rows + came.get(record.label, 0)) for record in made.files)


def _came(run: RunState, rows: DataFrame, records: Sequence[FileRecord], files: FileReader) -> dict[Label, int]:
    """By how many records op rows make files longer, by label."""
    named = "_file" in rows.columns
    group = F.col("_file") if named else label_prefix(F.col("_key"))
    counts = run.engine.to_arrow(rows.groupBy(group.alias("file")).agg(F.sum(weight(F.col("_op"))).alias("rows"))).to_pylist()
    grew = {row["file"]: row["rows"] for row in counts}
    return {record.label: grew.get(record.stored if named else files.prefix(record), 0) for record in records}
