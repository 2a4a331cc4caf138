"""The compiled assignments of a state node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cxl import Program
from cxl.typed import tree
from cxl.types.types import Kind, Type
from operators.core.row_type import RowType
from operators.core.run_values import rider, riding


@dataclass(frozen=True, slots=True)
class Writes:
    """The compiled assignments: (name of the variable, its type, program) in order."""

    name: str
    scope: str
    parts: tuple[tuple[str, Type, Program], ...]

    @property
    def riders(self) -> dict[str, Type]:
        """The columns that are written."""
        return {rider(self.scope, name): type_ for name, type_, _ in self.parts}

    @property
    def dotted(self) -> dict[str, str]:
        """Dotted name of each written variable to its column."""
        return {f"{self.scope}.{name}": rider(self.scope, name) for name, _, _ in self.parts}

    @property
    def reads(self) -> frozenset[str]:
        """The system variables that the assignments read."""
        return frozenset().union(*(program.reads_system for _, _, program in self.parts))

    @property
    def deterministic(self) -> bool:
        """Whether no assignment reads the clock or the run."""
        return all(program.deterministic for _, _, program in self.parts)

    @property
    def plain(self) -> bool:
        """Whether columns can hold the values: no aggregates, no dynamic values, nothing read that is written here."""
        once = len({name for name, _, _ in self.parts}) == len(self.parts)
        fixed = once and all(not program.calls and _is_static(expression_of(program).type, type_) for _, type_, program in self.parts)
        return fixed and not self.reads & set(self.dotted)

    def looks_back(self, row: RowType) -> bool:
        """Whether a record's values depend on the records before it."""
        if self.scope == "record":
            return False
        fresh = set(self.dotted) - set(riding(row))
        return any(program.calls for _, _, program in self.parts) or bool(self.reads & fresh)

    def fingerprint(self) -> dict[str, Any]:
        """The settings that decide whether the logic changed."""
        return {"scope": self.scope, "set": [[name, str(type_), program.normal_text()] for name, type_, program in self.parts]}

    def describe(self) -> tuple[str, ...]:
        """A line for each assignment."""
        return tuple(f"sets ${self.scope}.{name} = {program.text.strip()}" for name, _, program in self.parts)


def _is_static(given: Type, wanted: Type) -> bool:
    """Whether a value of a type fits a variable for sure: a number may have too many digits for a Decimal."""
    return not given.is_dynamic and (wanted.kind is not Kind.DECIMAL or given.base == wanted.base)


def expression_of(program: Program) -> tree.Expr:
    """The expression of an assignment's program."""
    assert program.expression is not None  # programs of mode set are one expression
    return program.expression
