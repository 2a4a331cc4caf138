"""Files made from the grammar: `python -m cxl.commands.grammar` writes the parse tables, the editor grammar and the grammar's page."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lark import Lark

from cxl.syntax.tables import CONTEXT_WORDS, GRAMMAR, TABLES, analysed, tables

_DOCS = Path(__file__).parents[2] / "docs"
EDITOR = _DOCS / "editors" / "cxl.tmLanguage.json"
PAGE = _DOCS / "reference" / "cxl" / "grammar.md"

_INTRODUCTION = """# CXL grammar

Made from `cxl/syntax/grammar.lark` by `python -m cxl.commands.grammar`.

A rule has a name in small letters, a token one in capitals. `[a]` is an `a` or nothing, `a*` any number of them, `a | b` one of the two,
`(a b)` a group. `/.../` is a regular expression."""
_NAMESPACES = ("pipeline", "source", "record", "vars", "meta", "doc", "window")
_CONSTANTS = ("true", "false", "null")
_OPERATOR_RULES = ("binary", "unary", "coalesce")


def outputs() -> Mapping[Path, str]:
    """The files and what they should hold."""
    return {
        TABLES: json.dumps(tables(), separators=(",", ":")) + "\n",
        EDITOR: json.dumps(editor_grammar(analysed()), indent=2) + "\n",
        PAGE: page(GRAMMAR.read_text(encoding="utf-8")),
    }


# The page ---------------------------------------------------------------------------------------------------------------


def page(grammar: str) -> str:
    """The grammar for people: a chapter for each heading in it, without the names of the nodes."""
    chapters = re.split(r"^// (?=[A-Z].*\n\n)", grammar, flags=re.MULTILINE)[1:]
    return "\n".join([_INTRODUCTION, *(line for chapter in chapters for line in _chapter(chapter))]) + "\n"


def _chapter(chapter: str) -> Iterator[str]:
    title, _, rules = chapter.partition("\n\n")
    title, _, remark = title.partition(". ")
    yield from ("", f"## {title.rstrip('.')}", "")
    if remark:
        yield from (remark, "")
    yield from ("```ebnf", re.sub(r" -> \w+$|^\?|\n%(?:declare|ignore).*$", "", rules.strip().replace("OPEN_MAP", '"{"'), flags=re.MULTILINE), "```")


# The editor grammar -----------------------------------------------------------------------------------------------------


def editor_grammar(parser: Lark) -> dict[str, object]:
    """A TextMate grammar with the words, literals and operators of the language."""
    words = _words(parser)
    shape = {one.name: one.pattern.value for one in parser.terminals}
    name = shape["NAME"]
    escape = [{"name": "constant.character.escape.cxl", "match": r"\\."}]
    emit_all = {"1": {"name": "keyword.control.statement.cxl"}, "2": {"name": "variable.other.cxl"}, "3": {"name": "keyword.operator.cxl"}}
    repository: dict[str, dict[str, object]] = {
        "comment": {"name": "comment.line.number-sign.cxl", "match": "#(?![0-9]).*$"},
        "date": {"name": "constant.other.date.cxl", "match": shape["DATE"]},
        "string": {
            "patterns": [
                {"name": "string.quoted.double.cxl", "begin": '"', "end": '"', "patterns": escape},
                {"name": "string.quoted.single.cxl", "begin": "'", "end": "'", "patterns": escape},
            ]
        },
        "number": {"name": "constant.numeric.cxl", "match": rf"\b(?:{shape['DECIMAL']}|{shape['FLOAT']}|{shape['INT']})"},
        "system": {"name": "variable.language.cxl", "match": rf"\$(?:{'|'.join(_NAMESPACES)})\b|{_any(words['variable'])}"},
        "all": {"name": "meta.emit.all.cxl", "match": rf"\b(emit)\s+({name})\s*(\.\s*\*)", "captures": emit_all},
        "statement": {"name": "keyword.control.statement.cxl", "match": _any(words["statement"])},
        "keyword": {"name": "keyword.control.cxl", "match": _any(words["keyword"])},
        "constant": {"name": "constant.language.cxl", "match": _any(words["constant"])},
        "call": {"match": rf"(?:(?<=\.)|\b)({name})(?=\s*\()", "captures": {"1": {"name": "entity.name.function.cxl"}}},
        "operator": {"name": "keyword.operator.cxl", "match": f"{'|'.join(map(re.escape, words['sign']))}|{_any(words['operator'])}"},
    }
    return {
        "name": "CXL", "scopeName": "source.cxl", "fileTypes": ["cxl"],
        "patterns": [{"include": f"#{one}"} for one in repository], "repository": repository,
    }  # fmt: skip


def _any(words: list[str]) -> str:
    return rf"\b(?:{'|'.join(words)})\b"


def _words(parser: Lark) -> dict[str, list[str]]:
    """The words of the language by what they are: where rules read them says it."""
    texts = {one.name: one.pattern.value for one in parser.terminals if one.pattern.type == "str"}
    roles = _roles(parser)
    found: dict[str, list[str]] = {kind: [] for kind in ("statement", "constant", "variable", "operator", "sign", "keyword")}
    for name, text in sorted(texts.items(), key=lambda one: (-len(one[1]), one[1])):
        role = roles.get(name, "keyword")
        if text.isalpha():
            found["constant" if role == "alone" and text in _CONSTANTS else "variable" if role == "alone" else role].append(text)
        elif role == "operator":
            found["sign"].append(text)
    return found


def _roles(parser: Lark) -> dict[str, str]:
    """Roles of tokens in the rules that read them: `operator`, `statement` where they begin one, `alone` where they are a whole expression."""
    begins = {rule.expansion[0].name for rule in parser.rules if rule.origin.name in _statements(parser)}
    alone = {rule.expansion[0].name for rule in parser.rules if rule.origin.name == "primary" and len(rule.expansion) == 1}
    operators = {symbol.name for rule in parser.rules if rule.alias in _OPERATOR_RULES for symbol in rule.expansion} | {"EQUAL", "ARROW"}
    return dict.fromkeys(alone - CONTEXT_WORDS, "alone") | dict.fromkeys(begins, "statement") | dict.fromkeys(operators, "operator")


def _statements(parser: Lark) -> set[str]:
    return {rule.expansion[0].name for rule in parser.rules if rule.origin.name == "statement"}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
