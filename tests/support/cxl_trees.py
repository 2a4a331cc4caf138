"""Random syntax trees of CXL: every form that can be written, with places that mean nothing."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from cxl.diagnostics.source import Span
from cxl.syntax import ast
from cxl.syntax.tables import keywords
from cxl.values.decimals import of_units

HERE = Span(0, 0)
BINARY = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"]
KEYWORDS = keywords()
CONTEXT_WORDS = ["each", "in", "outer", "info", "warn", "error", "debug", "meta", "for", "sum", "count", "max"]

names = st.one_of(
    st.sampled_from(CONTEXT_WORDS),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True).filter(lambda word: word not in KEYWORDS and word != "_"),
)
members = st.one_of(names, st.sampled_from(sorted(KEYWORDS)))
texts = st.text(st.one_of(st.sampled_from("\\\"'ntr{}#\n\t\r "), st.characters(codec="utf-8")), max_size=12)

literals = st.one_of(
    st.integers(0, 2**63 - 1).map(lambda value: ast.Literal(HERE, "int", value)),
    st.floats(0, allow_infinity=False, allow_nan=False).map(lambda value: ast.Literal(HERE, "float", abs(value))),
    st.tuples(st.integers(0, 10**38 - 1), st.integers(0, 38)).map(lambda pair: ast.Literal(HERE, "decimal", of_units(*pair))),
    texts.map(lambda value: ast.Literal(HERE, "string", value)),
    st.dates().map(lambda value: ast.Literal(HERE, "date", value)),
    st.booleans().map(lambda value: ast.Literal(HERE, "bool", value)),
    st.just(ast.Literal(HERE, "null", None)),
)
leaves = st.one_of(
    literals,
    names.map(lambda name: ast.Name(HERE, name)),
    st.just(ast.Name(HERE, "it")),
    st.just(ast.Now(HERE)),
    st.sampled_from(["pipeline", "source", "vars", "window"]).map(lambda name: ast.SystemRoot(HERE, name)),
)


def _entries(inner):
    written = (members | texts).map(lambda text: ast.Literal(HERE, "string", text))
    return st.builds(ast.Entry, st.just(HERE), written, st.just(False), inner) | st.builds(ast.Entry, st.just(HERE), inner, st.just(True), inner)


def _grown(inner):
    args = st.lists(inner, max_size=3).map(tuple)
    method_args = st.lists(st.one_of(inner, st.builds(ast.Closure, st.just(HERE), inner)), max_size=3).map(tuple)
    arms = st.lists(st.builds(ast.Arm, st.just(HERE), st.one_of(inner, st.just(ast.Wildcard(HERE))), inner), max_size=3).map(tuple)
    here = st.just(HERE)
    return st.one_of(
        st.builds(ast.Unary, here, st.sampled_from(["-", "not"]), inner),
        st.builds(ast.Binary, here, st.sampled_from(BINARY), here, inner, inner),
        st.builds(ast.Coalesce, here, here, inner, inner),
        st.builds(ast.If, here, inner, inner, st.none() | inner),
        st.builds(ast.Match, here, st.none() | inner, arms),
        st.builds(ast.MethodCall, here, inner, members, here, method_args),
        st.builds(ast.Member, here, inner, members, here),
        st.builds(ast.Index, here, inner, inner),
        st.builds(ast.Array, here, args),
        st.builds(ast.Comprehension, here, inner, names | st.just("it"), inner, st.none() | inner),
        st.builds(ast.Map, here, st.lists(_entries(inner), max_size=3).map(tuple)),
        st.builds(ast.FreeCall, here, names, here, args, st.just(False)),
        st.builds(ast.FreeCall, here, names, here, st.just(()), st.just(True)),
        st.builds(ast.ModuleMember, here, names, here, names, here, st.none() | args),
    )


expressions = st.recursive(leaves, _grown, max_leaves=12)


def _simple(here):
    return [
        st.builds(ast.Let, here, names, here, expressions),
        st.builds(ast.Emit, here, names, here, expressions),
        st.builds(ast.EmitAll, here, names, here),
        st.builds(ast.EmitMeta, here, names, here, expressions),
        st.builds(ast.Filter, here, expressions),
        st.builds(ast.Distinct, here, st.none() | names, here),
        st.builds(
            ast.Trace, here, st.sampled_from([None, "trace", "debug", "info", "warn", "error"]), st.none() | expressions, expressions
        ),
    ]


def _each(inner):
    binding = names | st.just("it")
    return st.builds(ast.EmitEach, st.just(HERE), binding, expressions, st.booleans(), st.just(0), st.lists(inner, max_size=3).map(tuple))


_here = st.just(HERE)
body_statements = st.recursive(st.one_of(*_simple(_here)), _each, max_leaves=4)
statements = st.one_of(
    body_statements,
    st.builds(ast.Use, _here, st.lists(names, min_size=1, max_size=3).map(tuple), st.none() | names),
    st.builds(ast.Fn, _here, names, _here, st.lists(names, max_size=3, unique=True).map(tuple), expressions),
)
programs = st.lists(statements, max_size=5).map(tuple)
separators = st.sampled_from([" ", "\n", "\t", "\r\n", "  \n\n ", " # note\n", "#\n"])

WORDS = [*sorted(KEYWORDS), *CONTEXT_WORDS, *"+-*/%=<>()[]{},.:$#'\"!&|?\\@_", "==", "=>", "::", "??", "&&", " ", "\n", "1", "2.5", "9" * 25, "1e5",
         "#2024-01-05#", "#2024-13-01#", '"a"', "amount", "name", "items", "é", "\u00a0", "\x00", "\ud7ff", "sum(", ".map(it =>", string.digits]  # fmt: skip
"""Pieces for texts that are hardly ever programs."""
