"""Names of operations in each stream form (docs/reference/changelog-streams.md)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from changelog.ops import SYMBOLS, Op

Form: TypeAlias = Literal["two", "retract", "upsert", "single", "debezium", "flink"]

FORMS: Final[tuple[Form, ...]] = get_args(Form)

PAIRED: Final[frozenset[Form]] = frozenset({"single", "debezium"})
"""Forms with one event per change, which has `before` and `after`. Events of other forms have `data`."""

PLAIN: Final[frozenset[Form]] = frozenset({"retract", "upsert"})
"""Forms that have only `+A` and `-R`."""

_FLINK: Final[dict[Op, str]] = {Op.APPEND: "+I", Op.RETRACT: "-D", Op.CORRECT_FROM: "-U", Op.CORRECT_TO: "+U"}
_DEBEZIUM: Final[dict[Op, str]] = {Op.APPEND: "c", Op.RETRACT: "d", Op.CORRECT_TO: "u"}
_NAMES: Final[dict[Form, dict[Op, str]]] = {"flink": _FLINK, "debezium": _DEBEZIUM}

LETTERED: Final[frozenset[Form]] = frozenset(_NAMES)
"""Forms with their own names for operations."""


def known(form: str) -> Form:
    """Return the form of this name. Raises ValueError for an unknown name."""
    for name in FORMS:
        if name == form:
            return name
    raise ValueError(f"no form {form!r}; there are {', '.join(FORMS)}")


def op_names(form: Form) -> dict[Op, str]:
    """Return the names of the operations that a form has."""
    return _NAMES.get(form, SYMBOLS)
