"""One parse: the parser reads token after token; behind an error it goes on with the next statement."""

from collections.abc import Mapping, Sequence
from functools import cache
from threading import RLock
from typing import Any

from lark import Token, UnexpectedToken
from lark.lexer import LexerThread
from lark.parsers.lalr_analysis import Shift

from cxl.diagnostics.diagnostics import Diagnostic
from cxl.syntax import errors
from cxl.syntax.errors import EXAMPLES, Mistake, Place
from cxl.syntax.nesting import Nesting, can_be_deep
from cxl.syntax.nesting_limit import MAX_EACH
from cxl.syntax.tables import BUILDER, CONTEXT_WORDS, parser
from cxl.values.nested import MAX_NESTED

_ONE_AT_A_TIME = RLock()
"""The builder of the tree knows the text that is being read, so threads take turns."""
_STATEMENTS = frozenset({"LET", "EMIT", "FILTER", "DISTINCT", "TRACE", "USE", "FN"})


def read(text: str, start: str) -> tuple[Any, tuple[Diagnostic, ...]]:
    """The statements of a text (start "program") or its expression (start "expression"), and what is wrong with it."""
    with _ONE_AT_A_TIME:
        reader = _Reader(text, start)
        return reader.run(), tuple(reader.errors)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, the last one `$END`. Words of context are names."""
    thread: Any = LexerThread.from_text(parser().parser.lexer.root_lexer, text)
    found = [_plain(token) for token in thread.lex(None)]
    return [*found, _end(text)]


def _plain(token: Token) -> Token:
    if token.type not in CONTEXT_WORDS:
        return token
    return token.update(type="TRACE" if str(token) == "trace" else "NAME")


def _end(text: str) -> Token:
    return Token("$END", "", len(text), end_pos=len(text))


class _Reader:
    """The state of one parse."""

    def __init__(self, text: str, start: str) -> None:
        self.text = text
        self.errors: list[Diagnostic] = []
        self._bare = start == "expression"
        self._parse: Any = parser().parse_interactive(text, start=start)
        self._state = self._parse.parser_state
        self._nesting = Nesting(self._state) if can_be_deep(text) else None
        self._tokens: Sequence[Token] = ()
        BUILDER.end = 0

    def run(self) -> Any:
        """The parsed statements or expression. None where an expression has an error."""
        for token in self._parse.lexer_thread.lex(self._state):
            try:
                self._feed(token)
            except UnexpectedToken:
                self._stop_at(self._index(token))
            if self._bare and self.errors:
                return None
        return self._finish()

    def _feed(self, token: Token) -> None:
        self._state.feed_token(token)
        BUILDER.end = token.end_pos or 0
        if self._nesting is not None and self._nesting.too_deep(token) and not self._begins_closure(token):
            self._give_up(errors.too_deep(self._all_tokens(), self._index(token)))
        elif token.type in ("LSQB", "OPEN_MAP") and self._literals() > MAX_NESTED:
            self._give_up(errors.too_many_literals(self._all_tokens(), self._index(token)))
        elif token.type == "LBRACE" and self._state.position in _list_states() and self._blocks() > MAX_EACH:
            self._pop(len(self._state.value_stack) - 1)
            self._give_up(errors.too_many_blocks(self._all_tokens(), self._index(token)))

    def _finish(self) -> Any:
        """Feed the end of the text until the parser takes it: blocks may be open."""
        end = _end(self.text)
        while True:
            try:
                return self._parse.feed_token(end)
            except UnexpectedToken:
                self._stop_at(len(self._all_tokens()) - 1)
                if self._bare:
                    return None

    # Errors -------------------------------------------------------------------------------------------------------------

    def _all_tokens(self) -> Sequence[Token]:
        if not self._tokens:
            self._tokens = tokens_of(self.text)
        return self._tokens

    def _index(self, token: Token) -> int:
        return next(at for at, one in enumerate(self._all_tokens()) if one.start_pos == token.start_pos)

    def _begins_closure(self, token: Token) -> bool:
        """Whether `=>` follows: then the body is the operand, not this token."""
        return token.type == "IT" and self._all_tokens()[self._index(token) + 1].type == "ARROW"

    def _stop_at(self, at: int) -> None:
        """The parser cannot read the token with this index: note why, and go on at the next statement."""
        if self._nesting is not None and self._nesting.full and self._state.position in _operand_states():
            self._give_up(errors.too_deep(self._all_tokens(), at))
        else:
            self._recover(self._mistake(at))

    def _mistake(self, at: int) -> Mistake:
        """The error at the token with this index, at which the parser stopped."""
        accepted = frozenset(self._parse.accepts())
        example = _examples().get(self._state.position, "")
        return errors.mistake_at(Place(self._all_tokens(), at, accepted, example, self._statement_start()))

    def _recover(self, mistake: Mistake) -> None:
        """Note the mistake and go on at the next statement."""
        at_end = mistake.at >= len(self._all_tokens()) - 1
        if self._bare:
            self.errors.append(mistake.diagnostic)
            return
        if mistake.complete:
            self._complete_statement()
            begin = mistake.at
            if at_end:
                self._end_block()
                return
        else:
            begin = self._drop_statement()
        self.errors.append(mistake.diagnostic)
        self._continue_at(self._next(begin, mistake.at))

    def _give_up(self, mistake: Mistake) -> None:
        """Note the mistake and leave the rest of the text."""
        self.errors.append(mistake.diagnostic)
        if not self._bare:
            self._drop_statement()
            self._continue_at(len(self._all_tokens()) - 1)

    def _end_block(self) -> None:
        """The text ends in a block: an error, unless there was one before."""
        tokens = self._all_tokens()
        if self.errors:
            BUILDER.end = tokens[-2].end_pos or 0
            self._state.feed_token(Token("RBRACE", "}", len(self.text), end_pos=len(self.text)))
            return
        self.errors.append(errors.open_block(tokens).diagnostic)
        while getattr(self._state.value_stack[-1], "type", "") != "LBRACE":
            self._pop(len(self._state.value_stack) - 1)
        self._pop(len(self._state.value_stack) - 1)
        self._drop_statement()

    def _next(self, begin: int, at: int) -> int:
        """Where the next statement begins; it is looked for behind the braces that the failed one opened."""
        tokens = self._all_tokens()
        start = max(at, begin + (at == begin))
        kinds = [token.type for token in tokens[begin:at]]
        opened = max(kinds.count("LBRACE") - kinds.count("RBRACE"), 0)
        top = self._blocks() == 0
        return self._statement_from(start, opened, top) or self._statement_from(start, 0, top) or len(tokens) - 1

    def _statement_from(self, start: int, opened: int, top: bool) -> int | None:
        tokens = self._all_tokens()
        for at in range(start, len(tokens)):
            kind = tokens[at].type
            if opened <= 0 and ((kind in _STATEMENTS and not _is_member(tokens, at)) or (kind == "RBRACE" and not top)):
                return at
            opened += (kind == "LBRACE") - (kind == "RBRACE" and opened > 0)
        return None

    def _continue_at(self, at: int) -> None:
        self._parse.lexer_thread.state.line_ctr.char_pos = self._all_tokens()[at].start_pos

    # The parser's stack -------------------------------------------------------------------------------------------------

    def _blocks(self) -> int:
        """How many blocks of emit each are open."""
        states, values = self._state.state_stack, self._state.value_stack
        return sum(
            getattr(value, "type", "") == "LBRACE" and state in _list_states() for state, value in zip(states[1:], values, strict=True)
        )

    def _literals(self) -> int:
        """How many arrays and maps are open."""
        kinds = (getattr(value, "type", "") for value in self._state.value_stack)
        return sum(
            kind == "OPEN_MAP" or (kind == "LSQB" and state in _array_states())
            for state, kind in zip(self._state.state_stack[1:], kinds, strict=True)
        )

    def _statement_size(self) -> int:
        """How many values at the top of the stack belong to the statement that is being read."""
        states, values = self._state.state_stack, self._state.value_stack
        return next(
            size for size in range(len(states)) if states[-1 - size] in _list_states() and not (size and isinstance(values[-size], tuple))
        )

    def _statement_start(self) -> int | None:
        size = self._statement_size() if not self._bare else 0
        return self._index(self._state.value_stack[-size]) if size else None

    def _drop_statement(self) -> int:
        """Take the statement that is being read off the stack; the index of its first token."""
        begin = self._statement_start()
        self._pop(len(self._state.value_stack) - self._statement_size())
        return begin or 0

    def _complete_statement(self) -> None:
        """Let the parser end the statement before: what begins another one makes it do so, and is taken back."""
        self._state.feed_token(Token("LET", "let"))
        self._pop(len(self._state.value_stack) - 1)

    def _pop(self, size: int) -> None:
        """Leave this many values on the stack."""
        del self._state.value_stack[size:]
        del self._state.state_stack[size + 1 :]


def _is_member(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word stands behind a point or is the key of a map."""
    return (at > 0 and tokens[at - 1].type == "DOT") or tokens[at + 1].type == "COLON"


@cache
def _array_states() -> frozenset[int]:
    """The parser's states behind the bracket of an array, which may end at once."""
    states = _parse_table()
    return frozenset(state for state, actions in states.items() if actions.get("RSQB", (None,))[0] is Shift and "INT" in actions)


@cache
def _parse_table() -> Mapping[int, Mapping[str, Any]]:
    """The action of the parser in each state for each kind of token."""
    table: Mapping[int, Mapping[str, Any]] = parser().parse_interactive("", start="program").parser_state.parse_conf.parse_table.states
    return table


@cache
def _operand_states() -> frozenset[int]:
    """The parser's states in which an operand must follow. Behind a point `now` is a name, and so is `by`."""
    states = _parse_table()
    return frozenset(state for state, actions in states.items() if actions.get("NOW", (None,))[0] is Shift and "BY" not in actions)


@cache
def _list_states() -> frozenset[int]:
    """The parser's states in which a statement begins. Behind a point `let` is a name, and so is `by`."""
    states = _parse_table()
    return frozenset(state for state, actions in states.items() if actions.get("LET", (None,))[0] is Shift and "BY" not in actions)


@cache
def _examples() -> dict[int, str]:
    """The examples of `errors` by the state to which they lead."""
    return {_state_behind(text): text for text in reversed(EXAMPLES)}


def _state_behind(text: str) -> int:
    parse = parser().parse_interactive(text, start="program")
    parse.exhaust_lexer()
    state: int = parse.parser_state.position
    return state
