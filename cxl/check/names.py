"""The meaning of names.

The innermost definition counts: closure parameter, emit each binding, let and emitted names, then the fields of the input.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cxl.diagnostics import foreign_words
from cxl.diagnostics.diagnostics import Findings, did_you_mean
from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.typed import tree
from cxl.typed.target import NAMESPACES, OF_THE_RECORD, PIPELINE, Target
from cxl.types.types import ANY, DATE_TIME, Type


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that the program defines."""

    name: str
    slot: int
    type: Type

    def read(self, span: Span) -> tree.Local:
        """Return a reference to it."""
        return tree.Local(self.type, span, self.slot, self.name)


@dataclass(slots=True)
class Scope:
    """The names defined so far, in this block and in the blocks around it."""

    outer: "Scope | None" = None
    own: dict[str, Variable] = field(default_factory=dict)

    def find(self, name: str) -> Variable | None:
        """Return the innermost variable of a name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.own:
                return scope.own[name]
            scope = scope.outer
        return None

    def names(self) -> Iterator[str]:
        """Yield every visible name."""
        yield from self.own
        if self.outer is not None:
            yield from self.outer.names()


def defined_later(statements: Iterable[ast.Statement]) -> dict[str, Span]:
    """Return the names that let and emit define at the top level, with the place of their first definition."""
    found: dict[str, Span] = {}
    for statement in statements:
        if isinstance(statement, ast.Let | ast.Emit):
            found.setdefault(statement.name, statement.name_span)
    return found


@dataclass(slots=True)
class Resolver:
    """Resolves names, and reports unknown ones."""

    target: Target
    findings: Findings
    later: dict[str, Span] = field(default_factory=dict)

    def field(self, name: str, span: Span) -> tree.Expr | None:
        """Return the input field of a name; None where there is none. Reports a bare name that must be qualified."""
        target = self.target
        if name in target.schema and not target.qualified_only:
            return tree.Field(target.schema[name], span, name)
        owners = [qualifier for qualifier, schema in target.inputs.items() if name in schema]
        if target.qualified_only and owners:
            forms = " or ".join(f"{owner}.{name}" for owner in owners)
            self.findings.error("CXL-R010", f"field '{name}' must be qualified", span, help=f"write {forms}")
            return poison(span)
        return tree.Field(ANY, span, name) if target.open and name != "it" else None

    def declares(self, name: str) -> bool:
        """Whether an input has a field of this name."""
        return name in self.target.schema or any(name in schema for schema in self.target.inputs.values())

    def unknown(self, name: str, span: Span, scope: Scope, *, emits: bool = False) -> tree.Expr:
        """Report an unknown name. `emits`: the name is read in its own emit, so it must be a field."""
        if name == "it":
            help = "'it' is the element inside a closure: items.filter(it => it > 1)"
            self.findings.error("CXL-R003", "'it' is not defined here", span, help=help)
        elif name in self.later and not emits:
            self.findings.error(
                "CXL-R002", f"'{name}' is not defined yet", span, help="a name can be read behind the statement that defines it"
            )
        else:
            known = [*scope.names(), *self.target.schema, *self.target.inputs]
            help = did_you_mean(name, known) or foreign_words.help_for(name) or _listed("fields", self.target.schema)
            self.findings.error("CXL-R001", f"unknown field '{name}'", span, help=help)
        return poison(span)

    def qualified(self, qualifier: str, name: str, span: Span, name_span: Span) -> tree.Expr:
        """Return `orders.amount` of an input called orders."""
        schema = self.target.inputs[qualifier]
        if name not in schema:
            help = did_you_mean(name, schema) or _listed("fields", schema)
            self.findings.error("CXL-R001", f"unknown field '{name}' in input '{qualifier}'", name_span, help=help)
            return poison(span)
        return tree.Field(schema[name], span, name, None if self.target.mode == "set" else qualifier)

    # System variables ---------------------------------------------------------------------------------------------------

    def system(self, root: ast.SystemRoot, path: Sequence[tuple[str, Span]]) -> tuple[tree.Expr, int]:
        """Return the value of `$namespace.path`, and how many names of the path it takes."""
        namespace = root.namespace
        if namespace not in NAMESPACES:
            help = did_you_mean(namespace, NAMESPACES) or f"there are {', '.join('$' + name for name in NAMESPACES)}"
            self.findings.error("CXL-R004", f"unknown system namespace '${namespace}'", root.span, help=help)
            return poison(root.span), len(path)
        if not path:
            self.findings.error("CXL-R005", f"'${namespace}' needs a member", root.span, help=f"${namespace}.name")
            return poison(root.span), 0
        if namespace == "doc":
            return self._doc(root, path)
        if namespace == "window":
            return self._window_bound(root, path)
        if namespace == "source" and path[0][0] in self.target.system.qualified and len(path) > 1:
            known = self.target.system.qualified[path[0][0]]
            return self._member(root, path[:2], known), 2
        return self._member(root, path[:1], self.target.system.members(namespace)), 1

    def _member(self, root: ast.SystemRoot, path: Sequence[tuple[str, Span]], known: Mapping[str, Type] | None) -> tree.Expr:
        names = tuple(name for name, _ in path)
        known = None if self.target.open and root.namespace in ("vars", "record", "ck") else known
        span = root.span.to(path[-1][1])
        dotted = ".".join((root.namespace, *names))
        if dotted in self.target.system.unexposed:
            help = "declare it in the composition's _compose.scoped_vars"
            self.findings.error("E173", f"composition body references parent-scope variable '${dotted}'", span, help=help)
            return poison(span)
        if known is not None and names[-1] not in known:
            self.findings.error(
                "E200", f"unknown {root.namespace} member '${dotted}'", path[-1][1], help=self._declare(root, names[-1], known)
            )
            return poison(span)
        if root.namespace == "pipeline" and names[0] in OF_THE_RECORD and names[0] not in self.target.system.pipeline:
            return tree.System(PIPELINE[names[0]], span, "source", (OF_THE_RECORD[names[0]],))
        return tree.System(ANY if known is None else known[names[-1]], span, root.namespace, names)

    def _declare(self, root: ast.SystemRoot, name: str, known: Mapping[str, Type]) -> str:
        if root.namespace == "ck":
            return did_you_mean(name, known) or _listed("correlation fields", known)
        place = "pipeline.vars" if root.namespace == "vars" else f"pipeline.vars.{root.namespace}"
        return did_you_mean(name, known) or f"declare it in {place}"

    def _doc(self, root: ast.SystemRoot, path: Sequence[tuple[str, Span]]) -> tuple[tree.Expr, int]:
        if len(path) < 2:
            self.findings.error("CXL-R005", "'$doc' needs a section and a field", root.span, help="$doc.section.field")
            return poison(root.span), len(path)
        (section, _), (name, name_span) = path[:2]
        type_ = self.target.system.doc_type(section, name)
        if type_ is None:
            sections = self.target.system.doc or {}
            near = did_you_mean(section, sections) if section not in sections else did_you_mean(name, sections[section])
            message = f"no source declares the document field '$doc.{section}.{name}', so it is null"
            self.findings.warning("CXL-L003", message, path[0][1].to(name_span), help=near)
            return poison(root.span.to(name_span)), 2
        return tree.System(type_.or_null, root.span.to(name_span), "doc", (section, name)), 2

    def _window_bound(self, root: ast.SystemRoot, path: Sequence[tuple[str, Span]]) -> tuple[tree.Expr, int]:
        name, span = path[0]
        if name in ("start", "end") and self.target.window_bounds:
            return tree.System(DATE_TIME, root.span.to(span), "window", (name,)), 1
        help = (
            "only an aggregate with a time window has bounds"
            if name in ("start", "end")
            else f"a window function has parentheses: $window.{name}()"
        )
        self.findings.error("CXL-W001", f"'$window.{name}' cannot be read here", root.span.to(span), help=help)
        return poison(root.span), 1


def poison(span: Span) -> tree.Literal:
    """Return a null of unknown type. It replaces an expression with an error, and causes no other error."""
    return tree.Literal(ANY, span, None)


def _listed(what: str, names: Iterable[str]) -> str:
    shown = list(names)
    return f"{what}: {', '.join(shown[:8])}{', ...' if len(shown) > 8 else ''}" if shown else ""
