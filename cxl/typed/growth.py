"""How much longer an expression can make its texts.

A text that can double line by line is evaluated where each step is measured, not in Spark columns.
"""

import math
from collections.abc import Mapping

from cxl.typed import tree

_NEW_TEXT = 64
"""The length assumed for a replacement that is no literal."""
_MOST = 1e12


def growth(expr: tree.Expr, growths: Mapping[int, float]) -> float:
    """Return the factor by which a value may be longer than the longest text that it reads. `growths` has the factors of variables."""
    if isinstance(expr, tree.Local):
        return growths.get(expr.slot, 1)
    parts = [growth(part, growths) for part in _parts(expr)]
    if _joins(expr):
        return min(sum(parts), _MOST)
    if isinstance(expr, tree.Call) and expr.name == "replace":
        return min(parts[0] * _replaced(expr, parts), _MOST)
    return max(parts, default=1)


def _joins(expr: tree.Expr) -> bool:
    """Whether the value holds the texts of all parts."""
    if isinstance(expr, tree.Binary | tree.Call):
        return (expr.op if isinstance(expr, tree.Binary) else expr.name) in ("+", "concat")
    return isinstance(expr, tree.Array | tree.Map)


def _parts(expr: tree.Expr) -> tuple[tree.Expr, ...]:
    """The operands of a chain, or the direct parts of any other expression."""
    if not isinstance(expr, tree.Binary):
        return tree.children(expr)
    first, chain = tree.spine(expr)
    return (first, *(link.right for link in chain))


def _replaced(call: tree.Call, parts: list[float]) -> float:
    find, replacement = call.args
    if not isinstance(replacement, tree.Literal) or not isinstance(find, tree.Literal):
        return _NEW_TEXT * parts[2]
    return max(1.0, math.ceil(len(str(replacement.value)) / max(1, len(str(find.value)))))
