"""Operators under test: text tables in, text tables out, in memory, without files, Delta tables or a ledger.

    totals = bound("aggregate", {"group_by": ["g"], "cxl": "emit total = sum(v)"}, "g:string, v:int")
    check(engine, totals, '''
        input  | op | key | g | v
        before | +A | 1   | x | 1
        delta  | +A | 2   | x | 4
        output | op | g | total
        expect | -C | x | 1
        expect | +C | x | 5
    ''')

A history is a list of steps. A header names an input, or `output`, and columns. Lines below it are op rows:

* `before`: rows of the first step, whose answer is not compared;
* `delta`: rows of the next step;
* `expect`: the operator's answer to that step, as consolidated op rows in the order of keys.

Cells are separated by `|`, and an empty cell is null. A key is the bytes of its text. The column `error` of the output is the category of a reject.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changelog.algebra import fold, latest
from changelog.columns import EPOCH, KEY, OP
from changelog.lazy_imports import pa, pc
from changelog.ops import BY_SYMBOL, Op
from changelog.rows import Limits, Rows
from cxl import CxlErrors, Target
from cxl.types.types import Schema, parse_type
from operators.core.binding import Binding, ConfigPath
from operators.core.delta import Delta
from operators.core.evaluate import Narrow, as_it_is
from operators.core.following import answered
from operators.core.operator import Operator
from operators.core.registry import find
from operators.core.row_type import RowType, physical_type
from operators.core.run_values import RunValues
from operators.core.settings import InputRef, NodeSpec, PipelineSettings
from storage.values.decimals import decimal_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage.engines.base import Engine

_ARROW = {"string": "string", "bigint": "int64", "double": "float64", "boolean": "bool", "date": "date32", "timestamp": "timestamp"}
_READ: Mapping[str, Callable[[str], Any]] = {"bigint": int, "double": float, "boolean": lambda word: word == "true"}
_OUTPUT = "output"


def bound(kind: str, config: Mapping[str, Any], *inputs: str, name: str = "node", qualifiers: Sequence[str] = ()) -> Operator:
    """Return an operator bound to its inputs.

    Args:
        kind: The node type.
        config: The `config` of the node.
        inputs: Columns of each input, as `id:int, g:string`.
        name: The node's name.
        qualifiers: The names of the inputs of a combine.

    Raises:
        AssertionError: The node has a problem; the message lists all of them.
    """
    type_ = find(kind)
    assert type_ is not None, f"no node type {kind}"
    rows = [RowType(_schema(text)) for text in inputs]
    refs = tuple(InputRef(f"input{at}", None, qualifiers[at] if qualifiers else None) for at in range(len(rows)))
    problems = _Problems()
    spec = NodeSpec(name, kind, type_.config.model_validate(config), refs)
    operator = type_.bind(spec, Binding(rows, PipelineSettings("test", Path()), problems))
    assert isinstance(operator, Operator), "\n".join(problems.messages)
    return operator.with_hidden(rows, frozenset())


def check(engine: Engine, operator: Operator, history: str, inputs: Sequence[str] = ("input",), *, few: bool = True) -> None:
    """Assert that an operator answers each step of a history as expected.

    Args:
        engine: Evaluates the operator's plans.
        operator: A bound operator.
        history: Text tables, see the module's docstring.
        inputs: The names of the inputs in headers.
        few: Whether deltas count as small.
    """
    memory = Memory(engine, operator, few=few)
    for number, step in enumerate(_steps(history, inputs), 1):
        made = memory.answer([_table(operator.inputs[at], step.rows.get(at, ())) for at in range(len(inputs))])
        if step.expected is not None:
            columns, lines = step.expected
            shown = _shown(made, columns)
            assert shown == lines, "\n".join([f"step {number} answers", *(" | ".join(row) for row in [columns, *shown])])


@dataclass
class Memory:
    """The changelogs of an operator and its inputs, and its states, as Arrow tables. It is the operator's context too.

    Attributes:
        limits: What the operator keeps on the driver and of a group.
        few: Whether deltas count as small.
    """

    engine: Engine
    operator: Operator
    limits: Limits = field(default_factory=Limits)
    few: bool = True
    epoch: int = 0
    inputs: list[pa.Table] = field(default_factory=list)
    deltas: list[pa.Table] = field(default_factory=list)
    own: pa.Table | None = None
    states: pa.Table | None = None
    remarks: list[str] = field(default_factory=list)

    def answer(self, deltas: Sequence[pa.Table]) -> pa.Table:
        """Return the operator's consolidated answer to the deltas of its inputs, and store it."""
        self.epoch += 1
        self.deltas = list(deltas)
        known = self.inputs or [delta.slice(0, 0).append_column(EPOCH, pa.array([], pa.int64())) for delta in deltas]
        self.inputs = [pa.concat_tables([before, self._dated(delta)]) for before, delta in zip(known, deltas, strict=True)]
        states = self.states
        made = answered(self.operator, self, lambda: vars(self).update(states=states)).consolidated().on_driver().as_table()
        self.own = self._dated(made) if self.own is None else pa.concat_tables([self.own, self._dated(made).select(self.own.column_names).cast(self.own.schema)])
        return made

    def _dated(self, rows: pa.Table) -> pa.Table:
        return rows.append_column(EPOCH, pa.array([self.epoch] * rows.num_rows, pa.int64()))

    @property
    def values(self) -> RunValues:
        """No system variables but the epoch."""
        return RunValues(epoch=self.epoch, in_tasks=self.first and self.engine.python_is_near)

    @property
    def first(self) -> bool:
        """Whether this is the first step."""
        return self.epoch == 1

    @property
    def own_rows(self) -> int | None:
        """The number of the operator's live rows before this step."""
        return None if self.own is None else fold(self.rows(self.own)).count()

    def of_all(self) -> Memory:
        """The same: rows are few anyway."""
        return self

    def live_rows(self, index: int) -> int:
        """The number of live rows of an input."""
        return fold(self.rows(self.inputs[index])).count()

    def changed_rows(self, index: int) -> int:
        """The number of op rows of an input's delta."""
        return int(self.deltas[index].num_rows)

    def delta(self, index: int) -> Delta | None:
        """The delta of an input; None where it has no rows."""
        rows = self.deltas[index]
        return Delta(self.rows(rows), signed=bool(pc.any(pc.not_equal(rows.column(OP), 0)).as_py())) if rows.num_rows or self.first else None

    def live_input(self, index: int, narrow: Narrow = as_it_is) -> DataFrame:
        """The live rows of an input, this step's included."""
        return fold(self.rows(self.inputs[index])).through(narrow).without(EPOCH).as_frame()

    def live_own(self, keys: Rows | None = None, on: str = "_lookup") -> Rows:
        """The operator's live rows before this step."""
        assert self.own is not None, "the first step asks for prior rows"
        live = fold(self.rows(self.own)).without(EPOCH)
        return live if keys is None else live.semi_join(keys.on_driver(), on)

    @property
    def may_have_rejects(self) -> bool:
        """Whether the operator had rejects before this step."""
        return self.own is not None and "_error" in self.own.column_names and self.own.column("_error").null_count < self.own.num_rows

    def own_state(self, keys: Rows | None = None) -> Rows | None:
        """The latest state of each key before this step."""
        if self.states is None:
            return None
        found = latest(self.rows(self.states))
        return found if keys is None else found.semi_join(keys.on_driver(), KEY)

    def keep_state(self, state: Rows, *, anew: bool = False, bounds: bool = False) -> Rows:
        """Store this step's states; with `anew` they replace all others."""
        rows = state.on_driver().as_table()
        before = None if anew else self.states
        self.states = self._dated(rows) if before is None else pa.concat_tables([before, self._dated(rows).select(before.column_names).cast(before.schema)])
        return self.rows(rows)

    def rows(self, rows: DataFrame | pa.Table) -> Rows:
        """The rows of a frame or of a table."""
        return Rows.of(self.engine, rows)

    def materialized(self, rows: Rows | DataFrame, *, condensed: bool = False, narrow: bool = False) -> Rows:
        """The rows on the driver, where deltas are small or the rows are few enough."""
        held = self.limits.narrow_rows if narrow else self.limits.held_rows
        return (rows if isinstance(rows, Rows) else self.rows(rows)).on_driver(None if self.few else held)

    def remark(self, text: str) -> None:
        """Keep a warning of the operator."""
        self.remarks.append(text)

    def to_driver_if_small(self, frame: DataFrame) -> Rows:
        """The rows on the driver, where deltas count as small."""
        return self.rows(frame).on_driver() if self.few else self.rows(frame)


@dataclass(frozen=True, slots=True)
class _Step:
    """Op rows by input, as columns and cells; the expected answer, None where it is not compared."""

    rows: Mapping[int, Sequence[Mapping[str, str]]]
    expected: tuple[list[str], list[list[str]]] | None


@dataclass(slots=True)
class _Problems:
    """Problems of a node, as messages."""

    messages: list[str] = field(default_factory=list)

    def report(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None, on_key: bool = False) -> None:
        self.messages.append(f"{code}: {message}")

    def report_help(self, code: str, message: str, path: ConfigPath, help_text: str | None = None) -> None:
        self.report(code, message, path, help=help_text)

    def warn(self, code: str, message: str, path: ConfigPath = (), *, help: str | None = None) -> None:
        """Warnings do not matter here."""

    def cxl(self, errors: CxlErrors, path: ConfigPath, labels: Sequence[Any] = ()) -> None:
        self.messages.extend(f"{one.code}: {one.message}" for one in errors.diagnostics)

    def program(self, path: ConfigPath, text: str, target: Target) -> None:
        """Programs are of no interest here."""

    def similar(self, name: str, known: Sequence[str]) -> str | None:
        return None


def _schema(text: str) -> Schema:
    return Schema((name.strip(), parse_type(type_.strip()).or_null) for name, _, type_ in (column.partition(":") for column in re.split(r",(?![^(]*\))", text)))


def _steps(history: str, inputs: Sequence[str]) -> Iterator[_Step]:
    """The steps of a history: `before` lines, then `delta` and `expect` lines in turn."""
    rows: dict[int, list[Mapping[str, str]]] = {}
    expected: tuple[list[str], list[list[str]]] | None = None
    at, columns, last = 0, list[str](), ""
    for label, *cells in (_cells(line) for line in history.strip().splitlines() if line.strip()):
        if label == _OUTPUT:
            columns, expected = cells, (cells, [])
            continue
        if (rows or last) and last != label and (last, label) != ("delta", "expect") and label not in inputs and label != "expect":
            yield _Step(rows, expected)
            rows, expected = {}, None
        if label in inputs:
            at, columns = inputs.index(label), cells
            continue
        if label == "expect":
            assert expected is not None, "expected rows need an output header"
            expected[1].append(cells)
        else:
            rows.setdefault(at, []).append(dict(zip(columns, cells, strict=True)))
        last = label
    yield _Step(rows, expected)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _table(row: RowType, lines: Sequence[Mapping[str, str]]) -> pa.Table:
    """The op rows of an input as the engine would give them."""
    data = {name: pa.array([_value(line.get(name, ""), physical_type(type_)) for line in lines], _arrow(physical_type(type_))) for name, type_ in row.data.items()}
    system = {
        OP: pa.array([int(BY_SYMBOL[line["op"]]) for line in lines], pa.int8()),
        KEY: pa.array([line["key"].encode() for line in lines], pa.binary()),
        "_cause": pa.array(["ingest"] * len(lines), pa.string()),
    }
    return pa.table(system | data)


def _arrow(physical: str) -> pa.DataType:
    digits = decimal_type(physical)
    if digits is not None:
        return pa.decimal128(*digits)
    return pa.timestamp("us", "UTC") if physical == "timestamp" else pa.type_for_alias(_ARROW[physical])


def _value(text: str, physical: str) -> Any:
    if text == "":
        return None
    if physical in ("date", "timestamp"):
        return pc.cast(pa.scalar(text), _arrow(physical)).as_py()
    return Decimal(text) if physical.startswith("decimal") else _READ.get(physical, str)(text)


def _shown(rows: pa.Table, columns: Sequence[str]) -> list[list[str]]:
    """Op rows in the order of keys and ops, as cells."""
    found = sorted(rows.to_pylist(), key=lambda row: (row[KEY], row[OP]))
    return [[_cell(row, name) for name in columns] for row in found]


def _cell(row: Mapping[str, Any], name: str) -> str:
    if name == "op":
        return Op(row[OP]).symbol
    if name == "error":
        return "" if row.get("_error") is None else str(json.loads(row["_error"])["category"])
    value = row["_cause"] if name == "cause" else row[name]
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
