"""CXL on the op rows of a frame: accepted rows, rejects, and the columns of a record's system variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from changelog.columns import column
from changelog.frames import among, known, with_schema
from changelog.keys.spark import with_index
from changelog.lazy_imports import F, pa, pc
from cxl import Program, spark
from cxl.runtime.interpret import NAN_CATEGORY
from cxl.spark import FAILED, INDEX, PASS
from operators.core.provenance import file_of, source_name_of
from operators.core.row_type import META, RowType
from operators.core.run_values import RunValues, document_fields, riding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cxl.spark import Applied



Settle = Callable[["Applied", RunValues], "Applied"]
"""Does to an applied program what only its operator can."""
Narrow = Callable[["DataFrame"], "DataFrame"]
"""Chooses rows by what they hold, and may shape them; `_key` and `_epoch` stay."""
REFUSED = "_refused"
"""A column with the `_error` of rows that are rejects, null for the others."""
FINALIZE = "aggregate_finalize"
"""The category of what fails once the rows of a group are added up."""
ENVELOPE = ("_epoch", "_op", "_key", "_cause")


def as_it_is(frame: DataFrame) -> DataFrame:
    """A frame that is not settled, or not narrowed."""
    return frame


def as_applied(applied: Applied, values: RunValues) -> Applied:
    """A program that nothing more is done to."""
    return applied


@dataclass(frozen=True, slots=True)
class Evaluated:
    """`good`: the rows that passed, with the program's fields in place. `bad`: rejects (`_op _key _cause _error` and the input's columns), None where nothing can fail.

    `inline`: there are rejects among `good`, which have their `_error` in `REFUSED`, null for the others; `made` gives their columns.
    """

    good: DataFrame
    bad: DataFrame | None
    inline: bool = False

    def made(self, data: Iterable[str], record: str = "_key") -> dict[str, Column]:
        """The columns of `good` in which rejects differ: `_error`, `_key` (of the record whose key is `record`), and no values of `data`."""
        if not self.inline:
            return {"_error": F.lit(None).cast("string")}
        fine = F.col(REFUSED).isNull()
        values = {name: F.when(fine, column(name)) for name in data}
        return {"_key": F.when(fine, F.col("_key")).otherwise(reject_key(record)), "_error": F.col(REFUSED), **values}


def evaluate(
    frame: DataFrame, program: Program, row: RowType, stage: str, values: RunValues, *,
    max_expansion: int = 10_000, category: str | None = None, settle: Settle = as_applied, names: Sequence[str] | None = None,
    inline: bool = False, refused: Column | None = None,
) -> Evaluated:  # fmt: skip
    """Run a row program on op rows of type `row`. Emitted fields replace columns in place or are appended; filters drop rows.

    Args:
        frame: Op rows.
        program: The row program.
        row: Row type of the frame.
        stage: Name of the node, for rejects.
        values: System variables of the run.
        max_expansion: Rows that a record may become, at most.
        category: Category of all rejects; None: the category of the failure.
        settle: Applies what only the operator can, such as `distinct` statements.
        names: Columns of the frame, where the caller knows them.
        inline: Whether rejects may remain among the good rows, so that an engine computes the frame once.
        refused: The `_error` of rows that failed before the program, null for the others.
    """
    names = frame.columns if names is None else names
    ready, context = prepare(frame, program.reads_system, row, values, max_expansion)
    applied = spark.apply(ready, program, context)
    errors = _quick_errors(applied, refused, category or NAN_CATEGORY, stage) if inline else None
    applied = settle(applied if errors is None else _inlined(applied, errors, refused), values)
    passed = applied.frame.where(F.col(PASS) & ~F.col(FAILED)) if applied.can_fail else applied.frame.where(F.col(PASS))
    good = passed.select(*_passed_columns(names, program, applied), *([] if errors is None else [REFUSED]))
    if not applied.can_fail and not applied.fans_out:
        return Evaluated(good, None, errors is not None)
    failed = spark.errors(applied.frame.where(F.col(FAILED)), program, context, "__why")
    why = F.col("__why")
    rejected = rejects(failed, category or why.getField("category"), why.getField("message"), stage)
    return Evaluated(good, _as_rejects(rejected, frame, names), errors is not None)


def _quick_errors(applied: Applied, refused: Column | None, category: str, stage: str) -> Column | None:
    """The `_error` of rows that can be rejected without the interpreter, null for the others; None where there are none."""
    nan = None if applied.nan is None else F.when(F.col(FAILED), error_text(category, applied.nan, stage))
    known = [one for one in (refused, nan) if one is not None]
    return F.coalesce(*known) if known else None


def _inlined(applied: Applied, errors: Column, refused: Column | None) -> Applied:
    """Add `REFUSED` to the applied program. Rows with an error pass, each as one row; rows that failed before the program reach no `distinct`."""
    marked = applied.frame.withColumn(REFUSED, errors)
    bad = F.col(REFUSED).isNotNull()
    one = F.coalesce(F.col(INDEX), F.lit(0)) == 0
    passed = F.when(bad, one).otherwise(F.col(PASS)) if applied.fans_out else F.col(PASS) | bad  # true where no record is dropped, so that nothing is filtered
    passing = {PASS: passed, FAILED: F.col(FAILED) & ~bad}
    reached = {} if refused is None else {key.reached: F.col(key.reached) & refused.isNull() for key in applied.distinct}
    return replace(applied, frame=marked.withColumns(passing | reached), can_fail=applied.can_fail and applied.nan is None)


def prepare(
    frame: DataFrame, reads: frozenset[str], row: RowType, values: RunValues, max_expansion: int = 10_000
) -> tuple[DataFrame, spark.Context]:
    """Return the frame with the provenance columns that the program reads, and the context that locates them."""
    columns: dict[str, Any] = {name: value for name, value in values.values.items() if name in reads}
    columns |= {f"meta.{name}": column(META + name) for name in row.riding(META)}
    columns |= {name: column(rider) for name, rider in riding(row).items()}
    if "_doc" in row.hidden:
        columns |= document_fields(reads)
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
    """Return every column of a frame with emitted values in their places, new fields after them, and `$meta` fields as metadata columns."""
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
    return with_schema(refused.select(*map(column, kept), "_error"), None if schema is None else schema.add("_error", "string"))


def rejects(frame: DataFrame, category: Column | str, detail: Column, stage: str, trigger: Column | None = None) -> DataFrame:
    """The frame's rows as rejects: their own key space, and `_error` as a JSON object of category, detail, stage, trigger."""
    return frame.withColumn("_key", reject_key()).withColumn("_error", error_text(category, detail, stage, trigger))


def reject_key(key_column: str = "_key") -> Column:
    """The key of a reject: that of the rejected record and one closing byte, so that it never meets the record's own rows."""
    return F.concat(F.col(key_column), F.lit(b"!"))


def reject_keys(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same of keys on the driver."""
    return pc.binary_join_element_wise(keys, pa.scalar(b"!", pa.binary()), pa.scalar(b"", pa.binary()))


def error_text(category: Column | str, detail: Column, stage: str, trigger: Column | None = None) -> Column:
    """The `_error` of a reject, as a JSON object: never null, so that an engine leaves rejects out of the plan where only other rows are asked for."""
    members = [
        (F.lit(category) if isinstance(category, str) else category).alias("category"),
        detail.alias("detail"),
        F.lit(stage).alias("stage"),
        (F.lit("") if trigger is None else trigger).alias("trigger"),
    ]
    return F.coalesce(F.to_json(F.struct(*members)), F.lit(""))


def error_start(category: str) -> str:
    """The beginning of the text of `error_text`."""
    return f'{{"category":"{category}"'


WRONG = "__wrong"
"""The number of the expression that failed first, null where none did."""


def first_case(cases: Sequence[tuple[Column, Column]], otherwise: Column) -> Column:
    """One CASE of any number of branches; `otherwise` alone where there are none."""
    if not cases:
        return otherwise
    chain = F.when(*cases[0])
    for case in cases[1:]:
        chain = chain.when(*case)
    return chain.otherwise(otherwise)


def explained(bad: DataFrame, programs: Mapping[int, Program], context: spark.Context) -> tuple[DataFrame, Column, Column]:
    """Return failed rows, with category and detail of the failure of the program with number `WRONG`."""
    category, detail = F.lit(None).cast("string"), F.lit(None).cast("string")
    for number, program in programs.items():
        bad = spark.errors(bad, program, context, f"__why{number}")
        why = F.col(f"__why{number}")
        category = F.when(F.col(WRONG) == number, why.getField("category")).otherwise(category)
        detail = F.when(F.col(WRONG) == number, why.getField("message")).otherwise(detail)
    return bad, category, detail


def as_output(bad: DataFrame, names: Sequence[str], output: RowType) -> DataFrame:
    """Rejects in the shape of the output: hidden columns as they are, data columns null."""
    types = output.columns()
    given = set(bad.columns)
    columns = [
        column(name) if name not in types or (name in given and name not in output.data) else F.lit(None).cast(types[name]).alias(name) for name in names
    ]
    return bad.select(*columns)


def as_new(frame: DataFrame) -> DataFrame:
    """Live rows as op rows; op rows as they are."""
    if "_op" in frame.columns:
        return frame
    return frame.select(F.lit(0).cast("tinyint").alias("_op"), F.lit("recompute").alias("_cause"), "*")
