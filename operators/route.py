"""Route nodes: each record goes to the branches whose conditions are true.

All branches are in one changelog, with their name in `_port`; a consumer reads one of them. An inclusive route makes a row for each branch, whose key ends
in the branch's number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from changelog.columns import column
from changelog.frames import any_of, united
from changelog.keys.spark import with_index
from changelog.lazy_imports import F
from changelog.rows import Rows, has_value
from cxl import Program, spark
from cxl.types.types import Schema
from operators.core.binding import Binding
from operators.core.config import Strict
from operators.core.evaluate import WRONG, explained, first_case, prepare, rejects
from operators.core.operator import Keyed, Linear, Operator
from operators.core.registry import node_type
from operators.core.row_type import KeyShape, RowType
from operators.core.run_values import RunValues
from operators.core.settings import NodeSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


MAX_BRANCHES = 256
BRANCH = "__branch"
"""The number of the branch; the default is the last."""


class RouteConfig(Strict):
    """Conditions by branch in order, the branch of all other records, and whether a record takes one branch or all that hold."""

    mode: Literal["exclusive", "inclusive"] = Field(default="exclusive", description="exclusive takes the first branch whose condition holds; inclusive takes all of them.")
    conditions: dict[str, str] = Field(min_length=1, description="A CXL condition for each branch, in order; a null condition does not hold (E260).")
    default: str = Field(min_length=1, description="The branch of records for which no condition holds (E261).")

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of all branches, the default last."""
        return (*self.conditions, self.default)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The compiled conditions of a route, in order."""

    name: str
    mode: str
    branches: tuple[str, ...]
    programs: tuple[Program, ...]

    @property
    def reads(self) -> frozenset[str]:
        """System variables that the conditions read."""
        return frozenset().union(*(program.reads_system for program in self.programs))

    def images(self, frame: DataFrame, row: RowType, output: RowType, values: RunValues) -> DataFrame:
        """Op rows of type `output`: the records in their branches, and those for which a condition failed."""
        ready, context = prepare(frame, self.reads, row, values)
        tests = [_test(program, context) for program in self.programs]
        failing = [(number, failed) for number, (_, failed) in enumerate(tests) if failed is not None]
        names = [*(name for name in frame.columns if name in ("_epoch", "_op", "_key", "_cause")), *output.columns()]
        if not failing:
            return self._placed(ready, tests, names)
        marked = ready.withColumn(WRONG, self._wrong(tests))
        good = self._placed(marked.where(F.col(WRONG).isNull()), tests, names)
        return united(good, self._rejected(marked.where(F.col(WRONG).isNotNull()), [number for number, _ in failing], context, names, output))

    def _wrong(self, tests: Sequence[tuple[Column, Column | None]]) -> Column:
        """The number of the first condition that is looked at and fails, null where none does."""
        cases: list[tuple[Column, Column]] = []
        for number, (value, failed) in enumerate(tests):
            cases += [] if failed is None else [(failed, F.lit(number))]
            cases += [(value, F.lit(None).cast("int"))] if self.mode == "exclusive" else []
        return first_case(cases, F.lit(None).cast("int"))

    def _placed(self, frame: DataFrame, tests: Sequence[tuple[Column, Column | None]], names: Sequence[str]) -> DataFrame:
        """The records in their branches."""
        if self.mode == "exclusive":
            marked = frame.withColumn(BRANCH, first_case([(value, F.lit(number)) for number, (value, _) in enumerate(tests)], F.lit(len(tests))))
        else:
            none = ~any_of([value for value, _ in tests])
            numbers = [F.when(value, F.lit(number)) for number, (value, _) in enumerate(tests)] + [F.when(none, F.lit(len(tests)))]
            marked = frame.withColumn(BRANCH, F.explode(F.array_compact(F.array(*numbers))))
            marked = marked.withColumn("_key", with_index(F.col("_key"), F.col(BRANCH).cast("bigint")))
        ports = F.element_at(F.array(*map(F.lit, self.branches)), F.col(BRANCH) + 1)
        return marked.withColumns({"_port": ports, "_error": F.lit(None).cast("string")}).select(*map(column, names))

    def _rejected(self, bad: DataFrame, failing: Sequence[int], context: spark.Context, names: Sequence[str], output: RowType) -> DataFrame:
        """Rejects of records for which a condition failed."""
        explained_rows, category, detail = explained(bad, {number: self.programs[number] for number in failing}, context)
        types = output.columns()
        found = rejects(explained_rows, category, detail, self.name).withColumn("_port", F.lit(None).cast("string"))
        kept = [F.lit(None).cast(types[name]).alias(name) if name in output.data else column(name) for name in names]
        return found.select(*kept)


def _test(program: Program, context: spark.Context) -> tuple[Column, Column | None]:
    """Whether a condition is true (never null), and where it failed."""
    assert program.expression is not None  # a predicate
    value, failed = spark.column(program.expression, context)
    return F.coalesce(value, F.lit(False)), failed


class _Ports(Operator):
    """The base of all routes: a port for each branch."""

    kind = "route"
    conditions: Conditions

    def ports(self) -> tuple[str, ...]:
        """The branches; there is no main port."""
        return self.conditions.branches

    def port_rows(self, rows: Rows, name: str | None) -> Rows:
        """The rows of one branch."""
        return rows if name is None else rows.where(has_value("_port", name))

    def reads_source(self) -> frozenset[str]:
        """The provenance of a record that the conditions read."""
        return self.conditions.reads

    def describe(self) -> Sequence[str]:
        """Mode and branches with their conditions."""
        pairs = zip(self.conditions.branches, self.conditions.programs, strict=False)
        return (f"mode: {self.conditions.mode}", *(f"branch {name}: {program.text.strip()}" for name, program in pairs), f"default: {self.conditions.branches[-1]}")


class Route(_Ports, Linear):
    """A route whose conditions give the same answer in every run."""

    def __init__(self, row: RowType, output: RowType, conditions: Conditions, fingerprint: Mapping[str, Any]) -> None:
        super().__init__(conditions.name, (row,), output, fingerprint)
        self.conditions = conditions

    def bound(self, changes: int, live: int) -> int | None:
        """One row a record, or one for each branch."""
        return changes if self.conditions.mode == "exclusive" else changes * len(self.conditions.branches)

    def images(self, rows: Rows, index: int, values: RunValues) -> Rows:
        """Each op row in its branches."""
        return rows.through(lambda frame: self.conditions.images(frame, self.inputs[0], self.output, values))


class VolatileRoute(_Ports, Keyed):
    """A route that reads the clock or the run: each record is placed once and retracted where it was placed."""

    deterministic = False

    def __init__(self, row: RowType, output: RowType, conditions: Conditions, fingerprint: Mapping[str, Any]) -> None:
        super().__init__(conditions.name, (row,), output.carrying(["_lookup"]), fingerprint)
        self.conditions = conditions

    def bound(self, changes: int, live: int) -> int | None:
        """Each changed record leaves its branches and takes others."""
        return 2 * changes * len(self.conditions.branches)

    def lookup(self, frame: DataFrame, index: int, values: RunValues) -> DataFrame:
        """Each record by itself."""
        return frame.withColumn("_lookup", F.col("_key"))

    def compute(self, frames: Sequence[DataFrame], values: RunValues) -> DataFrame:
        """The branches of each live record."""
        frame = frames[0]
        if "_op" not in frame.columns:
            frame = frame.select(F.lit(0).cast("tinyint").alias("_op"), F.lit("recompute").alias("_cause"), "*")
        return self.conditions.images(frame.withColumn("_lookup", F.col("_key")), self.inputs[0], self.output, values)


def _provisional(config: RouteConfig, inputs: Sequence[RowType]) -> Schema:
    return inputs[0].data


@node_type("route", RouteConfig, provisional=_provisional)
def bind(spec: NodeSpec, binding: Binding) -> Route | VolatileRoute | None:
    """Check a route and give its operator."""
    config: RouteConfig = spec.config
    good = _check_branches(config, binding)
    compiled = [binding.compile(spec, ("config", "conditions", name), text, "predicate") for name, text in config.conditions.items()]
    programs = tuple(program for program in compiled if program is not None)
    if not good or len(programs) < len(compiled):
        return None
    row = binding.input
    key = row.key if config.mode == "exclusive" else KeyShape("index", parts=(row.key,))
    output = replace(row, key=key, hidden=()).carrying(["_port", "_error"])
    conditions = Conditions(spec.name, config.mode, config.branches, programs)
    texts = [[name, program.normal_text()] for name, program in zip(config.conditions, programs, strict=True)]
    fingerprint = {"mode": config.mode, "conditions": texts, "default": config.default}
    made = Route if all(program.deterministic for program in programs) else VolatileRoute
    return made(row, output, conditions, fingerprint)


def _check_branches(config: RouteConfig, binding: Binding) -> bool:
    """Whether the branches can be: not too many, and the default not one of the conditions."""
    good = True
    if len(config.branches) > MAX_BRANCHES:
        binding.problems.report("E260", f"{len(config.branches)} branches, {MAX_BRANCHES} at most", ("config", "conditions"), help="the default is one of them")
        good = False
    if config.default in config.conditions:
        binding.problems.report("E261", f"the default '{config.default}' is the name of a condition too", ("config", "default"), help="give the default a name of its own")
        good = False
    return good
