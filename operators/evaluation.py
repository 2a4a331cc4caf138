"""CXL on the op rows of a frame: what passes, what fails, and where the system variables of a record stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from changelog.frames import among, known, told
from changelog.key_columns import with_index
from changelog.lazy import F
from changelog.schema import column
from cxl import spark
from cxl.spark import FAILED, INDEX, PASS
from operators import documents
from operators.lineage import FileLabels, file_of, source_name_of
from operators.rows import META, RowType
from operators.variables import riding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cxl import Program
    from cxl.spark import Applied

Settle = Callable[["Applied"], "Applied"]
Narrow = Callable[["DataFrame"], "DataFrame"]
"""Chooses rows by what they hold, and may shape them; `_key` and `_epoch` stay."""
ENVELOPE = ("_epoch", "_op", "_key", "_cause")


def as_it_is(frame: DataFrame) -> DataFrame:
    """A frame that is not settled, or not narrowed."""
    return frame


@dataclass(frozen=True, slots=True)
class RunValues:
    """The values of system variables that belong to a run: dotted name to Python value (`pipeline.batch_id`, `vars.rate`).

    `labels` tells which file a key's file label stands for. `own`: values that single nodes see, by node. `settle` computes
    a frame once where it is small (`operators.base.Surroundings.settled`), so that what is built on it stays a small plan.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    labels: FileLabels = field(default_factory=FileLabels)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settle: Callable[[DataFrame], DataFrame] = field(default=as_it_is, compare=False)

    def of(self, node: str) -> RunValues:
        """The values that a node sees."""
        return replace(self, values={**self.values, **self.own[node]}) if node in self.own else self

    @classmethod
    def none(cls) -> RunValues:
        """No values: every variable is null."""
        return cls()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """`good`: the rows that passed, with the program's fields in place. `bad`: rejects (`_op _key _cause _error` and the input's columns), None where nothing can fail."""

    good: DataFrame
    bad: DataFrame | None


def evaluate(
    frame: DataFrame, program: Program, row: RowType, stage: str, values: RunValues, *,
    max_expansion: int = 10_000, category: str | None = None, settle: Settle | None = None, names: Sequence[str] | None = None,
) -> Evaluated:  # fmt: skip
    """Run a row program on op rows of type `row`: emits replace fields in place or are appended, filters drop rows.

    `category` is that of all rejects; None: as the failure says. `settle` does to the applied program what only the operator
    can: it drops the rows that `distinct` statements drop. `names` are the frame's columns where the caller knows them.
    """
    names = frame.columns if names is None else names
    ready, context = prepare(frame, program.reads_system, row, values, max_expansion)
    applied = spark.apply(ready, program, context)
    applied = settle(applied) if settle is not None else applied
    passed = applied.frame.where(F.col(PASS) & ~F.col(FAILED)) if applied.can_fail else applied.frame.where(F.col(PASS))
    good = passed.select(*_passed_columns(names, program, applied))
    if not applied.can_fail and not applied.fans_out:
        return Evaluated(good, None)
    failed = spark.errors(applied.frame.where(F.col(FAILED)), program, context, "__why")
    why = F.col("__why")
    refused = rejects(failed, category or why.getField("category"), why.getField("message"), stage)
    return Evaluated(good, _as_rejects(refused, frame, names))


def prepare(
    frame: DataFrame, reads: frozenset[str], row: RowType, values: RunValues, max_expansion: int = 10_000
) -> tuple[DataFrame, spark.Context]:
    """The frame with what the program reads of a record's provenance, and the context that says where it stands."""
    columns: dict[str, Any] = {name: value for name, value in values.values.items() if name in reads}
    columns |= {f"meta.{name}": column(META + name) for name in row.riding(META)}
    columns |= {name: column(rider) for name, rider in riding(row).items()}
    if "_doc" in row.hidden:
        columns |= documents.members(reads)
    if "source.name" in reads:
        columns["source.name"] = source_name_of(row)
    if reads & {"source.file", "source.path"}:
        frame, file = file_of(frame, row, values.labels)
        columns |= {"source.file": file, "source.path": file}
    if "source.row" in reads and "_row" in row.hidden:
        columns["source.row"] = F.col("_row")
    if "source.event_time" in reads and "_event_time" in row.hidden:
        columns["source.event_time"] = F.col("_event_time")
    return frame, spark.Context(columns, max_expansion)


def _passed_columns(names: Sequence[str], program: Program, applied: Applied) -> list[Column]:
    """Every column of a frame with the emitted values in their places, new ones behind, `$meta` fields as riders."""
    emitted = {**applied.values, **{META + name: value for name, value in applied.meta.items()}}
    kept = [emitted[name].alias(name) if name in emitted else column(name) for name in names]
    if applied.fans_out:
        at = names.index("_key")
        kept[at] = with_index(F.col("_key"), F.col(INDEX)).alias("_key")
    return kept + [value.alias(name) for name, value in emitted.items() if name not in names]


def _as_rejects(refused: DataFrame, frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rejects with the columns of the frame that they come from, and `_error` as the last."""
    kept = [name for name in names if name != "_error"]
    schema = among(known(frame), kept)
    return told(refused.select(*map(column, kept), "_error"), None if schema is None else schema.add("_error", "string"))


def rejects(frame: DataFrame, category: Column | str, detail: Column, stage: str, trigger: Column | None = None) -> DataFrame:
    """The frame's rows as rejects: their own key space, and `_error` as a JSON object of category, detail, stage, trigger."""
    return frame.withColumn("_key", F.concat(F.col("_key"), F.lit(b"!"))).withColumn("_error", error_text(category, detail, stage, trigger))


def error_text(category: Column | str, detail: Column, stage: str, trigger: Column | None = None) -> Column:
    """What `_error` holds of a reject, as a JSON object: never null, so that an engine leaves rejects out of the plan where only other rows are asked for."""
    members = [
        (F.lit(category) if isinstance(category, str) else category).alias("category"),
        detail.alias("detail"),
        F.lit(stage).alias("stage"),
        (F.lit("") if trigger is None else trigger).alias("trigger"),
    ]
    return F.coalesce(F.to_json(F.struct(*members)), F.lit(""))
