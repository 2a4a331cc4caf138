"""The TextMate grammar in docs/editors knows the words and literals that the lexer knows."""

from __future__ import annotations

import json
import re

import pytest

from cxl.commands.grammar import EDITOR, outputs
from cxl.syntax.tables import keywords

GRAMMAR = json.loads(EDITOR.read_text(encoding="utf-8"))


def rules() -> list[tuple[str, str]]:
    """Name and pattern of every rule, in the order in which editors try them."""
    order = [entry["include"].removeprefix("#") for entry in GRAMMAR["patterns"]]
    found = []
    for name in order:
        rule = GRAMMAR["repository"][name]
        found += [(one.get("name", name), one.get("match") or f"{one['begin']}.*?{one['end']}") for one in rule.get("patterns", [rule])]
    return found


def scope_of(text: str) -> str | None:
    """The scope of the rule that takes the whole text."""
    return next((name for name, pattern in rules() if (match := re.match(pattern, text)) and match.end() == len(text)), None)


@pytest.mark.parametrize("word", sorted(keywords()))
def test_every_keyword_has_a_scope(word: str) -> None:
    scope = scope_of(word)
    assert scope is not None
    assert scope.split(".")[0] in {"keyword", "constant", "variable"}


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ('"a b"', "string.quoted.double.cxl"), ("'a'", "string.quoted.single.cxl"), ("12.5", "constant.numeric.cxl"), ("# note", "comment.line.number-sign.cxl"),
        ("#2024-01-31#", "constant.other.date.cxl"), ("$pipeline", "variable.language.cxl"), ("??", "keyword.operator.cxl"), ("emit orders.*", "meta.emit.all.cxl"), ("amount", None),
    ],
)  # fmt: skip
def test_literals(text: str, scope: str | None) -> None:
    assert scope_of(text) == scope


def test_what_is_made_of_the_grammar_is_current() -> None:
    stale = [path.name for path, text in outputs().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python -m cxl.commands.grammar"
