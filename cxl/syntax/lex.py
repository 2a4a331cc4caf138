"""Text to tokens (user guide, "Types & Literals", "Comments"; SPEC-DECISIONS, Language 1 to 13).

Blanks, line ends and comments only separate. What cannot be a token becomes an `error` token that carries its diagnostic:
the parser reports it where it meets it.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from cxl.diagnostics.source import Span

KEYWORDS = frozenset(
    ["let", "emit", "if", "then", "else", "and", "or", "not", "match", "use", "as", "fn", "trace", "null", "true", "false", "now", "it", "filter", "distinct", "by"]
)  # fmt: skip
MAX_INT = 2**63 - 1
LONGEST_LITERAL = 64 * 1024
"""How many bytes a string literal may have in UTF-8."""
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class LexError:
    """Why a piece of text is no token."""

    code: str
    message: str
    help: str = ""


class Token(NamedTuple):
    """`kind` is `name int float string date error eof`, or the text of a keyword or operator. `value` is the literal's."""

    kind: str
    text: str
    start: int
    end: int
    value: Any = None

    @property
    def span(self) -> Span:
        """Its place."""
        return Span(self.start, self.end)

    @property
    def shown(self) -> str:
        """As messages name it."""
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}..."
        return "end of the program" if self.kind == "eof" else f"'{text}'"


class Comment(NamedTuple):
    """A comment with its place; `own_line` when nothing but blanks stands before it."""

    text: str
    start: int
    own_line: bool


_TOKEN = re.compile(
    r"""(?P<blank>[\ \t\r\n\ufeff]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?P<glued>[A-Za-z_][A-Za-z0-9_]*)?)
    |(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*"|'(?:[^'\\\r\n]|\\[^\r\n])*')
    |(?P<open>["'][^\r\n]*)
    |(?P<date>\#[0-9][^\#\r\n]*\#?)
    |(?P<comment>\#[^\r\n]*)
    |(?P<foreign>&&?|\|\|?|!(?!=))
    |(?P<op>\?\?|==|!=|<=|>=|=>|::|[-+*/%<>=()\[\]{},.:$])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_DATE = re.compile(r"#([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})#")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_FOREIGN = {"&": "and", "&&": "and", "|": "or", "||": "or", "!": "not"}


def tokenize(text: str) -> tuple[list[Token], list[Comment]]:
    """The tokens of a program, the last one `eof`, and its comments."""
    tokens: list[Token] = []
    comments: list[Comment] = []
    line_start = True
    for found in _TOKEN.finditer(text):
        group = found.lastgroup or ""
        if group == "blank":
            line_start = line_start or "\n" in found[0] or "\r" in found[0]
        elif group == "comment":
            comments.append(Comment(found[0].rstrip(), found.start(), line_start))
        else:
            tokens.append(_MAKE[group](found))
            line_start = False
    tokens.append(Token("eof", "", len(text), len(text)))
    return tokens, comments


def _name(found: re.Match[str]) -> Token:
    word = found[0]
    return Token(word if word in KEYWORDS else "name", word, found.start(), found.end())


def _operator(found: re.Match[str]) -> Token:
    return Token(found[0], found[0], found.start(), found.end())


def _error(found: re.Match[str], code: str, message: str, help: str = "") -> Token:
    return Token("error", found[0], found.start(), found.end(), LexError(code, message, help))


def _number(found: re.Match[str]) -> Token:
    text, glued = found["number"], found["glued"]
    if glued:
        return _error(found, "CXL-P004", f"malformed number '{text}'", "numbers have digits and one point: no exponent, no '_', no suffix")
    if "." in text:
        return _float(found, text)
    if len(text.lstrip("0")) > 19 or int(text) > MAX_INT:
        shown = text if len(text) <= 30 else f"{text[:27]}..."
        return _error(found, "CXL-P005", f"integer {shown} does not fit 64 bits", f"the largest integer is {MAX_INT}")
    return Token("int", text, found.start(), found.end(), int(text))


def _float(found: re.Match[str], text: str) -> Token:
    value = float(text)
    if math.isinf(value):
        return _error(found, "CXL-P005", "number does not fit a 64-bit float", "the largest is about 1.8 times 10 to the power of 308")
    return Token("float", text, found.start(), found.end(), value)


def _string(found: re.Match[str]) -> Token:
    body = found[0][1:-1]
    if len(body) > LONGEST_LITERAL or (len(body) > LONGEST_LITERAL // 4 and len(body.encode(errors="surrogatepass")) > LONGEST_LITERAL):
        return _error(found, "CXL-P015", f"string literal of {len(body):,} characters", _LONG_HELP)
    value = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), body) if "\\" in body else body
    return Token("string", found[0], found.start(), found.end(), value)


_LONG_HELP = "a literal has at most 64 KB: divide a pattern or a text into several, or read it from a source"


def _open_string(found: re.Match[str]) -> Token:
    return _error(found, "CXL-P003", "string is not closed", f"end it with {found[0][0]} on the same line; \\n stands for a line break")


def _date(found: re.Match[str]) -> Token:
    parts = _DATE.fullmatch(found[0])
    value = _real_date(*map(int, parts.groups())) if parts else None
    if value is None:
        help = "dates are #YYYY-MM-DD#; a comment must not start with a digit: put a blank behind '#'"
        return _error(found, "CXL-P006", f"'{found[0].strip()}' is not a date", help)
    return Token("date", found[0], found.start(), found.end(), value)


def _real_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _foreign(found: re.Match[str]) -> Token:
    word = _FOREIGN[found[0]]
    return _error(found, "CXL-P007", f"'{found[0]}' is not an operator of CXL", f"write '{word}'")


def _other(found: re.Match[str]) -> Token:
    character = found[0]
    shown = f"'{character}'" if character.isprintable() and not character.isspace() else f"U+{ord(character):04X}"
    help = "names consist of A-Z, a-z, 0-9 and _; other characters stand in strings" if character.isalpha() else ""
    return _error(found, "CXL-P002", f"unexpected character {shown}", help)


_MAKE: dict[str, Callable[[re.Match[str]], Token]] = {
    "name": _name, "op": _operator, "number": _number, "glued": _number, "string": _string, "open": _open_string,
    "date": _date, "foreign": _foreign, "other": _other,
}  # fmt: skip
