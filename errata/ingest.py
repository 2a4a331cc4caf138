"""The files of a pipeline's sources: what was found, what changed, and the deltas that they lead to (DESIGN section 5, Ingest)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from errata.failures import StorageFailed
from errata.plan import Node, Plan
from operators.ingest.files import FileChanges, FileRecord, compare_files
from operators.lineage import FileLabels

if TYPE_CHECKING:
    from errata.propagate import Flow, NodeDelta
    from operators.source import Source
    from storage.discovery import FileStat


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """One source before a run: its number in keys, its files as they are now against those of the last epoch."""

    node: Node
    number: int
    changes: FileChanges
    touched: bool

    def from_nothing(self) -> SourceFiles:
        """The same files, all to be read again in the places that they have."""
        now = self.changes.now
        return replace(self, changes=FileChanges(now, (), now, self.changes.removed))

    @property
    def reason(self) -> str | None:
        """Why the source has to be read; None where nothing changed."""
        counts = ((len(self.changes.added), "new"), (len(self.changes.changed), "changed"), (len(self.changes.removed), "gone"))
        parts = [f"{count} {word}" for count, word in counts if count]
        return f"files: {', '.join(parts)}" if parts else None


def look_at_sources(plan: Plan, before: Mapping[str, Any]) -> dict[str, SourceFiles]:
    """Discover every source's files and compare them with what the last epoch's ledger entry says (`before`). Raises StorageFailed."""
    numbers = _numbers(plan, before)
    return {node.name: _look(node, plan, before.get(node.name, {}), numbers[node.name]) for node in plan.of_kind("source")}


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
    from storage.discovery import content_hash

    found = discovered(node, plan)
    folder = plan.settings.folder
    known = [FileRecord.of(entry) for entry in before.get("files", ())]
    try:
        changes = compare_files(found, known, lambda name: content_hash(folder / name))
    except OSError as error:
        raise StorageFailed(f"source '{node.name}': {error.filename}: {error.strerror}") from error
    return SourceFiles(node, number, changes, touched=tuple(known) != changes.now)


def discovered(node: Node, plan: Plan) -> Sequence[FileStat]:
    """The files of a source in order. Raises StorageFailed where they are not there."""
    from storage.discovery import FileQuery, discover
    from storage.formats import FormatError

    config = cast("Source", node.operator).config
    files = config.files
    query = FileQuery(
        config.path, config.glob, config.regex, None if config.paths is None else tuple(config.paths), tuple(config.exclude),
        config.modified_after, config.modified_before, config.min_size, config.max_size,
        files.sort_by, files.sort_order, files.take_first, files.take_last, files.recursive, files.on_no_match,
    )  # fmt: skip
    try:
        return discover(query, plan.settings.folder, allow_absolute=plan.settings.allow_absolute_paths)
    except FormatError as error:
        raise StorageFailed(f"source '{node.name}': {error}") from error


def labels_of(sources: Mapping[str, SourceFiles]) -> FileLabels:
    """The paths of all present files by the first bytes of the keys of their records."""
    from changelog.labels import row_label

    paths = {bytes([one.number]) + row_label(record.label): record.path for one in sources.values() for record in one.changes.now}
    return FileLabels(paths)


def ingest(flow: Flow, source: SourceFiles, folder: Path, *, stood: bool) -> tuple[NodeDelta, tuple[FileRecord, ...]]:
    """Make a source's delta, keep it, and give the records of its files. Raises StorageFailed for input that cannot be read."""
    from operators.ingest import keyed, unkeyed
    from operators.ingest.reading import FileReader

    operator = cast("Source", source.node.operator)
    files = FileReader(operator.reader(), operator.shape, source.number, folder)
    live = None
    if stood:
        has_negatives = flow.negatives.get(source.node.name, True)
        live = flow.tables.live(flow.engine, source.node, flow.values, at=flow.epoch - 1, has_negatives=has_negatives).drop("_epoch")
    way = keyed if operator.keyed else unkeyed
    made = way.ingest(files, source.changes, live, flow.engine, operator.config)
    if made.table is not None:
        return flow.keep_table(source.node, made.table, made.signed), made.files
    from operators.base import Outcome

    if made.frame is None:
        return flow.keep_nothing(source.node), made.files
    delta = flow.keep(source.node, Outcome(made.frame, made.signed), made.bound)
    return delta, _counted(flow, source, made.files, made.uncounted, files)


def _counted(
    flow: Flow, source: SourceFiles, now: tuple[FileRecord, ...], uncounted: tuple[FileRecord, ...], files: Any
) -> tuple[FileRecord, ...]:
    """The records with the rows of files that the engine read, from what was just written."""
    if not uncounted:
        return now
    from pyspark.sql import functions as F

    from operators.lineage import label_prefix

    frame = flow.tables.changelog(source.node).read(flow.engine, epochs=(flow.epoch, flow.epoch)).where(F.col("_op").isin(0, 3))
    group = F.col("_file") if "_file" in frame.columns else label_prefix(F.col("_key"))
    counts = frame.groupBy(group.alias("file")).agg(F.count("*").alias("rows"), F.count("_error").alias("bad"))
    found = {_file_key(row["file"]): row for row in flow.engine.to_arrow(counts).to_pylist()}
    by_label = {record.label: record for record in now}
    for record in uncounted:
        own = found.get(record.path) or found.get(files.prefix(record)) or {"rows": 0, "bad": 0}
        by_label[record.label] = replace(by_label[record.label], rows=own["rows"], rejected=own["bad"])
    return tuple(by_label.values())


def _file_key(value: Any) -> Any:
    return value if isinstance(value, str) else bytes(value)
