"""Meanings of the names of a program, noted for editors while it is checked. Names in a program with errors are noted too, as far as they are known."""

from dataclasses import dataclass
from typing import Literal

from cxl.diagnostics.source import Span
from cxl.functions.registry import Builtin
from cxl.types.types import Type

Kind = Literal[
    "field", "window field", "qualifier", "local", "let", "emit", "meta", "system",
    "method", "aggregate", "window", "function", "constant", "alias", "member", "module",
]  # fmt: skip
DEFINITIONS = ("let", "emit", "meta")
"""The kinds of names that a statement defines."""


@dataclass(frozen=True, slots=True)
class Note:
    """The meaning of one name.

    Args:
        kind: `field` an input column, `window field` a column of the rows of another node that a window reads, `qualifier` an input of a combine, `local` a
            name that the program defined, `let`, `emit` and `meta` the definition of one, `system` `$namespace.path`, `alias` and `member` the parts of
            `alias::member`, `module` the path of `use`; the others are calls.
        type: The type of the value.
        qualifier: The input of a field, the alias of a module's member.
        slot: The number of a local value; its definition has the same one.
        builtins: The builtins that a call may be.
    """

    kind: Kind
    span: Span
    name: str
    type: Type | None = None
    qualifier: str | None = None
    slot: int | None = None
    builtins: tuple[Builtin, ...] = ()
