"""Completions at a place of a CXL text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from cxl.compiler import notes_of
from cxl.functions.registry import Builtin, accepts, all_builtins
from cxl.syntax import ast
from cxl.syntax.parse import parse_program
from cxl.syntax.reader import tokens_of
from cxl.typed.modules import ModuleMissing
from cxl.typed.target import NAMESPACES, Mode, Target
from cxl.types.types import ANY, Kind, Type
from errata.editor.hover import builtin_text, prefix_of
from errata.editor.items import Item

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_STATEMENT_WORDS = ("emit", "let", "filter", "distinct", "trace", "use", "fn")
_WORDS = ("if", "then", "else", "match", "and", "or", "not", "true", "false", "null", "now")
_STATEMENTS = frozenset({"LET", "EMIT", "FILTER", "DISTINCT", "TRACE", "USE", "FN"})
_CLOSING = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}
_OPENING = {"LPAR": "LPAR", "LSQB": "LSQB", "LBRACE": "LBRACE", "OPEN_MAP": "LBRACE"}
_OPERANDS = frozenset({"NAME", "IT", "STRING", "INT", "FLOAT", "DECIMAL", "DATE", "NOW", "TRUE", "FALSE", "NULL", "OUTER", "FOR"})
LONGEST = 64 * 1024
"""How long a text may be that is completed."""


def cxl_items(target: Target, before: str, after: str, mode: Mode) -> tuple[list[Item], int]:
    """Return what a CXL text may go on with between `before` and `after`, and how many characters before the place are replaced."""
    word = _WORD.search(before)
    typed = word[0] if word else ""
    head = before[: len(before) - len(typed)]
    if len(head) > LONGEST or _in_text(head):
        return [], 0
    return list(_items(target, head, mode)), len(typed)


def _in_text(head: str) -> bool:
    """Whether a place is in a string or a comment."""
    line = head[max(head.rfind("\n"), head.rfind("\r")) + 1 :]
    quote = ""
    at = 0
    while at < len(line):
        one = line[at]
        if quote:
            at += one == "\\"
            quote = "" if one == quote else quote
        elif one in "\"'":
            quote = one
        elif one == "#" and not line[at + 1 : at + 2].isdigit():
            return True
        at += 1
    return bool(quote)


def _items(target: Target, head: str, mode: Mode) -> Iterator[Item]:
    bare = head.rstrip()
    if head.endswith("$"):
        yield from (Item(one, "namespace", text=_NAMESPACES.get(one, "")) for one in NAMESPACES)
    elif bare.endswith("::"):
        yield from _module_items(target, bare)
    elif bare.endswith(".") and not re.search(r"[0-9]\.\Z", bare):
        yield from _member_items(target, bare[:-1].rstrip(), mode)
    elif re.search(r"\b(?:let|fn|as|each|meta)\s+\Z", head):
        return
    elif re.search(r"\bemit\s+\Z", head):
        yield from (Item(one, "keyword") for one in ("each", "meta"))
        yield from _columns(target)
    else:
        yield from _expression_items(target, head, mode)


_NAMESPACES = {
    "pipeline": "Values of the run, and variables of the pipeline.", "source": "Where the record comes from, and variables of its file.",
    "record": "Variables of the record.", "vars": "Constants of the pipeline, parameters of a composition.", "meta": "What `emit meta` wrote.",
    "doc": "Sections of the document around the records.", "ck": "Fields of the correlation key.", "window": "Functions over the rows of the window.",
}  # fmt: skip


def _columns(target: Target, hidden: Collection[str] = ()) -> Iterator[Item]:
    """The columns that a program can name and that no name of its own hides."""
    yield from (Item(name, "column", str(type_), rank="0") for name, type_ in target.schema.items() if name.isidentifier() and name.isascii() and name not in hidden)


def _expression_items(target: Target, head: str, mode: Mode) -> Iterator[Item]:
    """Names, words and functions."""
    defined = list(_defined(parse_program(head).statements if mode not in ("predicate", "expression", "set") else ()))
    if target.qualified_only:
        yield from (Item(name, "qualifier", "input", rank="0") for name in target.inputs)
    else:
        yield from _columns(target, {one.label for one in defined if one.kind == "local"})
        yield from (Item(name, "qualifier", "the record", rank="0") for name in target.inputs)
    yield from defined
    begins = mode not in ("predicate", "expression", "set") and not head.rpartition("\n")[2].strip()
    yield from (Item(one, "keyword") for one in (_STATEMENT_WORDS if begins else ()))
    yield from (Item(one, "keyword", rank="2") for one in _WORDS)
    if "=>" in head:
        yield Item("it", "local", "the element", rank="0")
    if mode in ("aggregate", "set"):
        yield from _calls([one for one in all_builtins() if one.kind == "aggregate"])


def _defined(statements: Sequence[ast.Statement]) -> Iterator[Item]:
    """The names that a program has defined: let, emitted names, functions, modules."""
    found: dict[str, Item] = {}
    for one in statements:
        if isinstance(one, ast.Let | ast.Emit):
            found[one.name] = Item(one.name, "local", rank="0")
        elif isinstance(one, ast.Fn):
            found[one.name] = Item(one.name, "function", f"fn {one.name}({', '.join(one.params)})", insert=f"{one.name}(", rank="1")
        elif isinstance(one, ast.Use):
            alias = one.alias or one.path[-1]
            found[alias] = Item(alias, "module", ".".join(one.path), insert=f"{alias}::", rank="1")
        elif isinstance(one, ast.EmitEach):
            found[one.binding] = Item(one.binding, "local", "the element", rank="0")
            found |= {item.label: item for item in _defined(one.body)}
    yield from found.values()


def _module_items(target: Target, head: str) -> Iterator[Item]:
    word = _WORD.search(head[:-2])
    for one in parse_program(head[: head.rfind("\n") + 1]).statements if word else ():
        if isinstance(one, ast.Use) and word is not None and (one.alias or one.path[-1]) == word[0]:
            try:
                module = target.modules.load(one.path)
            except ModuleMissing:
                return
            yield from (Item(name, "function", f"{name}({', '.join(fn.params)})", insert=f"{name}(") for name, fn in module.functions.items())
            yield from (Item(name, "local", "constant") for name in module.constants)


# Behind a point ---------------------------------------------------------------------------------------------------------


def _member_items(target: Target, head: str, mode: Mode) -> Iterator[Item]:
    system = re.search(r"\$([A-Za-z_]+)((?:\s*\.\s*[A-Za-z_][A-Za-z0-9_]*)*)\Z", head)
    if system is not None:
        path = [one.strip() for one in system[2].split(".")[1:]]
        yield from _system_items(target, system[1], path)
        return
    word = _WORD.search(head)
    if word is not None and word[0] in target.inputs and not head[: -len(word[0])].rstrip().endswith("."):
        yield from (Item(name, "column", str(type_), rank="0") for name, type_ in target.inputs[word[0]].items())
        return
    type_ = receiver_type(target, head, mode)
    methods = [one for one in all_builtins() if one.kind == "method" and _fits(one, type_)]
    yield from _calls(methods)


def _fits(entry: Builtin, type_: Type | None) -> bool:
    return type_ is None or type_.kind in (Kind.ANY, Kind.NULL) or accepts(entry.receiver or ANY, type_)


def _calls(entries: Sequence[Builtin]) -> Iterator[Item]:
    """One item a name, with all pages of the name."""
    by_name: dict[str, list[Builtin]] = {}
    for one in entries:
        by_name.setdefault(one.name, []).append(one)
    for name, found in by_name.items():
        detail = " / ".join(prefix_of(one) + one.signature for one in found)
        closed = all(not one.params for one in found)
        yield Item(name, "method", detail, builtin_text(tuple(found)), f"{name}()" if closed else f"{name}(")


def _system_items(target: Target, namespace: str, path: list[str]) -> Iterator[Item]:
    """The members behind `$namespace.path.`."""
    if namespace == "window":
        yield from _window_items(target) if not path else ()
    elif namespace == "doc":
        yield from _doc_items(target, path)
    elif namespace == "source" and path:
        yield from _variables(target.system.qualified.get(path[0], {}) if path[0] in target.system.qualified and len(path) == 1 else {})
    elif namespace in NAMESPACES and not path:
        yield from _variables(target.system.members(namespace) or {})
        yield from (Item(name, "qualifier", "input") for name in (target.system.qualified if namespace == "source" else ()))


def _variables(types: Mapping[str, Type]) -> Iterator[Item]:
    return (Item(name, "variable", str(type_)) for name, type_ in types.items())


def _window_items(target: Target) -> Iterator[Item]:
    yield from _calls([one for one in all_builtins() if one.kind == "window"])
    yield from (Item(one, "variable", "DateTime") for one in (("start", "end") if target.window_bounds else ()))


def _doc_items(target: Target, path: list[str]) -> Iterator[Item]:
    sections = target.system.doc or {}
    if not path:
        yield from (Item(one, "variable", "section") for one in sections)
    elif len(path) == 1:
        yield from _variables(sections.get(path[0], {}))


def receiver_type(target: Target, head: str, mode: Mode) -> Type | None:
    """Return the type of the expression that a text ends with; None where it is not known."""
    tokens = tokens_of(head)[:-1]
    start = _receiver_start([token.type for token in tokens])
    if start is None:
        return None
    own = next((index for index in range(start, -1, -1) if tokens[index].type in _STATEMENTS and not (index and tokens[index - 1].type == "DOT")), None)
    first = head[: tokens[own].start_pos] if own is not None and mode not in ("predicate", "expression", "set") else ""
    text = f"{first}\nlet zzreceiver = {head[tokens[start].start_pos :]}"
    bare: Mode = "combine" if target.qualified_only or mode == "combine" else "row"
    notes = notes_of(text, replace(target, mode=bare))
    found = next((one for one in reversed(notes) if one.kind == "let" and one.name == "zzreceiver"), None)
    return None if found is None else found.type


def _receiver_start(kinds: list[str]) -> int | None:
    """The first token of the chain of members and calls at the end of a text."""
    at = len(kinds) - 1
    while at >= 0:
        at = _operand_start(kinds, at)
        if at < 0:
            return None
        before = kinds[at - 1] if at else ""
        if before not in ("DOT", "PATH"):
            return at - 1 if before == "DOLLAR" else at
        at -= 2
    return None


def _operand_start(kinds: list[str], at: int) -> int:
    """The first token of the operand that ends with a token; -1 where there is none."""
    while at >= 0 and kinds[at] in _CLOSING:
        at = _opening(kinds, at)
        if at > 0 and (kinds[at - 1] in _OPERANDS or kinds[at - 1] in _CLOSING):
            at -= 1
        else:
            return at
    return at if at >= 0 and (kinds[at] in _OPERANDS or kinds[at].isalpha()) else -1


def _opening(kinds: list[str], at: int) -> int:
    """The token that opens what a token closes; -1 where there is none."""
    depth = 0
    for index in range(at, -1, -1):
        depth += (kinds[index] in _CLOSING) - (kinds[index] in _OPENING)
        if depth == 0:
            return index
    return -1
