"""CXL in files of its own, and which keys of a node hold CXL."""

from collections.abc import Mapping

from cxl.compiler import findings_of
from cxl.diagnostics.diagnostics import Diagnostic
from cxl.diagnostics.source import TextOrigin
from cxl.syntax import ast
from cxl.syntax.parse import parse_program
from cxl.typed.modules import Modules
from cxl.typed.target import Mode, Target

Path = tuple[str | int, ...]

CXL_KEYS: Mapping[str, Mapping[tuple[str, ...], Mode]] = {
    "transform": {("config", "cxl"): "row", ("config", "validations", "*", "check"): "predicate", ("config", "log", "*", "condition"): "predicate"},
    "aggregate": {("config", "cxl"): "aggregate"},
    "combine": {("config", "where"): "predicate", ("config", "cxl"): "combine"},
    "route": {("config", "conditions", "*"): "predicate"},
    "state": {("config", "set", "*", "cxl"): "set"},
    "source": {("config", "merge", "deleted"): "predicate", ("config", "merge", "op"): "expression"},
    "output": {("config", "history", "deleted"): "predicate"},
}
"""The keys with CXL by node type, from the node down; `*` is any name or position."""
STATEMENTS: frozenset[Mode] = frozenset({"row", "aggregate", "combine"})
"""The modes whose texts are statements, which `cxl fmt` formats."""


def mode_at(kind: object, path: Path) -> Mode | None:
    """Return how the CXL at a key of a node is read; None where the key holds none."""
    if len(path) == 3 and path[0] == "expect" and path[2] == "check":
        return "predicate"
    for pattern, mode in CXL_KEYS.get(str(kind), {}).items():
        if len(pattern) == len(path) and all(wanted in ("*", step) for wanted, step in zip(pattern, path, strict=True)):
            return mode
    return None


def is_module(text: str) -> bool:
    """Whether a text holds functions and constants alone, at least one function."""
    found = parse_program(text).statements
    return bool(found) and all(isinstance(one, ast.Fn | ast.Let) for one in found) and any(isinstance(one, ast.Fn) for one in found)


def program_target(text: str, file: str, modules: Modules) -> tuple[Target, tuple[Diagnostic, ...]]:
    """Return what a program in a file of its own is compiled against, and its findings. Every unknown name may be a field."""
    origin = TextOrigin(text, file)
    target = Target(open=True, modules=modules, window=True)
    found = findings_of(text, target, origin)
    if not any(one.code == "CXL-A001" for one in found):
        return target, found
    target = Target(open=True, modules=modules, window=True, mode="aggregate")
    return target, findings_of(text, target, origin)
