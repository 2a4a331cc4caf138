"""Transform nodes: CXL on each record, validations, logging (user guide, "Transform Nodes"). Windows and distinct: `operators.windowed`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from changelog.schema import column
from cxl import spark
from operators.base import Keyed, Linear, Operator
from operators.binding import Binding
from operators.checks import condition
from operators.evaluation import RunValues, evaluate, prepare, rejects
from operators.registry import node_type
from operators.rows import META, KeyShape, RowType
from operators.settings import NodeSpec
from operators.transform_config import TransformConfig, Validation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cxl import Program

Check = tuple[Validation, "Program"]


class RowLogic:
    """What a transform does with one record, shared by all kinds of transforms: program, then checks."""

    def __init__(self, spec: NodeSpec, row: RowType, program: Program, checks: Sequence[Check]) -> None:
        config: TransformConfig = spec.config
        self.name = spec.name
        self.config = config
        self.program = program
        self.checks = tuple(checks)
        key = KeyShape("index", parts=(row.key,)) if program.fans_out else row.key
        emitted = tuple(program.output) or row.emitted
        riders = {META + name: type_ for name, type_ in program.meta.items()}
        kept_order = row.sorted_by if not set(program.output) & set(row.sorted_by) else ()
        self.output = RowType(row.data.with_fields(program.output), ("_error",), emitted, riders, kept_order, key)

    def fingerprint(self) -> dict[str, Any]:
        """What decides whether the logic changed; messages of checks count because rejects carry them."""
        checks = [(item.label, item.severity, item.message, program.normal_text()) for item, program in self.checks]
        return {"cxl": self.program.normal_text(), "checks": checks, "max_expansion": self.config.max_expansion}

    def reads(self) -> frozenset[str]:
        """System variables that program and checks read."""
        return self.program.reads_system.union(*(program.reads_system for _, program in self.checks))

    def images(self, frame: DataFrame, row: RowType, output: RowType, values: RunValues) -> DataFrame:
        """Op rows of type `output` (rejects among them) from op rows of type `row`."""
        done = evaluate(frame, self.program, row, self.name, values, max_expansion=self.config.max_expansion)
        good, refused = self._checked(done.good, output, values)
        names = [*(name for name in frame.columns if name in ("_epoch", "_op", "_key", "_cause")), *output.columns()]
        rows = good.withColumn("_error", F.lit(None).cast("string")).select(*map(column, names))
        for bad in (done.bad, refused):
            if bad is not None:
                rows = rows.unionByName(_as_output(bad, names, output))
        return rows

    def _checked(self, good: DataFrame, output: RowType, values: RunValues) -> tuple[DataFrame, DataFrame | None]:
        """Rows that pass every error check, and rejects of the others, None where there are no error checks."""
        hard = [(item, program) for item, program in self.checks if item.severity == "error"]
        if not hard:
            return good, None
        ready, context = prepare(good, frozenset().union(*(program.reads_system for _, program in hard)), output, values)
        first = F.lit(None).cast("int")
        for index, (_, program) in reversed(list(enumerate(hard))):
            assert program.expression is not None  # a predicate
            value, failed = spark.column(program.expression, context)
            wrong = ~F.coalesce(value, F.lit(False)) if failed is None else ~F.coalesce(value, F.lit(False)) | failed
            first = F.when(wrong, F.lit(index)).otherwise(first)
        marked = ready.withColumn("__check", first)
        refused = marked.where(F.col("__check").isNotNull())
        detail = _choose([item.message or f"validation '{item.label}' failed" for item, _ in hard])
        bad = rejects(refused, "validation_failure", detail, self.name, _choose([item.label for item, _ in hard]))
        return marked.where(F.col("__check").isNull()), bad

    @property
    def may_reject(self) -> bool:
        """Whether a record can fail: nothing is known to be safe that has a check or computes."""
        return True


def _choose(texts: Sequence[str]) -> Column:
    result = F.lit(None).cast("string")
    for index, text in enumerate(texts):
        result = F.when(F.col("__check") == index, F.lit(text)).otherwise(result)
    return result


def _as_output(bad: DataFrame, names: Sequence[str], output: RowType) -> DataFrame:
    """Rejects in the shape of the output: hidden columns as they are, data columns null."""
    types = output.columns()
    given = set(bad.columns)
    columns = [
        column(name) if name not in types or (name in given and name not in output.data) else F.lit(None).cast(types[name]).alias(name) for name in names
    ]
    return bad.select(*columns)


class Transform(Linear):
    """A transform whose program gives the same answer in every run."""

    kind = "transform"

    def __init__(self, spec: NodeSpec, row: RowType, logic: RowLogic) -> None:
        super().__init__(spec.name, (row,), logic.output, logic.fingerprint())
        self.logic = logic

    def reads_source(self) -> frozenset[str]:
        """What the program reads of a record's provenance."""
        return self.logic.reads()

    def bound(self, changes: int, live: int) -> int | None:
        """Each record gives at most one, unless it fans out."""
        return None if self.logic.program.fans_out else changes

    def describe(self) -> Sequence[str]:
        """Emitted fields and checks."""
        return (f"emits: {', '.join(self.logic.program.output) or 'nothing'}", *(f"check: {item.label} ({item.severity})" for item, _ in self.logic.checks))

    def images(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """The program on each op row."""
        return self.logic.images(frame, self.inputs[0], self.output, values)


class VolatileTransform(Keyed):
    """A transform that reads the clock or the run: each output row is computed once and retracted as it was written."""

    kind = "transform"
    deterministic = False

    def __init__(self, spec: NodeSpec, row: RowType, logic: RowLogic) -> None:
        super().__init__(spec.name, (row,), logic.output.carrying(["_lookup"]), logic.fingerprint())
        self.logic = logic

    reads_source = Transform.reads_source
    describe = Transform.describe

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """Each record by itself."""
        return frame.withColumn("_lookup", F.col("_key"))

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The program on each live record."""
        frame = frames[0] if "_op" in frames[0].columns else _as_new(frames[0])
        return self.logic.images(frame.withColumn("_lookup", F.col("_key")), self.inputs[0], self.output, values)


def _as_new(frame: DataFrame) -> DataFrame:
    return frame.select(F.lit(0).cast("tinyint").alias("_op"), F.lit("recompute").alias("_cause"), "*")


@node_type("transform", TransformConfig)
def bind(spec: NodeSpec, binding: Binding) -> Operator | None:
    """Check a transform and give its operator."""
    config: TransformConfig = spec.config
    program = binding.compile(spec, ("config", "cxl"), config.cxl, "row", window=config.analytic_window is not None)
    if program is None:
        return None
    checks = _compiled_checks(spec, config, program, binding)
    if checks is None:
        return None
    logic = RowLogic(spec, binding.input, program, checks)
    deterministic = program.deterministic and all(check.deterministic for _, check in checks)
    return Transform(spec, binding.input, logic) if deterministic else VolatileTransform(spec, binding.input, logic)


def _compiled_checks(spec: NodeSpec, config: TransformConfig, program: Program, binding: Binding) -> list[Check] | None:
    schema = binding.input.data.with_fields(program.output)
    checks: list[Check] = []
    for index, item in enumerate(config.validations):
        path = ("config", "validations", index, "check")
        if item.field is not None and item.field not in schema:
            known = binding.problems.similar(item.field, list(schema))
            binding.problems.report("E250", f"there is no field '{item.field}'", ("config", "validations", index, "field"), help=known)
            continue
        text = condition(item.check, item.field, item.args)
        compiled = binding.compile(spec, path, text, "predicate", schema=schema, generated=text != item.check)
        if compiled is not None:
            checks.append((item, compiled))
    return checks if len(checks) == len(config.validations) else None
