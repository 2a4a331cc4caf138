"""Writes the live rows of an output to files of its format, staged beside their targets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from changelog.lazy_imports import pa
from cxl.types.types import Type, parse_type, type_name
from errata.core.diagnostics import did_you_mean
from errata.core.failures import StorageFailed
from errata.outputs.staged_files import StagedFiles, Written
from errata.plan.plan import Node
from errata.state.ordered_rows import OutputRows
from errata.state.undeclared_columns import Shape, agreed
from operators.output.operator import Output, write_plan
from operators.output.provenance_columns import COLUMNS as PROVENANCE
from storage import formats
from storage.formats import Session, splitting
from storage.stores.places import Place
from storage.values.decimals import decimal_type
from storage.values.types import arrow_type, base_type

if TYPE_CHECKING:
    from storage.engines.base import Engine

BATCH_ROWS = 50_000
HAS_FORMULAS, NO_FORMULAS = b"!", b" "


@dataclass(frozen=True, slots=True)
class Exporter:
    """Writes outputs of one run: what it stages, the engine that renders large ones, who is warned of oversize groups, where a file of some path is written."""

    exports: StagedFiles
    engine: Engine
    warn: Callable[[str], None]
    named: Callable[[Place], Place]

    def write(self, node: Node, rows: OutputRows, target: Place, undeclared: Sequence[tuple[str, str]]) -> list[Written]:
        """Stage the file (or the parts) of an output. `undeclared`: names and types of the undeclared fields that it writes, in order.

        Raises StorageFailed.
        """
        output = cast("Output", node.operator)
        config = output.config
        columns, shape = output_columns(output, undeclared)
        if config.with_provenance:
            columns, shape = [*columns, *PROVENANCE.items()], replace(shape, names=(*shape.names, *PROVENANCE))
        echoed = None if output.echoed is None else rows.header_elements(output.echoed)
        try:
            writer = formats.writer(config.type, config.options, write_plan(output, columns, echoed, shape.shown))
        except formats.OptionError as error:
            raise StorageFailed(f"output '{node.name}': {error.code}: {error}", help=error.help_text or "") from error
        if clash := writer.clash():
            help_text = "exclude one of them, or map it to another name"
            raise StorageFailed(f"output '{node.name}': E329: columns '{clash[0]}' and '{clash[1]}' cannot both be written: names nest at their points", help=help_text)
        try:
            with _heard(node.name, self.warn):
                return self._staged(output, rows, target, writer, shape)
        except formats.OutputError as error:
            raise StorageFailed(f"output '{node.name}': {error}") from error

    def _staged(self, output: Output, rows: OutputRows, target: Place, writer: Any, shape: Shape) -> list[Written]:
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
            parts = self._without_marks(output, rows.rendered(self.engine, lambda batch: _looked_at(writer, shape, batch)))
        return [self._file(target, _document(writer, parts))]

    def _looks(self, writer: Any) -> bool:
        """Whether formulas are looked for: until some are found."""
        return bool(writer.looks_for_formulas) and not self.exports.formulas

    def _without_marks(self, output: Output, parts: Iterator[bytes]) -> Iterator[bytes]:
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

    def _parts(self, output: Output, batches: Iterator[pa.RecordBatch], target: Place, writer: Any) -> list[Written]:
        plan = splitting.SplitPlan(**output.config.split.model_dump())  # type: ignore[union-attr]  # the caller looked
        names = [*(column.name for column in writer.plan.columns), "_split"]
        group = names.index(output.group) if output.group else None
        pieces = splitting.split(plan, writer, batches, group=group, warn=self.warn)
        parts = groupby(pieces, key=lambda piece: piece.seq)
        return [self._file(target.with_name(plan.name(target.name, seq)), (piece.data for piece in group)) for seq, group in parts]

    def _file(self, wanted: Place, parts: Iterator[bytes]) -> Written:
        return self.exports.stage(self.named(wanted), parts, wanted=wanted)


class _Hearing(logging.Handler):
    """Hands on what is logged, each text once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell, self._seen = tell, set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """As logging has it; the handler's lock is held."""
        text = record.getMessage()
        if text not in self._seen:
            self._seen.add(text)
            self._tell(text)


@contextmanager
def _heard(output: str, warn: Callable[[str], None]) -> Iterator[None]:
    """Warn of the changes of values that writers log, as far as they work in this process."""
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
    declared = list(output.projection.data.items())
    extra = agreed(undeclared)
    meta = [one for one in declared if output.fields.taken and one[0].startswith("meta.")]
    added = [one for one in declared if one[0] in output.added]
    columns = [*(one for one in declared if one not in meta and one not in added), *((name, parse_type(type_)) for name, type_ in extra), *meta, *added]
    return columns, Shape(tuple(name for name, _ in columns), tuple(extra))


def table_type(output: Output, name: str, type_: Type) -> pa.DataType:
    """The Arrow type of a column in a table: decimals with the precision that the output declares, dynamic values as text."""
    declared = output.declared.spelled(name, type_name(type_))
    digits = decimal_type(base_type(declared))
    return arrow_type(declared) if digits is None else pa.decimal128(*digits)


def left_out(output: Output, arriving: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Warnings for fields that `mapping` and the order name and that do not arrive, and for undeclared fields whose names are taken.

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


