"""Errors at a token that the parser cannot read, with what it could read instead.

What was expected follows from the tokens that the parser accepts, and for names from `NAMES`: beginnings of programs that
end where a name must follow. The parser's state behind each of them is its mark.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lark import Token

from cxl.diagnostics import foreign_words
from cxl.diagnostics.diagnostics import Diagnostic, did_you_mean
from cxl.diagnostics.source import Span
from cxl.syntax.ast import TRACE_LEVELS
from cxl.syntax.nesting_limit import MAX_DEPTH, MAX_EACH
from cxl.syntax.tables import MAX_INT, keywords
from cxl.types.types import MOST_DIGITS
from cxl.values.nested import MAX_NESTED

NAMES = {
    "let": "a name behind let",
    "emit": "a field name behind emit",
    "emit meta": "a name behind emit meta",
    "emit $meta.": "a name behind emit meta",
    "emit each": "a name for the element",
    "distinct by": "a field name behind distinct by",
    "use": "a module",
    "use a.": "a module",
    "use a.b.": "a module",
    "use a as": "an alias",
    "use a.b as": "an alias",
    "fn": "a function name",
    "fn f(": "a parameter name",
    "fn f(a,": "a parameter name",
    "fn f(a, b,": "a parameter name",
    "let a = b.": "a method or member name",
    "let a = b::": "a function or constant of the module",
    "let a = $": "a namespace behind '$'",
    "let a = [b for": "a name for the element",
    "let a = {": "a key",
    "let a = {b: c,": "a key",
    "let a = {b: c, d: e,": "a key",
}
ALL_OF_INPUT = "emit a."
ALL_COUNTED = "let a = f(*"
EMIT_SYSTEM = "emit $"
WILDCARD = "let a = match b { _"
PARAMETERS = ("fn f(a", "fn f(a, b", "fn f(a, b, c")
OUTER = ("emit each a in b outer", "emit each it in b outer")
COMPREHENSION = ("let a = [b for c", "let a = [b for it")
EXAMPLES = (*NAMES, *COMPREHENSION, ALL_OF_INPUT, ALL_COUNTED, EMIT_SYSTEM, WILDCARD, *PARAMETERS, *OUTER)

_STATEMENT_HELP = "a statement starts with let, emit, filter, distinct, trace or use"
_CLOSURE_HELP = "closures are only valid as arguments of filter, map, find, any and flat_map"
_COMPREHENSION_HELP = "[expression for name in array if condition]"
_KEY_HELP = "a key is a word, a string, or [expression]"
_EACH_HELP = "emit each name in array { ... }"
_FOREIGN_PAIRS = {("<", ">"): "unequal is written !=", ("-", ">"): "the arrow is written =>", ("==", "="): "equality is written =="}
_FOREIGN = {"&": "and", "&&": "and", "|": "or", "||": "or", "!": "not"}
_SHOWN = 60
_NAMES_OR_UNDERSCORE = ("NAME", "UNDERSCORE")

# The first of these that the parser accepts is what it expects, with the help for it.
_EXPECTED = (
    ("THEN", "then", "if condition then value else alternative"),
    ("RSQB", "]", ""),
    ("RPAR", ")", ""),
    ("ARROW", "=>", "pattern => result"),
    ("EQUAL", "=", ""),
    ("IN", "in", _EACH_HELP),
    ("COLON", ":", "key: value"),
    ("LPAR", "(", ""),
    ("DOT", ".", ""),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the parser failed: the token, and what it knows there."""

    tokens: Sequence[Token]
    at: int
    accepted: frozenset[str]
    example: str
    """The beginning in `EXAMPLES` that leads to the parser's state, or the empty text."""
    statement: int | None
    """Index of the first token of the statement that is being read; None between two statements."""

    @property
    def token(self) -> Token:
        """The token that cannot be read."""
        return self.tokens[self.at]

    def before(self, count: int = 1) -> Token:
        """The token `count` before it; before the first one the end of the text."""
        return self.tokens[self.at - count] if self.at >= count else self.tokens[-1]

    def behind(self, count: int = 1) -> Token:
        """The token `count` behind it."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A diagnostic; `at` is the token from which the next statement is looked for.

    `complete` says that the statement before the token is whole.
    """

    diagnostic: Diagnostic
    at: int
    complete: bool = False


def mistake_at(place: Place) -> Mistake:
    """The error at the token."""
    return next(found for rule in _RULES if (found := rule(place)) is not None)


def too_deep(tokens: Sequence[Token], at: int) -> Mistake:
    """An expression nests too deep at this token."""
    help = "name parts of it with let"
    return _mistake(tokens, at, "CXL-P008", f"expression nesting too deep (max {MAX_DEPTH} levels)", help)


def too_many_literals(tokens: Sequence[Token], at: int) -> Mistake:
    """Arrays and maps nest too deep at this token."""
    help = "name parts of it with let"
    return _mistake(tokens, at, "CXL-P008", f"array and map literals nest too deep (max {MAX_NESTED} levels)", help)


def too_many_blocks(tokens: Sequence[Token], at: int) -> Mistake:
    """Blocks of emit each nest too deep at this token."""
    return _mistake(tokens, at, "CXL-P008", f"emit each nesting too deep (max {MAX_EACH} levels)")


def open_block(tokens: Sequence[Token]) -> Mistake:
    """The text ends in a block."""
    return _mistake(tokens, len(tokens) - 1, "CXL-P001", "expected '}', found end of the program", "the block of emit each is not closed")


# Rules: each says what is wrong, or None where it does not apply --------------------------------------------------------


def _trace_level(place: Place) -> Mistake | None:
    word, token = place.before(), place.token
    if token.type != "STRING" or word.type not in _NAMES_OR_UNDERSCORE or place.statement != place.at - 2 or place.before(2).type != "TRACE":
        return None
    help = did_you_mean(str(word), TRACE_LEVELS) or f"levels are {', '.join(TRACE_LEVELS)}"
    return _mistake(place.tokens, place.at - 1, "CXL-P001", f"unknown trace level {_shown(word)}", help)


def _now_called(place: Place) -> Mistake | None:
    if place.token.type != "LPAR" or place.before().type != "NOW":
        return None
    return _found(place, "CXL-P001", "'now' takes no parentheses", "write now")


def _module_path(place: Place) -> Mistake | None:
    if place.token.type == "PATH" and "AS" in place.accepted and place.example != "let a = b.":
        return _found(place, "CXL-P013", "module paths use '.', not '::'", "use shared.dates")
    if place.token.type == "STAR" and place.example in ("use a.", "use a.b."):
        return _found(place, "CXL-P013", "wildcard imports are not supported", "use the module and write alias::name")
    return None


def _statement(place: Place) -> Mistake | None:
    if "LET" not in place.accepted:
        return None
    if place.token.type == "ARROW" and place.statement is not None:
        return _found(place, "CXL-P012", "'=>' is out of place: a closure is no value", _CLOSURE_HELP)
    mistake = _found(place, "CXL-P011", f"expected a statement, found {_shown(place.token)}", _statement_help(place))
    return Mistake(mistake.diagnostic, place.at, complete=True)


def _statement_help(place: Place) -> str:
    token = place.token
    word = foreign_words.help_for(str(token)) if place.at or token.lower() in keywords() else ""
    if word:
        return word
    if token.type == "NAME" and token.lower() in ("select", "where", "from"):
        return f"CXL is not SQL; {_STATEMENT_HELP}"
    if place.at and token.type not in ("RBRACE", "RPAR"):
        return f"{_STATEMENT_HELP}; or an operator is missing before this"
    return _STATEMENT_HELP


def _system_emitted(place: Place) -> Mistake | None:
    if place.example != EMIT_SYSTEM:
        return None
    if (place.token.type, place.behind().type) == ("DOT", "STAR"):
        return _name_expected(place.tokens, place.at - 1, "an input")
    name = str(place.token)
    help = "only a state node writes variables" if name in ("pipeline", "source", "record") else "emit a field, or emit meta"
    return _mistake(place.tokens, place.at - 1, "CXL-P014", f"'${name}' cannot be written by emit", help)


def _all_of_input(place: Place) -> Mistake | None:
    """`emit a.` goes on with `*` alone: the point was wrong."""
    if place.example != ALL_OF_INPUT:
        return None
    point, what = place.at - 1, NAMES.get(f"emit {place.before(2)}")
    if what:
        return _name_expected(place.tokens, point, what)
    return _mistake(place.tokens, point, "CXL-P001", "expected '=', found '.'")


def _name(place: Place) -> Mistake | None:
    what = NAMES.get(place.example)
    if what is None:
        return None
    if what == "a key":
        return _found(place, "CXL-P001", f"expected a key, found {_shown(place.token)}", _KEY_HELP)
    if place.example == "emit" and (place.behind().type, place.behind(2).type) == ("DOT", "STAR"):
        what = "an input"
    return _name_expected(place.tokens, place.at, what)


def _name_expected(tokens: Sequence[Token], at: int, what: str) -> Mistake:
    token = tokens[at]
    if str(token) in keywords():
        found = _mistake(tokens, at, "CXL-P009", f"expected {what}, found the reserved word {_shown(token)}", "choose another name")
        return Mistake(found.diagnostic, at + 1)  # it was meant as a name: no statement begins here
    return _mistake(tokens, at, "CXL-P001", f"expected {what}, found {_shown(token)}", "names consist of A-Z, a-z, 0-9 and _")


def _closure(place: Place) -> Mistake | None:
    """`=>` in an argument or in parentheses, or `_ =>`."""
    if place.token.type == "UNDERSCORE" and place.behind().type == "ARROW" and {"RPAR", "IF"} <= place.accepted:
        return _closure_parameter(place, place.at)
    if place.token.type != "ARROW" or "RPAR" not in place.accepted or "IF" in place.accepted or place.example in PARAMETERS:
        return None
    if "COMMA" in place.accepted and place.before().type == "NAME" and place.before(2).type in ("LPAR", "COMMA"):
        return _closure_parameter(place, place.at - 1)
    return _found(place, "CXL-P012", "a closure cannot stand here", _CLOSURE_HELP)


def _closure_parameter(place: Place, at: int) -> Mistake:
    message = f"the parameter of a closure is always 'it', found {_shown(place.tokens[at])}"
    return _mistake(place.tokens, at, "CXL-P012", message, "write it => ...")


def _operand(place: Place) -> Mistake | None:
    at = place.at - 1 if place.example == ALL_COUNTED else place.at
    if at == place.at and "INT" not in place.accepted:
        return None
    if place.tokens[at].type == "UNDERSCORE":
        return _mistake(place.tokens, at, "CXL-P010", "'_' is only a pattern of match", "name the value that you mean")
    return _operand_expected(place, at)


def _operand_expected(place: Place, at: int) -> Mistake:
    token = place.tokens[at]
    foreign = _FOREIGN_PAIRS.get((str(place.tokens[at - 1]), str(token))) if at else None
    help = foreign or "here can stand a field, a literal, '(', '-', not, if, match, now or '$'"
    if not foreign and token.type == "DOT":
        help = "a number has digits before its point: 0.5"
    elif not foreign and token.type == "LBRACE":
        help = "the braces open a block: put a map literal into parentheses here"
    return _mistake(place.tokens, at, "CXL-P010", f"expected expression, found {_shown(token)}", help)


def _wildcard(place: Place) -> Mistake | None:
    """`_` that no arrow follows."""
    if place.example != WILDCARD:
        return None
    return _mistake(place.tokens, place.at - 1, "CXL-P010", "'_' is only a pattern of match", "name the value that you mean")


def _separator(place: Place) -> Mistake | None:
    if "COMMA" not in place.accepted:
        return None
    closing = next((sign for name, sign in _CLOSING if name in place.accepted), "")
    wanted = "','" if place.example in PARAMETERS else f"',' or '{closing}'"
    return _found(place, "CXL-P001", f"expected {wanted}, found {_shown(place.token)}")


_CLOSING = (("RPAR", ")"), ("RSQB", "]"), ("RBRACE", "}"))


def _brace(place: Place) -> Mistake | None:
    if "LBRACE" not in place.accepted:
        return None
    each = "OUTER" in place.accepted or place.example in OUTER
    help = _EACH_HELP if each else "match subject { pattern => result, _ => default }"
    return _found(place, "CXL-P001", f"expected '{{', found {_shown(place.token)}", help)


def _sign(place: Place) -> Mistake | None:
    sign, help = next((sign, help) for name, sign, help in _EXPECTED if name in place.accepted)
    if place.example in COMPREHENSION:
        help = _COMPREHENSION_HELP
    elif (sign, place.token.type) == ("=>", "COLON"):
        help = "the braces behind match open a block: put a map literal into parentheses"
    return _found(place, "CXL-P001", f"expected '{sign}', found {_shown(place.token)}", help)


def _end(place: Place) -> Mistake | None:
    if place.accepted and "$END" not in place.accepted:
        return None
    return _found(place, "CXL-P001", f"expected the end of the expression, found {_shown(place.token)}")


_RULES: tuple[Callable[[Place], Mistake | None], ...] = (
    _trace_level, _now_called, _module_path, _system_emitted, _all_of_input, _name, _wildcard, _statement, _closure, _operand,
    _separator, _brace, _end, _sign,
)  # fmt: skip


# Diagnostics ------------------------------------------------------------------------------------------------------------


def _found(place: Place, code: str, message: str, help: str = "") -> Mistake:
    return _mistake(place.tokens, place.at, code, message, help)


def _mistake(tokens: Sequence[Token], at: int, code: str, message: str, help: str = "") -> Mistake:
    """A mistake at a token; one that is no token of the language says what is wrong with it."""
    token = tokens[at]
    no_token = _NO_TOKEN.get(token.type)
    if no_token:
        code, message, help = no_token(str(token))
    return Mistake(Diagnostic(code, message, _span(tokens, at), help=help), at)


def _span(tokens: Sequence[Token], at: int) -> Span:
    """The place of a token; the end of the text is right behind its last token."""
    token = tokens[at]
    if token.type != "$END" or not at:
        return Span(token.start_pos or 0, token.end_pos or 0)
    end = tokens[at - 1].end_pos or 0
    return Span(end, end)


def _shown(token: Token) -> str:
    if token.type == "$END":
        return "end of the program"
    return f"'{token}'" if len(token) <= _SHOWN else f"'{token[:_SHOWN]}...'"


# What is no token -------------------------------------------------------------------------------------------------------


def _glued(text: str) -> tuple[str, str, str]:
    return "CXL-P004", f"malformed number '{text}'", "numbers have digits and one point: no exponent and no '_'; the one suffix is d, of a Decimal: 1.50d"


def _large_int(text: str) -> tuple[str, str, str]:
    shown = text if len(text) <= 30 else f"{text[:27]}..."
    return "CXL-P005", f"integer {shown} does not fit 64 bits", f"the largest integer is {MAX_INT}"


def _large_float(text: str) -> tuple[str, str, str]:
    return "CXL-P005", "number does not fit a 64-bit float", "the largest is about 1.8 times 10 to the power of 308"


def _large_decimal(text: str) -> tuple[str, str, str]:
    help = f"a Decimal has at most {MOST_DIGITS} digits, leading zeros apart, and at most {MOST_DIGITS} behind the point"
    return "CXL-P005", f"Decimal of more than {MOST_DIGITS} digits", help


def _long_string(text: str) -> tuple[str, str, str]:
    help = "a literal has at most 64 KB: divide a pattern or a text into several, or read it from a source"
    return "CXL-P016", f"string literal of {len(text) - 2:,} characters", help


def _open_string(text: str) -> tuple[str, str, str]:
    return "CXL-P003", "string is not closed", f"end it with {text[0]} on the same line; \\n stands for a line break"


def _no_date(text: str) -> tuple[str, str, str]:
    help = "dates are #YYYY-MM-DD#; a comment must not start with a digit: put a blank behind '#'"
    return "CXL-P006", f"'{text.strip()}' is not a date", help


def _foreign(text: str) -> tuple[str, str, str]:
    return "CXL-P007", f"'{text}' is not an operator of CXL", f"write '{_FOREIGN[text]}'"


def _other(text: str) -> tuple[str, str, str]:
    shown = f"'{text}'" if text.isprintable() and not text.isspace() else f"U+{ord(text):04X}"
    help = "names consist of A-Z, a-z, 0-9 and _; other characters stand in strings" if text.isalpha() else ""
    return "CXL-P002", f"unexpected character {shown}", help


_NO_TOKEN: Mapping[str, Callable[[str], tuple[str, str, str]]] = {
    "GLUED_NUMBER": _glued, "NO_INT": _large_int, "NO_FLOAT": _large_float, "NO_DECIMAL": _large_decimal, "NO_STRING": _long_string, "OPEN_STRING": _open_string,
    "NO_DATE": _no_date, "FOREIGN": _foreign, "OTHER": _other,
}  # fmt: skip
