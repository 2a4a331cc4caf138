"""The parser that lark makes of `grammar.lark`, and its tables as JSON.

To analyse the grammar takes a quarter of a second, to read the tables some milliseconds. `python -m cxl.commands.grammar`
writes them anew; tables of another version of lark are left aside, and the grammar is read.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Token
from lark.common import LexerConf
from lark.grammar import Rule
from lark.lexer import ContextualLexer, LexerState, TerminalDef
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_parser_state import ParserState

from cxl.syntax.builder import TreeBuilder, calendar_day
from cxl.types.types import MOST_DIGITS

GRAMMAR = Path(__file__).with_name("grammar.lark")
TABLES = Path(__file__).with_name("tables.json")
STARTS = ("program", "expression")
CONTEXT_WORDS = frozenset({"EACH", "META", "FOR", "IN", "OUTER", "LEVEL"})
"""Terminals that are words only where the parser can go on with them; elsewhere they are names."""
MAX_INT = 2**63 - 1
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
LONGEST_LITERAL = 64 * 1024
"""How many bytes a string literal may have in UTF-8."""
_OPTIONS = ("parser", "lexer", "start", "keep_all_tokens", "maybe_placeholders")

BUILDER = TreeBuilder()


class CxlLexer(ContextualLexer):
    """Reads the same tokens everywhere but for the words of context, so that few scanners serve all states."""

    def __init__(self, conf: LexerConf, states: dict[int, Collection[str]], always_accept: Collection[str] = ()) -> None:
        everywhere = {one.name for one in conf.terminals} - CONTEXT_WORDS
        super().__init__(conf, {state: sorted(CONTEXT_WORDS.intersection(accepted)) for state, accepted in states.items()}, everywhere)

    def lex(self, lexer_state: LexerState, parser_state: ParserState[int]) -> Iterator[Token]:
        """The tokens. A brace is read when the parser has got all tokens before it."""
        for token in super().lex(lexer_state, parser_state):
            yield token.update(type="OPEN_MAP") if token.type == "LBRACE" and _opens_map(parser_state) else token


def _opens_map(state: ParserState[int]) -> bool:
    """Whether a brace opens a map: where no block can begin. The subject of emit each does not begin with one."""
    is_subject = [getattr(one, "type", "") for one in state.value_stack[-3:]] in _SUBJECTS
    return not is_subject and not _shifts(state, "LBRACE") and _shifts(state, "OPEN_MAP")


_SUBJECTS = (["EACH", "NAME", "IN"], ["EACH", "IT", "IN"])


def _shifts(state: ParserState[int], kind: str) -> bool:
    """Whether the parser can go on with a token of this kind."""
    states, stack = state.parse_conf.states, list(state.state_stack)
    while kind in states[stack[-1]]:
        action, rule = states[stack[-1]][kind]
        if action is Shift:
            return True
        if rule.expansion:
            del stack[-len(rule.expansion) :]
        stack.append(states[stack[-1]][rule.origin.name][1])
    return False


class _Kept:
    """Makes lark keep the terminals that no rule reads."""

    def __init__(self, names: Collection[str]) -> None:
        self.always_accept = names

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The stream itself."""
        return stream


# Literals that have no value --------------------------------------------------------------------------------------------


def _int(token: Token) -> Token:
    return _without_value(token) if len(token) > 18 and (len(token.lstrip("0")) > 19 or int(token) > MAX_INT) else token


def _float(token: Token) -> Token:
    return _without_value(token) if len(token) > 300 and math.isinf(float(token)) else token


def _decimal(token: Token) -> Token:
    whole, _, fraction = token[:-1].partition(".")
    return _without_value(token) if len(fraction) > MOST_DIGITS or len((whole + fraction).lstrip("0")) > MOST_DIGITS else token


def _string(token: Token) -> Token:
    return _without_value(token) if len(token) > LONGEST_LITERAL // 4 and literal_bytes(token) > LONGEST_LITERAL else token


def _date(token: Token) -> Token:
    return token if calendar_day(token) else _without_value(token)


def _without_value(token: Token) -> Token:
    return Token.new_borrow_pos(f"NO_{token.type}", str(token), token)


def literal_bytes(literal: str) -> int:
    """How long the text between the quotes of a literal is."""
    return len(literal[1:-1].encode(errors="surrogatepass"))


_CHECKS: Mapping[str, Callable[[Token], Token]] = {"INT": _int, "FLOAT": _float, "DECIMAL": _decimal, "STRING": _string, "DATE": _date}

# Lark -------------------------------------------------------------------------------------------------------------------


@cache
def parser() -> Lark:
    """The parser."""
    stored = json.loads(TABLES.read_bytes())
    if stored["lark"] != lark.__version__:
        stored = tables()
    return loaded(stored)


@cache
def keywords() -> frozenset[str]:
    """The words of the language that are names nowhere but behind a point."""
    words = (one for one in parser().terminals if one.pattern.type == "str" and one.name not in CONTEXT_WORDS)
    return frozenset(one.pattern.value for one in words if one.pattern.value.isalpha())


def readable(name: str) -> bool:
    """Whether a program can read a field of this name: a word that is no keyword, or a path of words with points between them."""
    return _PATH.fullmatch(name) is not None and name.partition(".")[0] not in {*keywords(), "_"}


def loaded(stored: dict[str, Any]) -> Lark:
    """The parser of stored tables."""
    data = _numbered(stored["data"])
    ours = {"transformer": BUILDER, "lexer_callbacks": dict(_CHECKS), "_plugins": {"ContextualLexer": CxlLexer}}
    return Lark.load({"data": {**data, "options": {**data["options"], **ours}}, "memo": _numbered(stored["memo"])})


def _numbered(value: Any) -> Any:
    """The value with numbers for keys again: JSON has only texts."""
    if not isinstance(value, dict):
        return value
    return {int(key) if key.isdigit() else key: _numbered(one) for key, one in value.items()}


def tables() -> dict[str, Any]:
    """The tables, from the grammar: the same ones each time."""
    data, memo = analysed().memo_serialize([TerminalDef, Rule])
    data["options"] = {name: data["options"][name] for name in _OPTIONS}
    data["parser"]["parser"] = _in_order(data["parser"]["parser"])
    return dict(json.loads(json.dumps({"lark": lark.__version__, "data": data, "memo": memo})))


def _in_order(table: dict[str, Any]) -> dict[str, Any]:
    """The parse table with its states numbered as they are reached; lark's numbers differ from run to run."""
    names, starts = table["tokens"], table["start_states"]
    actions = {state: sorted((names[token], action) for token, action in found.items()) for state, found in table["states"].items()}
    order = dict.fromkeys(starts[start] for start in STARTS)
    waiting = list(order)
    while waiting:
        reached = [target for _, (is_reduce, target) in actions[waiting.pop(0)] if not is_reduce and target not in order]
        order.update(dict.fromkeys(reached))
        waiting += dict.fromkeys(reached)
    numbers = {state: number for number, state in enumerate(order)}
    tokens = {name: number for number, name in enumerate(sorted(set(names.values())))}
    return {
        "tokens": {number: name for name, number in tokens.items()},
        "states": {
            numbers[state]: {tokens[name]: (kind, target if kind else numbers[target]) for name, (kind, target) in actions[state]}
            for state in order
        },
        "start_states": {start: numbers[starts[start]] for start in STARTS},
        "end_states": {start: numbers[table["end_states"][start]] for start in STARTS},
    }


def analysed() -> Lark:
    """The parser, made of the grammar."""
    text = GRAMMAR.read_text(encoding="utf-8")
    names = {one.name for one in Lark(text, parser=None, lexer="basic", start=list(STARTS), keep_all_tokens=True).terminals}
    return Lark(
        text, parser="lalr", lexer="contextual", start=list(STARTS), keep_all_tokens=True, maybe_placeholders=False,
        postlex=_Kept(names - CONTEXT_WORDS),
    )  # fmt: skip
