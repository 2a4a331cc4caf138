"""The names that the stream forms have for operations (ODF, "Representing changes in streams"; CONTRACT, `errata log`)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from changelog.ops import SYMBOLS, Op

Form: TypeAlias = Literal["two", "retract", "upsert", "single", "debezium", "flink"]

FORMS: Final[tuple[Form, ...]] = get_args(Form)

PAIRED: Final[frozenset[Form]] = frozenset({"single", "debezium"})
"""The forms that give one event a change, with `before` and `after`; the others give rows with `data`."""

PLAIN: Final[frozenset[Form]] = frozenset({"retract", "upsert"})
"""The forms that know `+A` and `-R` only."""

_FLINK: Final[dict[Op, str]] = {Op.APPEND: "+I", Op.RETRACT: "-D", Op.CORRECT_FROM: "-U", Op.CORRECT_TO: "+U"}
_DEBEZIUM: Final[dict[Op, str]] = {Op.APPEND: "c", Op.RETRACT: "d", Op.CORRECT_TO: "u"}
_NAMES: Final[dict[Form, dict[Op, str]]] = {"flink": _FLINK, "debezium": _DEBEZIUM}

LETTERED: Final[frozenset[Form]] = frozenset(_NAMES)
"""The forms that have names of their own for operations."""


def known(form: str) -> Form:
    """The form of this name. Raises ValueError for an unknown one."""
    for name in FORMS:
        if name == form:
            return name
    raise ValueError(f"no form {form!r}; there are {', '.join(FORMS)}")


def op_names(form: Form) -> dict[Op, str]:
    """What a form calls each operation that it knows."""
    return _NAMES.get(form, SYMBOLS)
