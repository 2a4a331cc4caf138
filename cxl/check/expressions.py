"""Expressions: syntax tree to typed tree, with every error (user guide, "Types & Literals"; SPEC-DECISIONS, Language 24 to 29).

What is in error becomes a literal of unknown type, so its consequences are not reported.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from cxl.check import advice, calls, imports
from cxl.check.modules import Module
from cxl.check.names import Resolver, Scope, Target, Variable, poison
from cxl.diagnostics.diagnostics import Findings, Label
from cxl.syntax import ast
from cxl.syntax.source import Span
from cxl.typed import tree
from cxl.types import rules
from cxl.types.implicit import convert, decided, same_number, same_patterns
from cxl.types.types import ANY, BOOL, DATE, DATE_TIME, FLOAT, INT, NULL, STRING, Kind, Type, unify

_LITERALS: dict[str, Type] = {"int": INT, "float": FLOAT, "string": STRING, "date": DATE, "bool": BOOL, "null": NULL}
_HOLDERS = (Kind.MAP, Kind.ARRAY, Kind.ANY, Kind.NULL)
MOST_PARTS = 50_000
"""How many names, literals, operators and calls a program may have."""
_CONDITION_HELP = "use an explicit comparison"


@dataclass(slots=True)
class Uses:
    """What a program asks of its operator, collected while it is checked.

    `emits`: the names that were emitted, each with its first place; `emitted_all`: those among them that `emit name.*` gave.
    """

    aggregates: list[tree.AggregateUse] = field(default_factory=list)
    windows: list[tree.WindowUse] = field(default_factory=list)
    modules: dict[str, Module] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    emits: dict[str, Span] = field(default_factory=dict)
    emitted_all: set[str] = field(default_factory=set)
    results: set[int] = field(default_factory=set)
    slots: int = 0
    parts: int = 0


@dataclass(slots=True)
class Checker:
    """The state of checking one program: what it is compiled against, the scope, and what has been found.

    `place` replaces every span while the body of a module's function is checked for a call. `inside` says which construct
    stands around (emit, filter, let, aggregate, window), for the rules on where calls may be.
    """

    target: Target
    findings: Findings
    resolver: Resolver
    scope: Scope = field(default_factory=Scope)
    uses: Uses = field(default_factory=Uses)
    definitions: dict[int, tree.Expr] = field(default_factory=dict)
    functions: dict[str, ast.Fn] = field(default_factory=dict)
    aliases: dict[str, Module | None] = field(default_factory=dict)
    module: Module | None = None
    calling: tuple[str, ...] = ()
    place: Span | None = None
    inside: str = "emit"
    emitting: str | None = None

    def at(self, span: Span) -> Span:
        """Where a node is said to be."""
        return self.place or span

    def new_slot(self) -> int:
        """A slot number that nothing else has."""
        self.uses.slots += 1
        return self.uses.slots - 1

    def define(self, name: str, type_: Type, value: tree.Expr | None = None) -> Variable:
        """A new variable, visible from now on."""
        variable = Variable(name, self.new_slot(), type_)
        self.scope.own[name] = variable
        if value is not None:
            self.definitions[variable.slot] = value
        return variable

    def error(self, code: str, message: str, span: Span, *, help: str = "", labels: tuple[Label, ...] = ()) -> tree.Literal:
        """Note an error and give what stands for the expression."""
        self.findings.error(code, message, self.at(span), help=help, labels=() if self.place else labels)
        return poison(self.at(span))

    @property
    def is_too_large(self) -> bool:
        """Whether the program has more than MOST_PARTS parts; the parts of a function count at each call of it."""
        return self.uses.parts > MOST_PARTS

    def too_large(self, span: Span) -> tree.Literal:
        """Note that the program is too large from here on."""
        message = f"the program has more than {MOST_PARTS:,} parts here, those of the functions that it calls counted at each call"
        return self.error("CXL-T012", message, span, help="divide it between two transforms, or keep the result of a function in a let instead of calling it again")

    # Expressions --------------------------------------------------------------------------------------------------------

    def expr(self, node: ast.Expr) -> tree.Expr:
        """The typed form of an expression."""
        self.uses.parts += 1
        return _CHECKS[type(node)](self, node)

    def condition(self, node: ast.Expr, what: str) -> tree.Expr:
        """An expression that decides something: Bool, or true where its type is not known."""
        value = self.expr(node)
        if rules.is_condition(value.type):
            return decided(value)
        return self.error("CXL-T006", f"{what} must be Bool, got {value.type.base}", node.span, help=_CONDITION_HELP)

    def literal(self, node: ast.Literal) -> tree.Expr:
        """A constant."""
        return tree.Literal(_LITERALS[node.kind], self.at(node.span), node.value)

    def now(self, node: ast.Now) -> tree.Expr:
        """`now`."""
        return tree.System(DATE_TIME, self.at(node.span), "now", ())

    def wildcard(self, node: ast.Wildcard) -> tree.Expr:
        """`_` where it is no pattern."""
        return self.error("CXL-P010", "'_' is only a pattern of match", node.span)

    def name(self, node: ast.Name) -> tree.Expr:
        """A bare name."""
        variable = self.scope.find(node.name)
        if variable is not None and not self._is_result(variable):
            return variable.read(self.at(node.span))
        if self.module is not None and node.name in self.module.constants:
            return imports.constant(self, self.module, node.name, node.span)
        span = self.at(node.span)
        return self.resolver.field(node.name, span) or self.resolver.unknown(node.name, span, self.scope, emits=node.name == self.emitting)

    def _is_result(self, variable: Variable) -> bool:
        """Whether a variable is the group's while a single record is looked at: `emit qty = sum(qty)`, then `max(qty)`."""
        return self.inside == "aggregate" and self.target.mode == "aggregate" and variable.slot in self.uses.results

    def unary(self, node: ast.Unary) -> tree.Expr:
        """`-x`, `not x`."""
        operand = self.expr(node.operand)
        rule = rules.negation if node.op == "-" else rules.inversion
        type_ = rule(operand.type)
        if type_ is None:
            wanted = "a number" if node.op == "-" else "Bool"
            return self.error(
                "CXL-T004", f"cannot apply '{node.op}' to {operand.type.base}", node.span, help=f"the operand must be {wanted}"
            )
        return tree.Unary(type_, self.at(node.span), "-" if node.op == "-" else "not", operand)

    # Operators ----------------------------------------------------------------------------------------------------------

    def binary(self, node: ast.Binary) -> tree.Expr:
        """A chain from its inside out, without recursion along its left side."""
        chain = [node]
        while isinstance(chain[-1].left, ast.Binary):
            chain.append(chain[-1].left)
        value: tree.Expr | None = self.expr(chain[-1].left)
        for link in reversed(chain):
            right = self.expr(link.right)
            value = None if value is None else self._operation(link, value, right)
        return poison(self.at(node.span)) if value is None else value

    def _operation(self, node: ast.Binary, left: tree.Expr, right: tree.Expr) -> tree.Expr | None:
        """The typed operation; None where the operands do not go together, so that the rest of the chain is silent."""
        type_ = self._operation_type(node.op, left.type, right.type)
        if type_ is None:
            self._operand_error(node, left, right)
            return None
        if node.op not in ("and", "or"):
            left, right = same_number(left, right)
        op: Any = node.op
        return tree.Binary(type_, self.at(node.span), op, left, right)

    def _operation_type(self, op: str, left: Type, right: Type) -> Type | None:
        if op in tree.ARITHMETIC:
            return rules.arithmetic(op, left, right)
        return rules.comparison(op, left, right) if op in tree.COMPARISON else rules.logical(left, right)

    def _operand_error(self, node: ast.Binary, left: tree.Expr, right: tree.Expr) -> None:
        shown = f"{left.type.base} and {right.type.base}"
        labels = (Label(node.left.span, str(left.type.base)), Label(node.right.span, str(right.type.base)))
        help = advice.for_operands(node.op, left.type, right.type)
        self.error("CXL-T004", f"cannot apply '{node.op}' to {shown}", node.op_span, help=help, labels=labels)

    def coalesce(self, node: ast.Coalesce) -> tree.Expr:
        """`left ?? right`."""
        left, right = self.expr(node.left), self.expr(node.right)
        type_ = right.type if left.type == NULL else rules.join(left.type.base, right.type)
        return tree.Coalesce(type_, self.at(node.span), convert(left, type_.or_null), convert(right, type_))

    def conditional(self, node: ast.If) -> tree.Expr:
        """`if condition then value else alternative`."""
        condition = self.condition(node.condition, "the condition of if")
        then = self.expr(node.then)
        otherwise = self.expr(node.otherwise) if node.otherwise else tree.Literal(NULL, self.at(node.span), None)
        type_ = rules.join(then.type, otherwise.type)
        return tree.If(type_, self.at(node.span), condition, convert(then, type_), convert(otherwise, type_))

    # Match --------------------------------------------------------------------------------------------------------------

    def match(self, node: ast.Match) -> tree.Expr:
        """`match`, in both forms."""
        subject = self.expr(node.subject) if node.subject else None
        arms = [tree.Arm(self._pattern(arm, node.subject, subject), self.expr(arm.result)) for arm in node.arms]
        if all(arm.pattern is not None for arm in arms):
            help = "add '_ => default' as the last arm"
            return self.error(
                "CXL-T007", "match must have a '_' arm that catches the rest", Span(node.span.start, node.span.start + 5), help=help
            )
        last = next(index for index, arm in enumerate(arms) if arm.pattern is None)
        if last < len(arms) - 1:
            self.findings.warning("CXL-L002", "this arm is never reached: '_' stands before it", self.at(node.arms[last + 1].span))
        return self._typed_match(node, subject, arms[: last + 1])

    def _typed_match(self, node: ast.Match, subject: tree.Expr | None, arms: list[tree.Arm]) -> tree.Expr:
        type_ = arms[0].result.type
        for arm in arms[1:]:
            type_ = rules.join(type_, arm.result.type)
        if subject is not None:
            subject, arms = same_patterns(subject, arms)
        done = tuple(replace(arm, result=convert(arm.result, type_)) for arm in arms)
        return tree.Match(type_, self.at(node.span), subject, done)

    def _pattern(self, arm: ast.Arm, subject_node: ast.Expr | None, subject: tree.Expr | None) -> tree.Expr | None:
        if isinstance(arm.pattern, ast.Wildcard):
            return None
        if subject is None or subject_node is None:
            return self.condition(arm.pattern, "a condition of match")
        pattern = self.expr(arm.pattern)
        if unify(subject.type, pattern.type) is None:
            labels = (Label(subject_node.span, str(subject.type.base)),)
            message = f"cannot match {subject.type.base} with a pattern of type {pattern.type.base}"
            return self.error("CXL-T004", message, arm.pattern.span, labels=labels, help="subject and patterns must have one type")
        return pattern

    # Paths --------------------------------------------------------------------------------------------------------------

    def index(self, node: ast.Index) -> tree.Expr:
        """`receiver[index]`."""
        receiver, index = self.expr(node.receiver), self.expr(node.index)
        if receiver.type.kind not in _HOLDERS:
            return self.error("CXL-T011", f"cannot index {receiver.type.base}", node.receiver.span, help="arrays and maps can be indexed")
        return tree.Index(ANY, self.at(node.span), receiver, index)

    def member(self, node: ast.Member) -> tree.Expr:
        """`receiver.name`: a member of a map, a system variable, a field of an input, or of a window row."""
        root, path = _system_path(node)
        if root is not None:
            return self._system_member(root, path)
        declared = self._declared_path(node)
        if declared is not None:
            return declared
        if isinstance(node.receiver, ast.Name) and self._is_qualifier(node.receiver.name):
            return self.resolver.qualified(node.receiver.name, node.name, self.at(node.span), self.at(node.name_span))
        if calls.is_row_call(node.receiver):
            return calls.window_row(self, node.receiver, node.name, node.name_span)
        return self._map_member(node)

    def _declared_path(self, node: ast.Member) -> tree.Expr | None:
        """The field whose whole name is the path: `address.city` where the schema declares `address.city`, unless `address` is a variable."""
        names = _plain_path(node)
        if names is None or self.scope.find(names[0]) is not None:
            return None
        if self._is_qualifier(names[0]):
            rest = ".".join(names[1:])
            known = len(names) > 2 and rest in self.target.inputs[names[0]]
            return self.resolver.qualified(names[0], rest, self.at(node.span), self.at(node.name_span)) if known else None
        whole = ".".join(names)
        return self.resolver.field(whole, self.at(node.span)) if self.resolver.declares(whole) else None

    def _is_qualifier(self, name: str) -> bool:
        return name in self.target.inputs and self.scope.find(name) is None

    def _map_member(self, node: ast.Member) -> tree.Expr:
        receiver = self.expr(node.receiver)
        if receiver.type.kind not in _HOLDERS:
            help = f"a method has parentheses: .{node.name}()"
            return self.error("CXL-T011", f"{receiver.type.base} has no member '{node.name}'", node.name_span, help=help)
        return tree.Member(ANY, self.at(node.span), receiver, node.name)

    def _system_member(self, root: ast.SystemRoot, path: list[ast.Member]) -> tree.Expr:
        value: tree.Expr
        written = self.scope.find(f"$meta.{path[0].name}") if root.namespace == "meta" else None
        if written is not None:
            value, used = written.read(self.at(path[0].span)), 1
        else:
            value, used = self.resolver.system(root, [(link.name, self.at(link.name_span)) for link in path])
        for link in path[used:]:
            value = tree.Member(ANY, self.at(link.span), value, link.name)
        return value

    def system_root(self, node: ast.SystemRoot) -> tree.Expr:
        """A namespace without a member."""
        return self.resolver.system(node, [])[0]


def _system_path(node: ast.Member) -> tuple[ast.SystemRoot | None, list[ast.Member]]:
    """The root and the members of `$namespace.a.b`, outermost last; None where the chain starts with something else."""
    path = [node]
    while isinstance(path[-1].receiver, ast.Member):
        path.append(path[-1].receiver)
    root = path[-1].receiver
    return (root if isinstance(root, ast.SystemRoot) else None), path[::-1]


def _plain_path(node: ast.Member) -> list[str] | None:
    """The names of `a.b.c`; None where the chain starts with something else."""
    names = [node.name]
    receiver = node.receiver
    while isinstance(receiver, ast.Member):
        names.append(receiver.name)
        receiver = receiver.receiver
    return [receiver.name, *reversed(names)] if isinstance(receiver, ast.Name) else None


_CHECKS: dict[type, Callable[[Checker, Any], tree.Expr]] = {
    ast.Literal: Checker.literal, ast.Now: Checker.now, ast.Wildcard: Checker.wildcard, ast.Name: Checker.name,
    ast.Unary: Checker.unary, ast.Binary: Checker.binary, ast.Coalesce: Checker.coalesce, ast.If: Checker.conditional,
    ast.Match: Checker.match, ast.Index: Checker.index, ast.Member: Checker.member, ast.SystemRoot: Checker.system_root,
    ast.MethodCall: calls.method, ast.FreeCall: calls.free, ast.ModuleMember: imports.module_member,
}  # fmt: skip
