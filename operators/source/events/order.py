"""The order of deliveries: where each file comes among all that a source knows, missing ones included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from changelog.lazy_imports import F, pa
from operators.source.config import SourceConfig
from operators.source.file_changes import FileRecord
from operators.source.request import IngestRequest
from storage.engines import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def places(request: IngestRequest) -> dict[str, int]:
    """The place of each known file in file order, by the path that its records have. A missing file comes where it would be found."""
    changes, key = request.changes, _sort_key(request.config)
    ordered = [record for record in changes.now if record.present]
    descends = request.config.files.sort_order == "desc"
    for gone in sorted((record for record in changes.now if not record.present), key=key, reverse=descends):
        own = key(gone)
        before = [at for at, record in enumerate(ordered) if (key(record) > own if descends else key(record) < own)]
        ordered.insert(before[-1] + 1 if before else 0, gone)
    return {record.stored: at for at, record in enumerate(ordered)}


def _sort_key(config: SourceConfig) -> Callable[[FileRecord], tuple[int, str]]:
    """The order of files as discovery has it. The time of creation is not kept: files have the order of their modification then."""
    if config.files.sort_by in ("created", "modified"):
        return lambda record: (record.mtime_ns, record.path)
    if config.paths is not None and config.files.sort_by is None:
        listed = {path: at for at, path in enumerate(config.paths)}
        return lambda record: (listed.get(record.path, len(listed)), record.path)
    return lambda record: (0, record.path)


def known_before(request: IngestRequest) -> list[FileRecord]:
    """The files that earlier runs read."""
    added = {record.path for record in request.delivered.added}
    return [record for record in request.changes.now if record.path not in added]


def turns(request: IngestRequest, records: Sequence[FileRecord], *, by_version: bool) -> list[tuple[str, str, int]]:
    """The file, the anchor and the turn of the events of some files.

    An overwritten file is a new delivery behind all known ones; where versions decide, it keeps its place, behind its earlier content.
    """
    where = places(request)
    known = [record.stored for record in known_before(request)]
    last = max(known, key=lambda file: where[file], default=None)
    overwritten = {record.path for record in request.delivered.changed}
    made = []
    for record in records:
        again = record.path in overwritten or record.replaced
        anchor = last if again and not by_version and last is not None and record.path in overwritten else record.stored
        made.append((record.stored, anchor, request.epoch if record.path in overwritten else record.arrived if record.replaced else 0))
    return made


def with_turns(frame: DataFrame, found: Sequence[tuple[str, str, int]], engine: Engine) -> DataFrame:
    """Events with `__anchor` and `__turn`, by their files."""
    if all(file == anchor and not turn for file, anchor, turn in found):
        return frame.withColumns({"__anchor": F.col("_file"), "__turn": F.lit(0).cast("bigint")})
    files, anchors, numbers = zip(*found, strict=True)
    table = pa.table({"_file": files, "__anchor": anchors, "__turn": pa.array(numbers, pa.int64())})
    return frame.join(F.broadcast(engine.from_arrow(table)), "_file")


def with_places(frame: DataFrame, where: Mapping[str, int], engine: Engine) -> DataFrame:
    """Events with `__place`, the place of their anchors; events of unknown files come first."""
    table = pa.table({"__anchor": pa.array(list(where), pa.string()), "__place": pa.array(list(where.values()), pa.int64())})
    placed = frame.join(F.broadcast(engine.from_arrow(table)), "__anchor", "left")
    return placed.withColumn("__place", F.coalesce("__place", F.lit(-1).cast("bigint")))
