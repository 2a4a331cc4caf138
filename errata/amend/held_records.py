"""The records of present inputs that an erasure is about: a later run would bring them back.

Inputs are read as a run reads them, so that numbers, short texts and quoted ones are found too: files, what a service or a server answers now, and the answers of
databases. Values come to the driver of found records only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from changelog.columns import column
from changelog.frames import united
from changelog.lazy_imports import F
from errata.amend.matched_records import Meant
from errata.core.failures import StorageFailed
from errata.erasure.kept_out import hash_of
from errata.erasure.search import Search
from errata.execution.epoch import Epoch
from errata.execution.rest_sources import fetch_services
from errata.execution.sql_sources import ask_databases, forget
from errata.plan.plan import Node, Plan
from errata.plan.source_inputs import asking, discovered
from errata.state.run_state import RunState
from operators.core.provenance import label_prefix
from operators.source.diff.by_answer import AnswerRows
from operators.source.diff.by_version import TableRequest, look
from operators.source.file_changes import FileChanges, FileRecord, whole
from operators.source.node import SourceNode
from operators.source.request import IngestRequest, InputChanged
from storage.errors import StorageError, engine_failures
from storage.files.errors import NothingFound
from storage.files.stores import store_of
from storage.formats import FormatError, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from operators.source.answers import AnswerChanges

MOST_LOOKED_AT = 256 << 20
"""Bytes of a file whose lines are looked at; records of a larger one are named by their numbers."""


def present_names(node: Node, plan: Plan) -> Sequence[str]:
    """The names of the files that a source finds now; none where they cannot be looked for."""
    try:
        return [file.name for file in discovered(node, plan)]
    except StorageFailed:  # what reads the files says so
        return []


@contextmanager
def answered(epoch: Epoch) -> Iterator[Mapping[str, AnswerChanges]]:
    """The present answers of databases by source, within the body of a `with`; copies of services and of datasets on servers are brought up to date. Raises StorageFailed."""
    plan = epoch.plan
    fetch_services(plan, epoch.warn)
    for one in plan.datasets.values():
        one.fetch()
    if not asking(plan):
        yield {}
        return
    answers = ask_databases(plan, None)
    try:
        yield answers
    finally:
        for answer in answers.values():
            forget(answer.spool)


@dataclass(frozen=True, slots=True)
class HeldRecords:
    """The erased records that a source's present input has.

    Attributes:
        run: The epoch of the erasure.
        meant: The source, and what is erased of it.
        erased: The op rows of its erased records; None where it has none.
        names: The columns that name the records, in each way of naming them.
        search: The texts of the erased records.
        answers: What databases answer, by source.
    """

    run: RunState
    meant: Meant
    erased: DataFrame | None
    names: Sequence[Sequence[str]]
    search: Search
    answers: Mapping[str, AnswerChanges] = field(default_factory=dict)

    @property
    def node(self) -> Node:
        """The source."""
        return self.meant.node

    def places(self) -> Iterator[str]:
        """The lines of files with erased texts, or the numbers of their records where these say more; of a table or an answer its name. Raises StorageFailed."""
        source = cast("SourceNode", self.node.operator)
        try:
            records, changes = self._files(source)
            found = self._records(source, changes)
        except (FormatError, InputChanged, OSError, StorageError) as error:
            raise StorageFailed(f"source '{self.node.name}': {error}") from error
        except engine_failures() as error:
            text = InputError.found_in(str(error))
            if text is None:
                raise
            raise StorageFailed(f"source '{self.node.name}': {text}") from error
        for record in records:
            numbers = found.get(record.path, [])
            yield from self._places_in(record, numbers)

    def _files(self, source: SourceNode) -> tuple[Sequence[FileRecord], FileChanges]:
        if source.config.asks:
            answer = self.answers[self.node.name]
            return answer.now, answer
        if source.versioned:
            changes: FileChanges = look(source, self.run.plan.settings, None)
            return changes.now, changes
        try:
            files = discovered(self.node, self.run.plan)
        except StorageFailed as failure:
            if source.config.paths is not None or not isinstance(failure.__cause__, NothingFound):
                raise
            return (), FileChanges(())  # nothing can come back
        now = tuple(FileRecord.new(file, "", (at,)) for at, file in enumerate(files, 1))
        return now, FileChanges(now, now)

    def _records(self, source: SourceNode, changes: FileChanges) -> Mapping[str, Sequence[int | None]]:
        """The numbers of the found records by the paths of their files; None for rows that have none."""
        if not changes.now:
            return {}
        files = source.files(0, self.run.plan.settings.places)
        request = IngestRequest(source, files, changes, None, self.run.engine, self.run.values)
        if source.config.asks or source.versioned:
            rows = (AnswerRows.of(request) if source.config.asks else TableRequest.of(request)).rows()
            rows, paths = rows.withColumn("__file", F.lit("")), {"": changes.now[0].path}
        else:
            rows = files.frame(self.run.engine, whole(changes, [files.undeclared(record) for record in changes.now]))
            named = "_file" in rows.columns
            rows = rows.withColumn("__file", column("_file") if named else F.hex(label_prefix(column("_key"))))
            paths = {record.stored if named else files.prefix(record).hex().upper(): record.path for record in changes.now}
        if "_row" not in rows.columns or source.config.asks:
            rows = rows.withColumn("_row", F.lit(None).cast("bigint"))
        found: dict[str, set[int | None]] = {}
        for row in self.run.engine.to_arrow(self._met(rows)).to_pylist():
            found.setdefault(paths[row["__file"]], set()).add(row["_row"])
        return {path: sorted(numbers, key=lambda one: one or 0) for path, numbers in found.items()}

    def _met(self, rows: DataFrame) -> DataFrame:
        """File and number of the rows that are meant by their values, or have the values of an erased record in such columns."""
        place = ("__file", column("_row").cast("bigint").alias("_row"))
        found = [self.meant.chosen(rows).select(*place)]
        for names in self.names if self.erased is not None else ():
            some = reduce(lambda one, other: one | other, (column(name).isNotNull() for name in names))
            erased = self.meant.named_by(names, cast("DataFrame", self.erased)).where(some).select(hash_of(self.node, names, "").alias("__hash")).distinct()
            hashed = rows.where(some).select(*place, hash_of(self.node, names, "").alias("__hash"))
            found.append(hashed.join(erased, "__hash", "left_semi").select("__file", "_row"))
        return united(*found).distinct()

    def _places_in(self, record: FileRecord, numbers: Sequence[int | None]) -> Iterator[str]:
        lines, whole_file = self._lines(record)
        if len(lines) >= len(numbers):
            yield from (f"{record.path}:{line}" for line in lines)
        elif None in numbers:
            yield record.path
        else:
            yield from (f"{record.path}: record {number}" for number in numbers)
        if whole_file and not numbers:
            yield record.path

    def _lines(self, record: FileRecord) -> tuple[Sequence[int], bool]:
        """The lines of a file that hold an erased text, and whether it holds one that is in no line."""
        source = cast("SourceNode", self.node.operator)
        place: Any = source.kept if source.has_own_file else self.run.plan.settings.places / record.path
        if source.config.asks or record.version is not None or place is None or record.size > MOST_LOOKED_AT or not place.exists():
            return (), False
        content = bytes(store_of(place).content(place))
        if not self.search.found_in(content):
            return (), False
        lines = self.search.lines(content)
        return lines, not lines
