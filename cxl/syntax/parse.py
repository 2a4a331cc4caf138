"""Statements: tokens to syntax tree, with recovery at the next statement (user guide, "Statements"; SPEC-DECISIONS, Language 1 to 10).

program   = { let | emit | each | filter | distinct | trace | use | fn }
let       = "let" NAME "=" expr
emit      = "emit" ( NAME | "meta" NAME | "$" "meta" "." NAME ) "=" expr | "emit" NAME "." "*"
each      = "emit" "each" NAME "in" expr [ "outer" ] "{" { let | emit | each | trace | filter | distinct } "}"
filter    = "filter" expr
distinct  = "distinct" [ "by" NAME ]
trace     = "trace" [ "trace" | "debug" | "info" | "warn" | "error" ] ( expr | "if" expr "then" expr )
use       = "use" NAME { "." NAME } [ "as" NAME ]
fn        = "fn" NAME "(" [ NAME { "," NAME } ] ")" "=" expr
"""

from collections.abc import Callable
from dataclasses import dataclass

from cxl.diagnostics import foreign_words
from cxl.diagnostics.diagnostics import Diagnostic, did_you_mean
from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.syntax.cursor import Cursor, SyntaxFailure
from cxl.syntax.lex import KEYWORDS, Comment, Token, tokenize
from cxl.syntax.nesting_limit import MAX_EACH, ensure_room
from cxl.syntax.pratt import end_of_expression, expression

TRACE_LEVELS = ("trace", "debug", "info", "warn", "error")
_VALUE_STARTS = frozenset({"int", "float", "string", "date", "name", "it", "now", "$", "(", "if", "match", "true", "false", "null", "not"})
_STATEMENT_HELP = "a statement starts with let, emit, filter, distinct, trace or use"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a text is: its statements (or its expression), comments, and what is wrong with it."""

    statements: tuple[ast.Statement, ...]
    expression: ast.Expr | None
    comments: tuple[Comment, ...]
    errors: tuple[Diagnostic, ...]


def parse_program(text: str) -> Parsed:
    """A program or a module: statements. Errors are collected; the parse goes on at the next statement."""
    ensure_room()
    tokens, comments = tokenize(text)
    parser = _Statements(Cursor(tokens), text)
    statements = parser.block(top=True)
    return Parsed(tuple(statements), None, tuple(comments), tuple(parser.errors))


def parse_expression(text: str) -> Parsed:
    """One expression and nothing else."""
    ensure_room()
    tokens, comments = tokenize(text)
    cursor = Cursor(tokens)
    try:
        value = expression(cursor)
        if cursor.kind != "eof":
            raise cursor.failure("CXL-P001", f"expected the end of the expression, found {cursor.next.shown}")
    except SyntaxFailure as failure:
        return Parsed((), None, tuple(comments), (failure.diagnostic,))
    return Parsed((), value, tuple(comments), ())


class _Statements:
    """Parses statements; keeps the errors."""

    def __init__(self, cursor: Cursor, text: str) -> None:
        self.cursor = cursor
        self.text = text
        self.errors: list[Diagnostic] = []
        self.each_depth = 0

    def block(self, *, top: bool) -> list[ast.Statement]:
        """Statements up to the end of the program or, in a body, up to `}`."""
        found: list[ast.Statement] = []
        while self.cursor.kind != "eof" and (top or self.cursor.kind != "}"):
            begin = self.cursor.at
            try:
                found.append(self._statement())
            except SyntaxFailure as failure:
                self.errors.append(failure.diagnostic)
                self._recover(begin, top, failure.fatal)
        return found

    def _statement(self) -> ast.Statement:
        parse = _STATEMENTS.get(self.cursor.kind)
        if parse is None:
            raise self._no_statement()
        statement = parse(self)
        end_of_expression(self.cursor, statement.span)
        return statement

    def _no_statement(self) -> SyntaxFailure:
        token = self.cursor.next
        help = _STATEMENT_HELP
        word = foreign_words.help_for(token.text) if self.cursor.at or token.text.lower() in KEYWORDS else ""
        if word:
            help = word
        elif token.kind == "name" and token.text.lower() in ("select", "where", "from"):
            help = f"CXL is not SQL; {_STATEMENT_HELP}"
        elif self.cursor.at and token.kind not in ("}", ")"):
            help = f"{_STATEMENT_HELP}; or an operator is missing before this"
        return self.cursor.failure("CXL-P011", f"expected a statement, found {token.shown}", help)

    # Recovery -----------------------------------------------------------------------------------------------------------

    def _recover(self, begin: int, top: bool, fatal: bool) -> None:
        """Go on at the next statement, looking for it behind the braces that the failed one opened."""
        cursor = self.cursor
        cursor.depth = 0
        if fatal:
            cursor.at = len(cursor.tokens) - 1
            return
        failed_at = max(cursor.at, begin + (cursor.at == begin))
        opened = self._braces(begin, cursor.at)
        cursor.at = self._next_statement(failed_at, opened, top) or self._next_statement(failed_at, 0, top) or len(cursor.tokens) - 1

    def _braces(self, begin: int, end: int) -> int:
        kinds = [token.kind for token in self.cursor.tokens[begin:end]]
        return max(kinds.count("{") - kinds.count("}"), 0)

    def _next_statement(self, start: int, opened: int, top: bool) -> int | None:
        tokens = self.cursor.tokens
        for at in range(start, len(tokens)):
            kind = tokens[at].kind
            if opened <= 0 and ((kind in _STATEMENTS and self._starts_line_or_statement(at)) or (kind == "}" and not top)):
                return at
            opened += (kind == "{") - (kind == "}" and opened > 0)
        return None

    def _starts_line_or_statement(self, at: int) -> bool:
        """Whether the keyword there begins a statement: `.filter(` does not."""
        return at == 0 or self.cursor.tokens[at - 1].kind != "."

    # Statements ---------------------------------------------------------------------------------------------------------

    def let(self) -> ast.Statement:
        """`let name = expr`."""
        start = self.cursor.take().span
        name = self.cursor.expect_name("a name behind let")
        value = self._assigned()
        return ast.Let(self.cursor.since(start), name.text, name.span, value)

    def emit(self) -> ast.Statement:
        """The forms of emit."""
        start = self.cursor.take().span
        following = self.cursor.ahead().kind
        if (following, self.cursor.ahead(2).kind) == (".", "*"):
            return self._emit_all(start)
        if self.cursor.is_word("each") and following != "=":
            return self._each(start)
        if self.cursor.kind == "$":
            return self._emit_system(start)
        if self.cursor.is_word("meta") and following != "=":
            self.cursor.take()
            return self._emit_meta(start)
        name = self.cursor.expect_name("a field name behind emit")
        value = self._assigned()
        return ast.Emit(self.cursor.since(start), name.text, name.span, value)

    def _emit_all(self, start: Span) -> ast.Statement:
        name = self.cursor.expect_name("an input")
        self.cursor.expect(".")
        self.cursor.expect("*")
        return ast.EmitAll(self.cursor.since(start), name.text, name.span)

    def _emit_meta(self, start: Span) -> ast.Statement:
        name = self.cursor.expect_name("a name behind emit meta")
        value = self._assigned()
        return ast.EmitMeta(self.cursor.since(start), name.text, name.span, value)

    def _emit_system(self, start: Span) -> ast.Statement:
        if self.cursor.ahead().text != "meta":
            namespace = self.cursor.ahead().text
            help = "only a state node writes variables" if namespace in ("pipeline", "source", "record") else "emit a field, or emit meta"
            raise self.cursor.failure("CXL-P014", f"'${namespace}' cannot be written by emit", help)
        self.cursor.at += 2
        self.cursor.expect(".")
        return self._emit_meta(start)

    def _assigned(self) -> ast.Expr:
        self.cursor.expect("=")
        return expression(self.cursor)

    def _each(self, start: Span) -> ast.Statement:
        cursor = self.cursor
        cursor.take()
        binding = cursor.take() if cursor.kind == "it" else cursor.expect_name("a name for the element")
        if not cursor.is_word("in"):
            raise cursor.failure("CXL-P001", f"expected 'in', found {cursor.next.shown}", "emit each name in array { ... }")
        cursor.take()
        source = expression(cursor)
        outer = cursor.is_word("outer")
        if outer:
            cursor.take()
        brace = cursor.expect("{", "emit each name in array { ... }")
        body = self._each_body(brace)
        return ast.EmitEach(cursor.since(start), binding.text, source, outer, brace.start, tuple(body))

    def _each_body(self, brace: Token) -> list[ast.Statement]:
        if self.each_depth >= MAX_EACH:
            self.cursor.at -= 1
            raise self.cursor.failure("CXL-P008", f"emit each nesting too deep (max {MAX_EACH} levels)", fatal=True)
        self.each_depth += 1
        body = self.block(top=False)
        self.each_depth -= 1
        if self.cursor.kind == "eof" and not self.errors:
            raise self.cursor.failure("CXL-P001", "expected '}', found end of the program", "the block of emit each is not closed")
        self.cursor.accept("}")
        return body

    def filter(self) -> ast.Statement:
        """`filter expr`."""
        start = self.cursor.take().span
        condition = expression(self.cursor)
        return ast.Filter(self.cursor.since(start), condition)

    def distinct(self) -> ast.Statement:
        """`distinct`, `distinct by name`."""
        start = self.cursor.take().span
        if not self.cursor.accept("by"):
            return ast.Distinct(start, None, start)
        name = self.cursor.expect_name("a field name behind distinct by")
        return ast.Distinct(start.to(name.span), name.text, name.span)

    def trace(self) -> ast.Statement:
        """`trace`, with its level and guard."""
        start = self.cursor.take().span
        level = self._trace_level()
        guarded = self.cursor.kind == "if"
        message = expression(self.cursor)
        if guarded and isinstance(message, ast.If) and message.otherwise is None:
            return ast.Trace(self.cursor.since(start), level, message.condition, message.then)
        return ast.Trace(self.cursor.since(start), level, None, message)

    def _trace_level(self) -> str | None:
        """`info` is a level where a value follows it, else a field of that name."""
        word, following = self.cursor.next, self.cursor.ahead()
        if word.kind == "name" and word.text not in TRACE_LEVELS and following.kind == "string":
            help = did_you_mean(word.text, TRACE_LEVELS) or f"levels are {', '.join(TRACE_LEVELS)}"
            raise self.cursor.failure("CXL-P001", f"unknown trace level {word.shown}", help)
        is_level = word.text in TRACE_LEVELS and word.kind in ("name", "trace") and following.kind in _VALUE_STARTS
        return self.cursor.take().text if is_level else None

    def use(self) -> ast.Statement:
        """`use path as alias`."""
        start = self.cursor.take().span
        path = [self.cursor.expect_name("a module").text]
        while self.cursor.accept("."):
            if self.cursor.kind == "*":
                raise self.cursor.failure("CXL-P013", "wildcard imports are not supported", "use the module and write alias::name")
            path.append(self.cursor.expect_name("a module").text)
        if self.cursor.kind == "::":
            raise self.cursor.failure("CXL-P013", "module paths use '.', not '::'", "use shared.dates")
        alias = self.cursor.expect_name("an alias").text if self.cursor.accept("as") else None
        return ast.Use(self.cursor.since(start), tuple(path), alias)

    def fn(self) -> ast.Statement:
        """`fn name(params) = expr`."""
        start = self.cursor.take().span
        name = self.cursor.expect_name("a function name")
        self.cursor.expect("(")
        params = self._params()
        body = self._assigned()
        return ast.Fn(self.cursor.since(start), name.text, name.span, params, body)

    def _params(self) -> tuple[str, ...]:
        names: list[str] = []
        while self.cursor.kind != ")":
            names.append(self.cursor.expect_name("a parameter name").text)
            if self.cursor.kind != ")":
                self.cursor.expect(",")
        self.cursor.take()
        return tuple(names)


_STATEMENTS: dict[str, Callable[[_Statements], ast.Statement]] = {
    "let": _Statements.let, "emit": _Statements.emit, "filter": _Statements.filter, "distinct": _Statements.distinct,
    "trace": _Statements.trace, "use": _Statements.use, "fn": _Statements.fn,
}  # fmt: skip
