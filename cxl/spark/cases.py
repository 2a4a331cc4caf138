"""Many small programs on Spark at once: `cxl eval --jsonl --backend spark`.

Programs emit different fields, so all results have one row shape: some columns of each Spark type. The programs of a batch are
one union, so dozens of cases take one job.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cxl.diagnostics.source import Span
from cxl.lazy_imports import pa, pc
from cxl.runtime.cases import Answer, Answers, Case, Unanswered
from cxl.runtime.context import Context as RunContext
from cxl.runtime.context import eval_context
from cxl.spark.columns import spark_type
from cxl.spark.inputs import Context
from cxl.spark.names import FAILED, INDEX, PASS
from cxl.spark.program import Applied, apply, errors
from cxl.spark.session import session
from cxl.spark.worker import arrow_type, decoded, encode
from cxl.types.types import INT, STRING, Kind, Type
from cxl.values.failure import CxlFailure

_BATCH = 48
_RECORD = "_cxl_record"
_ERROR = "_cxl_error"
_FLAG = Type(Kind.BOOL)
_FAILURE = (("category", STRING), ("message", STRING), ("field", STRING), ("start", INT), ("end", INT))


def evaluate_cases(cases: Iterable[Case], engine: str = "auto", context: RunContext | None = None) -> list[Answers]:
    """Return the answers of an engine (`sail`, `spark`, `auto`), by case and record. A case that the engine fails on is `Unanswered`."""
    asked, spark = list(cases), session(engine)
    known = [case for case in asked if case.records]
    run = context or eval_context()
    settings = Context(run.values, run.max_expansion)
    answers: list[Answers] = []
    for start in range(0, len(known), _BATCH):
        answers.extend(_confined(spark, known[start : start + _BATCH], settings))
    found = iter(answers)
    return [next(found) if case.records else [] for case in asked]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A value of a row: its role, type and column."""

    role: tuple[str, Any]
    type: Type
    column: Column


@dataclass(frozen=True, slots=True)
class _Plan:
    """A case on the engine: the frame, and the cells of its results."""

    frame: DataFrame
    cells: tuple[_Cell, ...]


def _confined(spark: SparkSession, cases: Sequence[Case], context: Context) -> list[Answers]:
    """The answers to a batch. Where the engine fails, each half is tried alone: a failing case costs no other its answers."""
    try:
        return [*_batch(spark, cases, context)]
    except PySparkException as error:
        if len(cases) == 1:
            return [Unanswered(f"{type(error).__name__}: {error}")]
    middle = len(cases) // 2
    return _confined(spark, cases[:middle], context) + _confined(spark, cases[middle:], context)


def _batch(spark: SparkSession, cases: Sequence[Case], context: Context) -> list[list[Answer]]:
    plans = [_plan(spark, case, context) for case in cases]
    width: dict[str, int] = {}
    for plan in plans:
        for kind, count in _counts(plan).items():
            width[kind] = max(width.get(kind, 0), count)
    rows = _union([_laid_out(number, plan, width) for number, plan in enumerate(plans)]).toArrow()
    return [_answers(case, _rows(rows, number, plan)) for number, (case, plan) in enumerate(zip(cases, plans, strict=True))]


def _plan(spark: SparkSession, case: Case, context: Context) -> _Plan:
    applied = apply(_frame(spark, case), case.program, context)
    frame = applied.frame
    if applied.can_fail:
        frame = errors(frame, case.program, context, _ERROR)
    output, meta = case.program.output, case.program.meta
    return _Plan(frame, tuple(_cells(applied, {**output}, {**meta})))


def _cells(applied: Applied, output: Mapping[str, Type], meta: Mapping[str, Type]) -> Iterator[_Cell]:
    yield _Cell(("", "record"), INT, F.col(_RECORD))
    yield _Cell(("", "pass"), _FLAG, F.col(PASS))
    yield _Cell(("", "failed"), _FLAG, F.col(FAILED))
    if applied.fans_out:
        yield _Cell(("", "index"), INT, F.col(INDEX).cast("bigint"))
    if applied.names is not None:
        yield _Cell(("", "names"), STRING, applied.names)
    if applied.can_fail:
        for name, type_ in _FAILURE:
            yield _Cell(("failure", name), type_, F.col(_ERROR).getField(name))
    for number, key in enumerate(applied.distinct):
        yield _Cell(("reached", number), _FLAG, F.col(key.reached))
        yield _Cell(("key", number), STRING, _key_text(key.columns))
    for name, column in applied.values.items():
        yield _Cell(("value", name), output[name], column)


def _key_text(columns: Sequence[str]) -> Column:
    """A key as one text. Equal keys have equal texts; null is a value."""
    parts = [F.coalesce(F.concat(F.lit("="), F.col(name).cast("string")), F.lit("null")) for name in columns]
    return F.concat_ws("\x1f", *parts) if parts else F.lit("")


def _frame(spark: SparkSession, case: Case) -> DataFrame:
    """The records as a frame, numbered."""
    schema = case.program.schema
    columns: dict[str, pa.Array] = {_RECORD: pa.array(range(len(case.records)), pa.int64())}
    for name, type_ in schema.items():
        columns[name] = pa.array([encode(record.get(name), type_) for record in case.records], arrow_type(type_))
    return spark.createDataFrame(pa.table(columns))


# One shape for all ------------------------------------------------------------------------------------------------------
def _counts(plan: _Plan) -> dict[str, int]:
    counts: dict[str, int] = {}
    for cell in plan.cells:
        counts[spark_type(cell.type)] = counts.get(spark_type(cell.type), 0) + 1
    return counts


def _places(plan: _Plan) -> Iterator[tuple[str, _Cell]]:
    """The column of the shared shape for each cell."""
    used: dict[str, int] = {}
    for cell in plan.cells:
        kind = spark_type(cell.type)
        yield f"{kind}_{used.get(kind, 0)}", cell
        used[kind] = used.get(kind, 0) + 1


def _laid_out(number: int, plan: _Plan, width: Mapping[str, int]) -> DataFrame:
    filled = {name: cell.column for name, cell in _places(plan)}
    names = [(f"{kind}_{index}", kind) for kind, count in width.items() for index in range(count)]
    columns = [filled.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in names]
    return plan.frame.select(F.lit(number).cast("bigint").alias("case"), *columns)


def _union(frames: list[DataFrame]) -> DataFrame:
    """All rows. The tree is balanced, because engines read plans by recursion."""
    while len(frames) > 1:
        frames = [reduce(DataFrame.unionAll, frames[index : index + 2]) for index in range(0, len(frames), 2)]
    return frames[0]


def _rows(table: pa.Table, number: int, plan: _Plan) -> list[dict[tuple[str, Any], Any]]:
    own = table.filter(pc.equal(table.column("case"), number))
    columns = {cell.role: decoded(own.column(name).combine_chunks(), cell.type) for name, cell in _places(plan)}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return sorted(rows, key=lambda row: (row["", "record"], row.get(("", "index")) or 0))


# Answers ----------------------------------------------------------------------------------------------------------------
def _answers(case: Case, rows: list[dict[tuple[str, Any], Any]]) -> list[Answer]:
    answers: list[Answer] = [[] for _ in case.records]
    seen: dict[int, set[str]] = {}
    for row in rows:
        record = row["", "record"]
        known = answers[record]
        if _is_repeated(row, seen):
            continue
        if row["", "failed"]:
            answers[record] = _failure(row)
        elif row["", "pass"] and isinstance(known, list):
            known.append(_emitted(row))
    return answers


def _emitted(row: Mapping[tuple[str, Any], Any]) -> dict[str, Any]:
    """The fields of an emitted record."""
    values = {name: value for (role, name), value in row.items() if role == "value"}
    if ("", "names") not in row:
        return values
    own = row["", "names"].split(",")
    return {name: value for name, value in values.items() if name in own}


def _is_repeated(row: Mapping[tuple[str, Any], Any], seen: dict[int, set[str]]) -> bool:
    """Whether a distinct statement drops the row. Remembers the keys."""
    for role, number in row:
        if role == "reached" and row[role, number]:
            keys = seen.setdefault(number, set())
            if row["key", number] in keys:
                return True
            keys.add(row["key", number])
    return False


def _failure(row: Mapping[tuple[str, Any], Any]) -> CxlFailure:
    if row["failure", "message"] is None:
        return CxlFailure("the column says that this record fails, the interpreter does not")
    start, end = row["failure", "start"], row["failure", "end"]
    span = None if start is None else Span(start, end)
    return CxlFailure(row["failure", "message"], category=row["failure", "category"], span=span, field=row["failure", "field"])
