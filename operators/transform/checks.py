"""The named validation checks of a transform, each as a CXL condition on its field."""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

from cxl.syntax.tables import readable
from cxl.values.text import float_text

Args = Mapping[str, Any]


class _Literal(str):
    """The text of a literal of CXL."""

    __slots__ = ()


def _exact(value: Any) -> Any:
    """A float as the literal of a Decimal, in lists too; any other value unchanged."""
    if isinstance(value, list):
        return [_exact(one) for one in value]
    if not isinstance(value, float) or not isfinite(value):
        return value
    return _Literal(f"{Decimal(getattr(value, 'digits', repr(value))):f}d")


def _literal(value: Any) -> str:
    if isinstance(value, _Literal):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "null"
    if isinstance(value, float):
        digits = float_text(value)
        return digits if "." in digits or not isfinite(value) else f"{digits}.0"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _one_of(field: str, args: Args) -> str:
    return " or ".join(f"{field} == {_literal(value)}" for value in args.get("values", ())) or "false"


NAMED: Mapping[str, Callable[[str, Args], str]] = {
    "not_empty": lambda field, args: f"not {field}.is_empty()",
    "not_null": lambda field, args: f"not {field}.is_null()",
    "required": lambda field, args: f"not {field}.is_empty()",
    "positive": lambda field, args: f"{field} > 0",
    "non_negative": lambda field, args: f"{field} >= 0",
    "min": lambda field, args: f"{field} >= {_literal(args.get('value', args.get('min')))}",
    "max": lambda field, args: f"{field} <= {_literal(args.get('value', args.get('max')))}",
    "range": lambda field, args: f"{field} >= {_literal(args.get('min'))} and {field} <= {_literal(args.get('max'))}",
    "min_length": lambda field, args: f"{field}.length() >= {_literal(args.get('value', args.get('length')))}",
    "max_length": lambda field, args: f"{field}.length() <= {_literal(args.get('value', args.get('length')))}",
    "matches": lambda field, args: f"{field}.matches({_literal(args.get('pattern', ''))})",
    "one_of": _one_of,
}
"""Check name to the CXL text of its condition; the condition must be true, so a null fails the checks of values."""
NEEDED: Mapping[str, Sequence[tuple[str, ...]]] = {
    "min": [("value", "min")], "max": [("value", "max")], "range": [("min",), ("max",)], "min_length": [("value", "length")],
    "max_length": [("value", "length")], "matches": [("pattern",)], "one_of": [("values",)],
}  # fmt: skip
"""The arguments of the checks that have some, each with its names."""


def missing_argument(check: str, field: str | None, args: Args) -> str | None:
    """The name of an argument that a named check of a field needs and has not; null is none."""
    needed = NEEDED.get(check.strip(), ()) if field is not None else ()
    return next((names[0] for names in needed if all(args.get(name) is None for name in names)), None)


def unreadable(check: str, field: str | None) -> bool:
    """Whether a named check is of a field whose name a program cannot read."""
    return check.strip() in NAMED and field is not None and not readable(field)


def condition(check: str, field: str | None, args: Args, *, exact: bool = False) -> str:
    """The CXL condition of a validation: a named check of a field, or the check itself. `exact`: the field is a Decimal, and numbers are compared with it by their digits."""
    made = NAMED.get(check.strip())
    if made is not None and field is not None:
        return made(field, {name: _exact(value) for name, value in args.items()} if exact else args)
    return check
