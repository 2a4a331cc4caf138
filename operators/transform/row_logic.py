"""The logic of all transforms on one record: its program, then its checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from changelog.frames import united
from changelog.lazy_imports import F, Window
from cxl import Program, spark
from operators.core.evaluate import ENVELOPE, REFUSED, Evaluated, Settle, as_applied, as_output, evaluate, prepare, rejects
from operators.core.provenance import is_first, without_index
from operators.core.row_type import META, KeyShape, RowType, spelling
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec
from operators.transform.config import LogDirective, TransformConfig, Validation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


RECORD = "__record"
"""The key of the record that a row comes from, where records may have failed ahead of the program."""
Check = tuple[Validation, "Program"]
Directive = tuple[LogDirective, "Program | None"]
"""A log directive: its text, and the condition on a record."""


class Images(NamedTuple):
    """Op rows, rejects among them, and the plan of the accepted rows alone where it is shorter."""

    rows: DataFrame
    accepted: DataFrame | None


class RowLogic:
    """The work of a transform on one record, shared by all kinds of transforms: program, then checks. `directives` leave the data alone."""

    def __init__(self, spec: NodeSpec, row: RowType, program: Program, checks: Sequence[Check], directives: Sequence[Directive] = ()) -> None:
        config: TransformConfig = spec.config
        self.name = spec.name
        self.config = config
        self.program = program
        self.steps = program.after or program
        self.settle: Settle = as_applied
        self.checks = tuple(checks)
        self.directives = tuple(directives)
        key = KeyShape("index", parts=(row.key,)) if program.fans_out else row.key
        emitted = tuple(program.output) or row.emitted
        riders = {META + name: type_ for name, type_ in program.meta.items()}
        kept_order = row.sorted_by if not set(program.output) & set(row.sorted_by) else ()
        self.output = RowType(row.data.with_fields(program.output), ("_error",), emitted, riders, kept_order, key)

    def fingerprint(self) -> dict[str, Any]:
        """The settings that decide whether the logic changed; messages of checks count because rejects carry them."""
        checks = [(item.label, item.severity, item.message, program.normal_text()) for item, program in self.checks]
        compared = (value.type for statement in self.program.distinct for _, value in statement.keys)
        return {"cxl": self.program.normal_text(), "checks": checks, "max_expansion": self.config.max_expansion} | spelling(compared)

    @property
    def hard(self) -> list[Check]:
        """The checks that reject what fails them."""
        return [one for one in self.checks if one[0].severity == "error"]

    @property
    def deterministic(self) -> bool:
        """Whether the same record gives the same rows in every run."""
        return self.program.deterministic and all(program.deterministic for _, program in self.checks)

    def describe(self) -> tuple[str, ...]:
        """Emitted fields and checks, for `explain`."""
        return (f"emits: {', '.join(self.program.output) or 'nothing'}", *(f"check: {item.label} ({item.severity})" for item, _ in self.checks))

    def reads(self) -> frozenset[str]:
        """System variables that program and checks read."""
        return self.program.reads_system.union(*(program.reads_system for _, program in self.checks))

    def images(self, frame: DataFrame, row: RowType, output: RowType, values: RunValues, refused: Column | None = None) -> Images:
        """Op rows of the output from op rows of the input.

        Args:
            frame: The input's op rows, of type `row`.
            row: The row type of the input.
            output: The row type of the output.
            values: System variables.
            refused: The `_error` of records that failed ahead of the program, null for others. The frame then has their key as `RECORD` too.
        """
        limit = self.config.max_expansion
        done = evaluate(frame, self.steps, row, self.name, values, max_expansion=limit, settle=self.settle, inline=refused is not None, refused=refused)
        envelope = [name for name in frame.columns if name in ENVELOPE]
        record = without_index(F.col("_key")) if refused is None else F.col(RECORD)
        good, unfit = self._checked(done, output, values, record, [name for name in envelope if name in ("_epoch", "_op")])
        names = [*envelope, *output.columns()]
        rows = output.shaped(good.withColumns(done.made(output.data, "_key" if refused is None else RECORD)), names)
        bad = [output.shaped(as_output(one, names, output), names) for one in (done.bad, unfit) if one is not None]
        return Images(united(rows, *bad), rows if bad and not done.inline else None)

    def _checked(self, done: Evaluated, output: RowType, values: RunValues, record: Column, image: Sequence[str]) -> tuple[DataFrame, DataFrame | None]:
        """Return the rows of records whose rows all pass every error check, and a reject of each other record; None where there are no error checks.

        `record`: the key of a row's record; `image`: the columns that distinguish its images.
        """
        if not self.hard:
            return done.good, None
        ready, context = prepare(done.good, frozenset().union(*(program.reads_system for _, program in self.hard)), output, values)
        first = self._first_failing(context)
        marked = ready.withColumn("__check", F.when(F.col(REFUSED).isNull(), first) if done.inline else first)
        refused = marked.where(F.col("__check").isNotNull())
        if self.program.fans_out:
            marked = marked.withColumn("__check", F.min("__check").over(Window.partitionBy(*image, record)))
            refused = marked.where(F.col("__check").isNotNull() & is_first(F.col("_key"))).withColumn("_key", record)
        detail = _choose([item.message or f"validation '{item.label}' failed" for item, _ in self.hard])
        bad = rejects(refused, "validation_failure", detail, self.name, _choose([item.label for item, _ in self.hard]))
        return marked.where(F.col("__check").isNull()), bad

    def _first_failing(self, context: spark.Context) -> Column:
        """The number of the first error check that a row fails, null where it fails none."""
        first = F.lit(None).cast("int")
        for index, (_, program) in reversed(list(enumerate(self.hard))):
            assert program.expression is not None  # a predicate
            value, failed = spark.column(program.expression, context)
            wrong = ~F.coalesce(value, F.lit(False)) if failed is None else ~F.coalesce(value, F.lit(False)) | failed
            first = F.when(wrong, F.lit(index)).otherwise(first)
        return first

    @property
    def may_reject(self) -> bool:
        """Whether a record can fail: nothing is known to be safe that has a check or computes."""
        return True


def _choose(texts: Sequence[str]) -> Column:
    result = F.lit(None).cast("string")
    for index, text in enumerate(texts):
        result = F.when(F.col("__check") == index, F.lit(text)).otherwise(result)
    return result
