"""How deep the expression that is being read nests, from the parser's stack."""

from lark import Token
from lark.parsers.lalr_parser_state import ParserState

from cxl.syntax import ast
from cxl.syntax.nesting_limit import MAX_DEPTH

_OPERANDS = frozenset(
    ["INT", "FLOAT", "DECIMAL", "STRING", "DATE", "TRUE", "FALSE", "NULL", "NOW", "NAME", "IT", "OUTER", "FOR", "DOLLAR", "LPAR", "LSQB", "OPEN_MAP", "IF", "MATCH"]
)  # fmt: skip
_DEEPER = ("(", "[", "{", ".", "-", "??", "not", "if", "match")


def can_be_deep(text: str) -> bool:
    """Whether a text has enough signs for an expression that nests too deep. Most have not, and are read without counting."""
    return sum(text.count(one) for one in _DEEPER) >= MAX_DEPTH


class Nesting:
    """Counts the levels that are open: parentheses, branches, arguments, signs, alternatives, one postfix after the other."""

    __slots__ = ("_postfixes", "_values")

    def __init__(self, state: ParserState[int]) -> None:
        self._values = state.value_stack
        self._postfixes: list[int] = []
        """For each index of the stack how many postfixes the operand before it has."""

    def too_deep(self, token: Token) -> bool:
        """Whether the token that was read last is one level too deep."""
        at = len(self._values) - 1
        postfix = token.type in ("DOT", "LSQB") and self._operand_before(at)
        self._count(at, postfix)
        if postfix:
            return self._levels(at + 1) > MAX_DEPTH
        if token.type == "NOT" or (token.type == "MINUS" and not self._operand_before(at)):
            return self._levels(at) > MAX_DEPTH
        if token.type in _OPERANDS and self._begins_operand(at):
            return self._levels(at) >= MAX_DEPTH
        return False

    @property
    def full(self) -> bool:
        """Whether the next operand would be one level too deep."""
        return self._levels(len(self._values)) >= MAX_DEPTH

    def _count(self, at: int, postfix: bool) -> None:
        counts = self._postfixes
        del counts[at + 1 :]
        counts.extend([0] * (at + 1 - len(counts)))
        counts[at] = counts[at] + 1 if postfix else 0

    def _levels(self, end: int) -> int:
        return sum(self._level(at) for at in range(end))

    def _level(self, at: int) -> int:
        """How many levels deeper the stack is behind this value."""
        kind = getattr(self._values[at], "type", "")
        if kind in ("DOT", "LSQB") and self._operand_before(at):
            return 1 + self._postfixes[at]
        if kind == "LPAR":
            return 0 if self._is(at - 2, "DOT") or self._is(at - 2, "FN") else 1
        if kind == "MINUS":
            return 0 if self._operand_before(at) else 1
        return 1 if kind in ("COALESCE", "NOT", "IF", "MATCH", "LSQB", "OPEN_MAP") and not self._is(at - 1, "DOT") else 0

    def _begins_operand(self, at: int) -> bool:
        """A name behind a point is none, nor is the parenthesis of a call."""
        before = getattr(self._values[at - 1], "type", "") if at else ""
        if self._values[at].type == "LPAR":
            return before not in ("NAME", "OUTER", "FOR") and not self._is(at - 2, "DOT")
        return before not in ("DOT", "PATH", "DOLLAR")

    def _operand_before(self, at: int) -> bool:
        return at > 0 and isinstance(self._values[at - 1], ast.Node)

    def _is(self, at: int, kind: str) -> bool:
        return at >= 0 and getattr(self._values[at], "type", "") == kind
