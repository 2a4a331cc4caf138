"""A source that was edited reads all its files again: its new rows, and the rows that are not read again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from changelog.columns import CAUSE, KEY, OP
from changelog.frames import chosen, united
from changelog.lazy_imports import F, Window
from changelog.ops import is_positive
from changelog.rows import Rows
from changelog.spark_algebra import as_retractions, consolidate
from errata.execution.manual_corrections import ManualCorrections, manual_changes
from errata.execution.prior_rows import CommittedPriorRows
from errata.state.committed_node import CommittedNode
from errata.state.run_state import RunState
from errata.state.source_files import SourceFiles
from operators.core.row_type import CORRECTED
from operators.source.request import IngestRequest, IngestResult
from operators.source.schema_changes import Redeclared, corrections, lasting

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


def replaced(run: RunState, made: IngestResult, prior: DataFrame) -> IngestResult:
    """All records as new ones, in place of all live rows under keys of another kind."""
    gone = as_retractions(prior, "logic")
    came = None if made.rows is None else made.rows.as_frame()
    rows = gone if came is None else consolidate(united(gone, chosen(came, gone.columns)))
    return replace(made, rows=Rows(run.engine, frame=rows), signed=True, bound=None)


def read_again(source: SourceFiles, intake: IngestRequest, prior: CommittedPriorRows, before: CommittedNode, read: Callable[[IngestRequest], IngestResult]) -> IngestResult:
    """The delta of an edited source. Manual changes stay; rows that are not read again take their values from the new columns. `before`: the source in the last epoch."""
    manual = manual_changes(prior.run, source.node, intake, before, source.history)
    if manual is None:
        return _redeclared(intake, _of_corrections(read(intake)), prior, before, None)
    made, left = manual.passed_over(_of_corrections(read(manual.intake())))
    return _redeclared(intake, made, prior, before, left)


def _of_corrections(made: IngestResult) -> IngestResult:
    """The delta, in which records that other corrections as code hold for than before have the cause `correction`."""
    if made.rows is None or CORRECTED not in made.rows.columns:
        return made
    return replace(made, rows=made.rows.through(_caused_by_corrections), bound=None)


def _caused_by_corrections(rows: DataFrame) -> DataFrame:
    """Op rows of a source with their causes: the cause is `correction` where the row that comes has other corrections than the row that goes."""
    record, came = Window.partitionBy(KEY), is_positive(F.col(OP))
    sides = (F.max(F.when(side, F.col(CORRECTED))).over(record) for side in (came, ~came))
    cause = F.when(next(sides).eqNullSafe(next(sides)), F.col(CAUSE)).otherwise(F.lit("correction"))
    return chosen(rows.withColumn(CAUSE, cause), rows.columns)


def _redeclared(intake: IngestRequest, made: IngestResult, prior: CommittedPriorRows, before: CommittedNode, manual: ManualCorrections | None) -> IngestResult:
    """The delta, with the values of rows that are not read again where the source has them now."""
    change = Redeclared.between(before.data, before.hidden, intake.source)
    if not change or not (lasting(intake) or manual is not None):
        return made
    came = None if made.rows is None else made.rows.as_frame()
    columns = before.columns()
    more = corrections(intake, prior.beside({name: columns[name] for name in change.columns()}).rows, came, change, None if manual is None else manual.among)
    stays = {record.label for record in lasting(intake)}
    files = tuple(change.redeclared(record, intake.source) if record.label in stays else record for record in made.files)
    rows = more if came is None else united(chosen(came, more.columns), more)
    return replace(made, rows=Rows(intake.engine, frame=rows), signed=True, bound=None, files=files)
