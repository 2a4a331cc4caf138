"""Output files: made beside their target from an output's live rows, renamed over it after the commit (DESIGN section 5, Export)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import pa
from errata.core.diagnostics import did_you_mean
from errata.core.failures import StorageFailed
from storage import durable
from storage.durable import undoing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.outputs.delta_table import StagedTable
    from errata.plan.plan import Node
    from operators.output.operator import Output
    from storage.engines import Engine
    from storage.formats import Session

BATCH_ROWS = 50_000
HAS_FORMULAS, NO_FORMULAS = b"!", b" "


@dataclass(frozen=True, slots=True)
class Written:
    """A finished file beside its target, and what the ledger keeps of it."""

    staged: Path
    target: Path
    size: int
    mtime_ns: int
    wanted: Path
    """The target; where its name has a suffix since another file has that name, the path without it."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What else it takes to write the file a second time."""

    def json(self, folder: Path) -> dict[str, Any]:
        """Path (below the pipeline's folder where it lies there), size, mtime, the path that was wanted instead and what else is told."""
        wanted = {} if self.wanted == self.target else {"instead_of": os.path.relpath(self.wanted, folder)}
        return {"path": os.path.relpath(self.target, folder), "size": self.size, "mtime_ns": self.mtime_ns, **wanted, **self.told}


@dataclass(slots=True)
class StagedFiles:
    """The files of one run: staged before the commit, published after it; removed when the run fails."""

    written: list[Written] = field(default_factory=list)
    gone: dict[Path, Mapping[str, Any]] = field(default_factory=dict)
    """Files that are to be removed, with what the ledger keeps of them."""
    tables: list[StagedTable] = field(default_factory=list)
    formulas: bool = False
    """Whether it was warned of text that a spreadsheet would run."""
    _begun: dict[Path, dict[str, list[Path]]] = field(default_factory=dict)
    _targets: set[Path] = field(default_factory=set)

    def publish(self) -> None:
        """Rename everything over its target, bring tables up to date, remove what is not written any more."""
        for one in self.written:
            durable.publish(one.staged, one.target)
        for path in self.gone:
            durable.step(f"remove:{path.name}", lambda path=path: path.unlink(missing_ok=True))  # type: ignore[misc]  # lambda default binds the loop variable
        for table in self.tables:
            table.publish()
        self.written, self.gone, self.tables, self._targets = [], {}, [], set()

    def date(self, before: Mapping[Path, Mapping[str, Any]]) -> None:
        """Give files that are only brought back the times that the ledger has of them, so that the next run finds them as they were."""
        for one in self.written:
            entry = before.get(one.target)
            if entry is not None and entry.get("size") == one.size:
                os.utime(one.staged, ns=(entry["mtime_ns"], entry["mtime_ns"]))

    def discard(self) -> None:
        """Remove what was staged."""
        for one in self.written:
            one.staged.unlink(missing_ok=True)

    def sweep(self, target: Path) -> None:
        """Remove what a run that was killed had begun to write in the place of a file."""
        if target.parent not in self._begun:
            self._begun[target.parent] = durable.staged_in(target.parent)
        for begun in self._begun[target.parent].pop(target.name, ()):
            begun.unlink(missing_ok=True)

    def stage(self, target: Path, parts: Iterator[bytes], *, wanted: Path | None = None) -> Written:
        """Write a file beside its target, which may take the place of the one `wanted`. Raises StorageFailed, also where another output of the run wrote it."""
        if target in self._targets:
            raise StorageFailed(f"two outputs write {target}", help="give one of them another path")
        self._targets.add(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self.sweep(target)
            staged = durable.staging_path(target)
            stat = _filled(staged, parts)
        except OSError as error:
            raise StorageFailed(f"cannot write {target}: {error.strerror}") from error
        one = Written(staged, target, stat.st_size, stat.st_mtime_ns, wanted or target)
        self.written.append(one)
        return one


def holds(path: Path, parts: Iterator[bytes]) -> bool:
    """Whether a file is what these parts make. Raises OSError."""
    with path.open("rb") as handle:
        return all(handle.read(len(part)) == part for part in parts) and not handle.read(1)


def _filled(path: Path, parts: Iterator[bytes]) -> os.stat_result:
    """Write a file, of which nothing is left where that fails."""
    with undoing(lambda: path.unlink(missing_ok=True)):
        with path.open("wb") as handle:
            handle.writelines(parts)
        return path.stat()


def is_intact(entry: Mapping[str, Any], folder: Path) -> bool:
    """Whether a file that the ledger names is still there as it was written."""
    try:
        stat = (folder / entry["path"]).stat()
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (entry["size"], entry["mtime_ns"])


@dataclass(frozen=True, slots=True)
class OutputRows:
    """The live rows of an output in their order: on the driver, or as a frame that is sorted where it is read."""

    table: pa.Table | None
    frame: DataFrame | None

    def batches(self, engine: Engine, shape: Callable[[pa.RecordBatch], pa.RecordBatch], columns: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows in batches, on the driver one after the other.

        shape: makes the batch to give out from a batch of rows. columns: how many columns it then has; 0 sets no limit by columns.
        """
        from storage.formats.limits import rows_at_once

        if self.table is not None:
            yield from (shape(batch) for batch in self.table.to_batches(rows_at_once(columns, BATCH_ROWS)))
        elif self.frame is not None:
            yield from (_unpacked(blob) for blob in engine.in_order(self.frame, lambda batch: _packed(shape(batch))))

    @property
    def empty(self) -> bool:
        """Whether there are no rows."""
        if self.table is not None:
            return not self.table.num_rows
        return self.frame is None or self.frame.limit(1).count() == 0

    def header_elements(self, section: str) -> Sequence[str] | None:
        """The complete header elements in a section of the first row's document that has them."""
        if self.table is not None:
            names = self.table.column_names
            texts = iter(self.table.column("_doc").to_pylist()) if "_doc" in names else iter(())
        elif self.frame is not None and "_doc" in self.frame.columns:
            texts = iter([row["_doc"] for row in self.frame.where(self.frame["_doc"].isNotNull()).limit(1).collect()])
        else:
            return None
        found = (json.loads(text).get(section, {}).get("_elements") for text in texts if text)
        return next((elements for elements in found if elements), None)

    def rendered(self, engine: Engine, render: Callable[[pa.RecordBatch], bytes]) -> Iterator[bytes]:
        """The rows as text, a piece a batch; large outputs are rendered by the engine's tasks."""
        if self.table is not None:
            yield from (render(batch) for batch in self.table.to_batches(BATCH_ROWS))
        elif self.frame is not None:
            yield from engine.in_order(self.frame, render)


def _packed(batch: pa.RecordBatch) -> bytes:

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return cast("bytes", sink.getvalue().to_pybytes())


def _unpacked(blob: bytes) -> pa.RecordBatch:

    table = pa.ipc.open_stream(blob).read_all()
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)


@dataclass(frozen=True, slots=True)
class Exporter:
    """Writes outputs of one run: what it stages, the engine that renders large ones, who is told of oversize groups, where a file of some path is written."""

    exports: StagedFiles
    engine: Engine
    warn: Callable[[str], None]
    named: Callable[[Path], Path]

    def write(self, node: Node, rows: OutputRows, target: Path, undeclared: Sequence[tuple[str, str]]) -> list[Written]:
        """Stage the file (or the parts) of an output. `undeclared`: names and types of the undeclared fields that it writes, in order.

        Raises StorageFailed.
        """
        from operators.output.operator import write_plan
        from storage import formats

        output = cast("Output", node.operator)
        config = output.config
        columns, shape = output_columns(output, undeclared)
        echoed = None if output.echoed is None else rows.header_elements(output.echoed)
        writer = formats.writer(config.type, config.options, write_plan(output, columns, echoed, shape.shown))
        try:
            with _heard(node.name, self.warn):
                return self._staged(output, rows, target, writer, shape)
        except formats.OutputError as error:
            raise StorageFailed(f"output '{node.name}': {error}") from error

    def _staged(self, output: Output, rows: OutputRows, target: Path, writer: Any, shape: Shape) -> list[Written]:
        """Stage what a writer makes of the rows. Raises OutputError."""
        if writer.sequential:
            empty = output.echoed is not None and rows.empty
            return [self._file(target, iter(()) if empty else _in_order(writer.open(), rows.batches(self.engine, shape, len(shape.names))))]
        if output.config.split is not None:
            batches = self._watched(output, writer, rows.batches(self.engine, shape.with_groups(output.group), len(shape.names)))
            return self._parts(output, batches, target, writer)
        if not self._looks(writer):
            parts = rows.rendered(self.engine, lambda batch: _rendered(writer, shape, batch))
        else:
            parts = self._told_of_formulas(output, rows.rendered(self.engine, lambda batch: _looked_at(writer, shape, batch)))
        return [self._file(target, _document(writer, parts))]

    def _looks(self, writer: Any) -> bool:
        """Whether formulas are looked for: until some are found."""
        return bool(writer.looks_for_formulas) and not self.exports.formulas

    def _told_of_formulas(self, output: Output, parts: Iterator[bytes]) -> Iterator[bytes]:
        """The parts without their mark; warns of the first that has formulas, in a run once."""
        for part in parts:
            if part.startswith(HAS_FORMULAS):
                self._warn_of_formulas(output)
            yield part[1:]

    def _warn_of_formulas(self, output: Output) -> None:
        if not self.exports.formulas:
            self.exports.formulas = True
            self.warn(f"output '{output.name}': cells begin with = + - or @, which a spreadsheet runs as a formula; options: {{ formula_guard: true }} puts an apostrophe before them")

    def _watched(self, output: Output, writer: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches; warns of the first that has formulas."""
        for batch in batches:
            if self._looks(writer) and writer.has_formulas(batch):
                self._warn_of_formulas(output)
            yield batch

    def _parts(self, output: Output, batches: Iterator[pa.RecordBatch], target: Path, writer: Any) -> list[Written]:
        from storage.formats import splitting

        plan = splitting.SplitPlan(**output.config.split.model_dump())  # type: ignore[union-attr]  # the caller looked
        names = [*(column.name for column in writer.plan.columns), "_split"]
        group = names.index(output.group) if output.group else None
        pieces = splitting.split(plan, writer, batches, group=group, warn=self.warn)
        parts = groupby(pieces, key=lambda piece: piece.seq)
        return [self._file(target.with_name(plan.name(target.name, seq)), (piece.data for piece in group)) for seq, group in parts]

    def _file(self, wanted: Path, parts: Iterator[bytes]) -> Written:
        return self.exports.stage(self.named(wanted), parts, wanted=wanted)


class _Hearing(logging.Handler):
    """Hands on what is logged, each text once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell, self._told = tell, set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """As logging has it; the handler's lock is held."""
        text = record.getMessage()
        if text not in self._told:
            self._told.add(text)
            self._tell(text)


@contextmanager
def _heard(output: str, warn: Callable[[str], None]) -> Iterator[None]:
    """What writers log of values that they change is warned of, as far as they work in this process."""
    logger, hearing = logging.getLogger("storage.formats"), _Hearing(lambda text: warn(f"output '{output}': {text}"))
    logger.addHandler(hearing)
    try:
        yield
    finally:
        logger.removeHandler(hearing)


def _in_order(session: Session, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """The bytes of a file whose format keeps a state from record to record."""
    yield session.header()
    for batch in batches:
        yield session.render(batch)
    yield session.footer()


def _rendered(writer: Any, shape: Shape, batch: pa.RecordBatch) -> bytes:
    """The text of a batch, made piece by piece."""
    return cast("bytes", writer.separator().join(writer.render(shape(piece)) for piece in shape.pieces(batch)))


def _looked_at(writer: Any, shape: Shape, batch: pa.RecordBatch) -> bytes:
    """The same behind a mark that says whether it has formulas: a task of the engine, which makes it, can tell nobody else."""
    found, texts = False, []
    for piece in map(shape, shape.pieces(batch)):
        found = found or writer.has_formulas(piece)
        texts.append(writer.render(piece))
    return (HAS_FORMULAS if found else NO_FORMULAS) + cast("bytes", writer.separator().join(texts))


def _document(writer: Any, parts: Iterator[bytes]) -> Iterator[bytes]:
    yield writer.header()
    separator = b""
    for part in parts:
        if part:
            yield separator + part
            separator = writer.separator()
    yield writer.footer()


def output_columns(output: Output, undeclared: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, Any]], Shape]:
    """The written columns with their types, the undeclared fields behind the declared ones, and what shapes a batch of rows to them."""
    from cxl.types.types import parse_type

    declared = list(output.projection.data.items())
    extra = agreed(undeclared)
    meta = [one for one in declared if output.fields.taken and one[0].startswith("meta.")]
    columns = [*(one for one in declared if one not in meta), *((name, parse_type(type_)) for name, type_ in extra), *meta]
    return columns, Shape(tuple(name for name, _ in columns), tuple(extra))


def left_out(output: Output, arriving: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What is told of fields that `mapping` and the order name and that are not there, and of undeclared fields whose name it gives to others.

    `arriving`: names and types of the sources' undeclared fields.
    """
    extra = [name for name, _ in agreed(arriving) if output.fields.admits(name)]
    known = {source for _, source, _ in output.projection.written} | {*extra}
    for name, source in output.config.mapping.items():
        if source not in known and not source.startswith("$"):
            yield f"mapping calls the field '{source}' '{name}', but it does not reach the output"
    for name in output.undeclared:
        if name not in dict(arriving):
            near = did_you_mean(name, [*output.inputs[0].data, *dict(arriving)])
            yield f"the records are sorted or held together by '{name}', but it does not reach the output{near and f' ({near})'}"
    for source in extra:
        hidden = [shown for shown in output.fields.names(source) if shown not in output.fields.shown(source, extra)]
        yield from (f"the undeclared field '{source}' is left out: another column is written as '{shown}'" for shown in hidden)


def agreed(undeclared: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each undeclared field once, of type any where files of several formats have it in different types."""
    types: dict[str, str] = {}
    for name, type_ in undeclared:
        types[name] = type_ if types.get(name, type_) == type_ else "any"
    return list(types.items())


@dataclass(frozen=True, slots=True)
class Shape:
    """Takes a batch of an output's live rows to the written columns: `extra` fields (name, type) come out of `_widened`. Picklable."""

    names: tuple[str, ...]
    extra: tuple[tuple[str, str], ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the extra fields."""
        return tuple(name for name, _ in self.extra)

    def with_groups(self, group: str | None) -> Shape:
        """The written columns, and behind them the groups of a split where no written column holds them."""
        return replace(self, names=(*self.names, "_split")) if group == "_split" else self

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns that are wanted, in their order."""
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        found |= dict(zip(self.shown, self._expanded(batch), strict=True))
        return pa.RecordBatch.from_arrays([found[name] for name in self.names], list(self.names))

    def pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows in batches that are not too large with all columns that are wanted."""
        from storage.formats.limits import rows_at_once

        rows = rows_at_once(len(self.names), max(batch.num_rows, 1))
        yield from (batch.slice(at, rows) for at in range(0, max(batch.num_rows, 1), rows))

    def _expanded(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The extra fields as columns. The work is that of the fields that the rows have, not of all that they could have."""
        import orjson

        if not self.extra:
            return []
        types = dict(self.extra)
        found: dict[str, tuple[list[int], list[str | None]]] = {}
        for row, text in enumerate(batch.column("_widened").to_pylist()):
            for name, value in orjson.loads(text).items() if text else ():
                if name in types:
                    rows, cells = found.setdefault(name, ([], []))
                    rows.append(row)
                    cells.append(_scalar(value, types[name]))
        none = pa.nulls(batch.num_rows, pa.string())
        return [_column(*found[name], batch.num_rows) if name in found else none for name, _ in self.extra]


def _column(rows: Sequence[int], cells: Sequence[str | None], count: int) -> pa.Array:
    """A column of `count` rows with the cells in the given rows and null in the others."""
    if len(rows) == count:
        return pa.array(cells, pa.string())
    column: list[str | None] = [None] * count
    for row, cell in zip(rows, cells, strict=True):
        column[row] = cell
    return pa.array(column, pa.string())


def _scalar(value: Any, type_: str) -> str | None:
    """The cell of an undeclared field that a record has: JSON text where it may be of any type."""
    from storage.values.json_text import canonical

    return value if type_ == "string" and (value is None or isinstance(value, str)) else canonical(value)
