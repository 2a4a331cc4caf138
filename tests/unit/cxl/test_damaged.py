"""Programs damaged at random: each compiles or has diagnostics, in little time. Compiled ones are also formatted, walked and traced."""

import random
import time
from contextlib import suppress

import pytest

from cxl import CxlErrors, Schema, compile_program
from cxl.codes import CODES, SETTINGS
from cxl.compiler import compile_for
from cxl.functions.registry import all_builtins
from cxl.syntax.reader import tokens_of
from cxl.typed.lineage import origins
from cxl.typed.target import Target

SCHEMA = Schema.of({"amount": "int", "price": "float", "name": "string", "ok": "bool", "day": "date", "items": "array", "info": "map", "x": "any"})
TARGETS = [Target(schema=SCHEMA), *SETTINGS.values()]
EXAMPLES = [f"emit x = {example[0]}" for one in all_builtins() for example in one.examples]
PROGRAMS = [one for code in CODES for one in (code.wrong, code.right) if len(one) < 2000] + EXAMPLES
WORDS = [*"()[]{}.,:$#\"'\\+-*/%<>=!&|?_\n ", "=>", "::", "??", "let", "emit", "emit each", "match", "if", "then", "else", "it", "now", "null", "-9223372036854775808", "1e9", "\0", "é", "𝄞"]
# A program at the limit of 50,000 names takes 1.7 s on an idle core; what grows without a limit takes minutes.
SLOW = 20.0


def damaged(chance):
    """A program with pieces taken out, put in, doubled and exchanged."""
    tokens = [str(token) for token in tokens_of(chance.choice(PROGRAMS))]
    others = [str(token) for token in tokens_of(chance.choice(PROGRAMS))]
    for _ in range(chance.randint(1, 6)):
        at, end = sorted((chance.randrange(len(tokens) + 1), chance.randrange(len(tokens) + 1)))
        piece = chance.choice([[], [chance.choice(WORDS)], tokens[at:end] * 2, others[: chance.randrange(len(others) + 1)], ["("] * chance.randint(1, 300)])
        tokens[at : min(end, at + 3)] = piece
    return chance.choice([" ", " ", ""]).join(tokens)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_program_compiles_or_is_refused(seed):
    chance = random.Random(seed)
    for _ in range(400):
        text, target = damaged(chance), chance.choice(TARGETS)
        began, program = time.thread_time(), None
        with suppress(CxlErrors):
            program = compile_for(text, target)
            program.normal_text()
        assert time.thread_time() - began < SLOW, text
        assert program is None or {*origins(program)} <= {*program.output}, text


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["let x0 = amount", *(f"let x{n} = x{n - 1} + x{n - 1}" for n in range(1, 200)), "emit z = x199"]),
        "\n".join(f"emit z{n} = amount + {n}" for n in range(5000)),
        "\n".join(["fn f0(v) = v + v", *(f"fn f{n}(v) = f{n - 1}(f{n - 1}(v))" for n in range(1, 60)), "emit z = f59(amount)"]),
        "emit z = " + " + ".join(["amount"] * 20_000),
        "emit z = match name { " + ", ".join(f'"{n}" => {n}' for n in range(10_000)) + ", _ => 0 }",
        "emit " + "z" * 1_000_000 + " = 1",
        "emit z = " + "(" * 100_000,
        'emit z = "' + "\\" * 60_000 + '"',
    ],
    ids=["lets", "emits", "calls", "terms", "arms", "name", "parentheses", "backslashes"],
)
def test_a_large_program_compiles_or_is_refused_soon(text):
    began = time.thread_time()
    with suppress(CxlErrors):
        program = compile_program(text, SCHEMA)
        program.normal_text()
        origins(program)
    assert time.thread_time() - began < SLOW
