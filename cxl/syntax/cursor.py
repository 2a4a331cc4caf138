"""The parser's place in the tokens, and how it says what it expected there."""

from collections.abc import Sequence
from dataclasses import dataclass

from cxl.diagnostics.diagnostics import Diagnostic
from cxl.diagnostics.source import Span
from cxl.syntax.lex import KEYWORDS, LexError, Token
from cxl.syntax.nesting_limit import MAX_DEPTH


class SyntaxFailure(Exception):
    """A token that cannot be accepted. `fatal` ends the parse: going on would only repeat it."""

    def __init__(self, diagnostic: Diagnostic, *, fatal: bool = False) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
        self.fatal = fatal


@dataclass(slots=True)
class Cursor:
    """Tokens, the next one's index, and the depth of nesting reached."""

    tokens: Sequence[Token]
    at: int = 0
    depth: int = 0

    @property
    def next(self) -> Token:
        """The token to be read next; at the end always `eof`."""
        return self.tokens[self.at]

    @property
    def kind(self) -> str:
        """The kind of the next token."""
        return self.tokens[self.at].kind

    def ahead(self, count: int = 1) -> Token:
        """The token `count` behind the next one."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Read the next token."""
        token = self.tokens[self.at]
        if token.kind != "eof":
            self.at += 1
        return token

    def accept(self, kind: str) -> bool:
        """Read the next token if it is of this kind."""
        if self.kind != kind:
            return False
        self.take()
        return True

    def is_word(self, word: str) -> bool:
        """Whether the next token is a name with this text (a word with a meaning only here, such as `outer`)."""
        return self.next.kind == "name" and self.next.text == word

    def expect(self, kind: str, help: str = "") -> Token:
        """Read a token of this kind, or fail at what stands there."""
        if self.kind != kind:
            raise self.failure("CXL-P001", f"expected '{kind}', found {self.next.shown}", help)
        return self.take()

    def expect_name(self, what: str) -> Token:
        """Read a name, or fail saying what it should name."""
        token = self.next
        if token.kind == "name" and token.text != "_":
            return self.take()
        if token.kind in KEYWORDS:
            failure = self.failure("CXL-P009", f"expected {what}, found the reserved word {token.shown}", "choose another name")
            self.take()  # it was meant as a name: no statement begins here
            raise failure
        raise self.failure("CXL-P001", f"expected {what}, found {token.shown}", "names consist of A-Z, a-z, 0-9 and _")

    def failure(self, code: str, message: str, help: str = "", *, fatal: bool = False) -> SyntaxFailure:
        """A failure at the next token; a token that is an error itself says its own."""
        token = self.next
        if isinstance(token.value, LexError) and token.kind == "error":
            code, message, help = token.value.code, token.value.message, token.value.help
        return SyntaxFailure(Diagnostic(code, message, self.place(token), help=help), fatal=fatal)

    def place(self, token: Token) -> Span:
        """Where a token is pointed at; the end of the program is right behind its last token."""
        if token.kind != "eof" or not self.at:
            return token.span
        end = self.tokens[self.at - 1].end
        return Span(end, end)

    def since(self, start: Span) -> Span:
        """From `start` to the end of the last token read."""
        return Span(start.start, max(self.tokens[self.at - 1].end, start.end)) if self.at else start

    def descend(self, extra: int = 0) -> None:
        """Go one level of nesting deeper; too deep is fatal."""
        self.depth += 1
        if self.depth + extra > MAX_DEPTH:
            raise self.failure("CXL-P008", f"expression nesting too deep (max {MAX_DEPTH} levels)", "name parts of it with let", fatal=True)
