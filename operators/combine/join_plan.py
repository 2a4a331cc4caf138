"""The plan of a combine: a chain of left joins from the driver, each with its share of the predicate.

Pure: turns the typed predicate into steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from cxl.typed import tree
from cxl.typed.program import Conjunct, Program, conjuncts
from cxl.types.types import Kind, Type

_STATIC = frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.STRING, Kind.BOOL, Kind.DATE, Kind.DATE_TIME})
_RANGES = frozenset({"<", "<=", ">", ">="})
_OF_RECORDS = frozenset({"source", "record", "meta", "doc"})
"""Namespaces whose variables belong to a record: in a combine, to the driver's."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one side: a condition that must hold (`is_key` false), or one side of an equality.

    `by_value`: the sides are Decimals of two scales, or a Decimal and an Int, so that keys are compared by the bytes of their values.
    """

    expr: tree.Expr
    is_key: bool
    inputs: frozenset[str] = frozenset()
    by_value: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """Two ordered comparisons that hold exactly where two intervals meet: fields for the lower and the upper end on either side.

    A side whose ends are one field is a point: `r.low <= l.at and l.at <= r.high`.
    """

    left: tuple[tree.Field, tree.Field]
    right: tuple[tree.Field, tree.Field]

    @property
    def parent(self) -> str | None:
        """The input that both ends of the left side come from; None where they come from two."""
        names = {field.qualifier for field in self.left}
        return names.pop() if len(names) == 1 else None

    @property
    def points(self) -> tuple[bool, bool]:
        """Whether the left and the right side are points."""
        return _name(self.left[0]) == _name(self.left[1]), _name(self.right[0]) == _name(self.right[1])


@dataclass(frozen=True, slots=True)
class Step:
    """The join of one build input. Key parts of `left` (over the inputs so far) and `right` (over the build) pair up in order.

    `pairs` are conditions over both; `ranges` of them are ordered comparisons. `band`: where there is no equality, what buckets can be made of.
    `parent`: an input whose key parts or ends of intervals alone lead from a build row to the rows that it can match; None where there is none.
    """

    build: str
    left: tuple[Part, ...]
    right: tuple[Part, ...]
    pairs: tuple[tree.Expr, ...]
    ranges: int
    parent: str | None
    band: Band | None = None

    @property
    def keys(self) -> int:
        """How many equalities there are."""
        return sum(part.is_key for part in self.right)

    def reads(self) -> frozenset[str]:
        """The inputs whose fields the join reads."""
        expressions = [*(part.expr for part in self.left), *self.pairs]
        return frozenset(node.qualifier for expr in expressions for node in tree.walk(expr) if isinstance(node, tree.Field) and node.qualifier is not None)

    def parent_keys(self) -> tuple[tuple[Part, Part], ...]:
        """The equalities whose left side reads the parent alone: left and right sides."""
        left, right = ([part for part in side if part.is_key] for side in (self.left, self.right))
        wanted = frozenset({self.parent})
        return tuple((one, other) for one, other in zip(left, right, strict=True) if one.inputs == wanted)


@dataclass(frozen=True, slots=True)
class Chain:
    """The driver and the steps. `unrelated`: inputs that no comparison relates to the others."""

    driver: str
    steps: tuple[Step, ...]
    unrelated: tuple[str, ...] = ()

    def open(self, match: str, on_miss: str) -> frozenset[str]:
        """Builds that later steps read, where `match: first` wants a row for which the whole predicate holds; only the later steps decide which row that is.

        Under `null_fields`, matched inputs keep their values and the first match of each step counts.
        """
        if match != "first" or on_miss == "null_fields":
            return frozenset()
        return frozenset(name for step in self.steps for name in step.reads() if name not in (self.driver, step.build))


def make_chain(program: Program, qualifiers: Sequence[str], driver: str) -> Chain:
    """The steps of a predicate: next comes the input that is related to those before it, by an equality if one can be."""
    parts = [_with_record(part, driver) for part in conjuncts(program)]
    bound, rest, steps = {driver}, [name for name in qualifiers if name != driver], []
    while rest:
        following = _following(rest, bound, parts)
        if following is None:
            break
        rest.remove(following)
        steps.append(_step(following, frozenset(bound), driver, parts))
        bound.add(following)
    return Chain(driver, tuple(steps), tuple(rest))


def _with_record(part: Conjunct, driver: str) -> Conjunct:
    """A condition that reads variables of a record reads the driver."""
    if not any(isinstance(node, tree.System) and node.namespace in _OF_RECORDS for node in tree.walk(part.expression)):
        return part
    return Conjunct(part.expression, part.inputs | {driver})


def _following(rest: Sequence[str], bound: set[str], parts: Sequence[Conjunct]) -> str | None:
    equal = (name for name in rest if any(_sides(part, name, bound) for part in parts))
    related = (name for name in rest if any(_compares(part, name, bound) for part in parts))
    return next(equal, next(related, None))


def _compares(part: Conjunct, build: str, bound: set[str] | frozenset[str]) -> bool:
    """Whether a comparison has the build on one side and inputs that are there on the other."""
    if part.op is None or part.op == "!=" or not (part.left_inputs and part.right_inputs) or part.left_inputs & part.right_inputs:
        return False
    return build in part.inputs and part.inputs <= bound | {build}


def _sides(part: Conjunct, build: str, bound: set[str] | frozenset[str]) -> tuple[Part, Part] | None:
    """An equality that a key can serve: the side of the inputs so far, the side of the build."""
    if part.op != "==" or part.left is None or part.right is None or not _compares(part, build, bound):
        return None
    if not _are_keys(part.left.type, part.right.type):
        return None
    by_value = _exact(part.left.type, part.right.type) and part.left.type.base != part.right.type.base
    one, other = Part(part.left, True, part.left_inputs, by_value), Part(part.right, True, part.right_inputs, by_value)
    if other.inputs != {build}:
        one, other = other, one
    return (one, other) if other.inputs == {build} else None


def _are_keys(left: Type, right: Type) -> bool:
    """Whether equality of two types is that of keys: of one kind, or of a Decimal and an Int."""
    return left.kind in _STATIC and (left.kind is right.kind or _exact(left, right))


def _exact(left: Type, right: Type) -> bool:
    """Whether values are Decimals, or Decimals and Ints."""
    return Kind.DECIMAL in (left.kind, right.kind) and {left.kind, right.kind} <= {Kind.DECIMAL, Kind.INT}


def _step(build: str, bound: frozenset[str], driver: str, parts: Sequence[Conjunct]) -> Step:
    left: list[Part] = []
    right: list[Part] = []
    pairs: list[Conjunct] = []
    for part in parts:
        sides = _sides(part, build, bound)
        if sides is not None:
            left.append(sides[0])
            right.append(sides[1])
        elif part.inputs <= {driver}:
            left.append(Part(part.expression, False, part.inputs))
        elif part.inputs == {build}:
            right.append(Part(part.expression, False, part.inputs))
        elif build in part.inputs and part.inputs <= bound | {build}:
            pairs.append(part)
    ranges = sum(part.op in _RANGES for part in pairs)
    band = None if any(part.is_key for part in right) else _band(build, pairs)
    return Step(build, tuple(left), tuple(right), tuple(part.expression for part in pairs), ranges, _parent(left, driver) if band is None else band.parent, band)


def _band(build: str, pairs: Sequence[Conjunct]) -> Band | None:
    """The first two comparisons that bound both sides from either end; points are preferred, since they lie in one bucket."""
    if not all(_is_plain(part.left) and _is_plain(part.right) for part in pairs):
        return None  # what can fail is looked at pair by pair
    bounds = [bound for part in pairs if (bound := _bound(build, part)) is not None]
    below, above = ([fields for less, fields in bounds if less is wanted] for wanted in (True, False))
    found = [Band((first[0], last[0]), (last[1], first[1])) for first, last in product(below, above) if _on_one_line(first, last)]
    return max(found, key=lambda band: sum(band.points), default=None)


def _bound(build: str, part: Conjunct) -> tuple[bool, tuple[tree.Field, tree.Field]] | None:
    """Whether a comparison of two fields says that the first is less than the one of `build`, and both; None for any other."""
    left, right = part.left, part.right
    if part.op not in _RANGES or not isinstance(left, tree.Field) or not isinstance(right, tree.Field):
        return None
    less = part.op in ("<", "<=")
    return (not less, (right, left)) if left.qualifier == build else (less, (left, right))


def _on_one_line(first: tuple[tree.Field, tree.Field], last: tuple[tree.Field, tree.Field]) -> bool:
    return _alike(first[0], last[0]) and _alike(*first) and _alike(*last)


def _is_plain(expr: tree.Expr | None) -> bool:
    return isinstance(expr, tree.Field | tree.Literal) and expr.type.kind in _STATIC


def _alike(one: tree.Expr, other: tree.Expr) -> bool:
    """Whether values lie on one line: numbers, dates or moments."""
    kinds = {one.type.kind, other.type.kind}
    return kinds <= {Kind.INT, Kind.FLOAT} or _exact(one.type, other.type) or kinds in ({Kind.DATE}, {Kind.DATE_TIME})


def _name(field: tree.Field) -> tuple[str | None, str]:
    return field.qualifier, field.name


def _parent(left: Sequence[Part], driver: str) -> str | None:
    single = [next(iter(part.inputs)) for part in left if part.is_key and len(part.inputs) == 1]
    return driver if driver in single else next(iter(single), None)


def unplaced(chain: Chain, program: Program) -> Iterator[tree.Expr]:
    """Conditions of a `collect` that no single build and the driver decide."""
    for part in conjuncts(program):
        if len(part.inputs - {chain.driver}) > 1:
            yield part.expression
