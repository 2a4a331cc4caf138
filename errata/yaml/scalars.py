"""The meaning of plain scalars by YAML 1.2: `yes`, `on` and dates are text, `0o17` is an octal number."""

import re
from decimal import Decimal

from storage.values.json_text import WrittenFloat

_CONSTANTS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INTEGERS = ((re.compile(r"[-+]?[0-9]+"), 10), (re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16))
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LIMIT = 2**63
_MOST_DIGITS = 80
_SURE = 15
"""Characters of a number that a float holds whatever they are."""


class TooLarge(ValueError):
    """An integer of more than 64 bits."""


def resolve(text: str) -> object:
    """Return the value of a plain scalar: None, bool, int, float or the text itself. Raises TooLarge."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    for pattern, base in _INTEGERS:
        if pattern.fullmatch(text):
            return _integer(text, base)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _float(text: str) -> float:
    """A float, with its digits where it has fewer than the text."""
    value = float(text)
    return value if len(text) <= _SURE or Decimal(repr(value)) == Decimal(text) else WrittenFloat(text)


def _integer(text: str, base: int) -> int:
    if len(text) > _MOST_DIGITS:
        raise TooLarge(text)
    number = int(text if base == 10 else text[2:], base)
    if not -_LIMIT <= number < _LIMIT:
        raise TooLarge(text)
    return number
