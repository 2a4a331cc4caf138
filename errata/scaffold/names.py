"""Names of nodes and columns made from names of files and headers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset((
    "let", "emit", "if", "then", "else", "and", "or", "not", "match", "use", "as", "fn", "trace", "null", "true", "false", "now", "it", "filter", "distinct", "by",
    "each", "meta", "outer", "for", "in",
))  # fmt: skip
_LONGEST = 60
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "\u0131": "i", "œ": "oe", "Œ": "OE", "%": " percent "})


def is_plain(name: str) -> bool:
    """Whether CXL can read a name without change."""
    return bool(_PLAIN.fullmatch(name)) and name.lower() not in _RESERVED and len(name) <= _LONGEST


def plain_name(text: str, default: str) -> str:
    """Return a name of letters, digits and `_` that is like the text: `Order No.` is `order_no`.

    Args:
        default: The name where no letter or digit of the text can stay.
    """
    ascii_text = unicodedata.normalize("NFKD", text.translate(_LETTERS)).encode("ascii", "ignore").decode()
    words = re.findall(r"[A-Za-z0-9]+", ascii_text)
    name = "_".join(words).lower()[:_LONGEST].rstrip("_") or default
    if name[0].isdigit():
        name = f"_{name}" if len(name) < _LONGEST else f"_{name[:-1]}"
    return f"{name}_" if name in _RESERVED else name


def unique(name: str, taken: Collection[str]) -> str:
    """Return the name, or the name with the first number from 2 that is free. Letter case makes no difference."""
    known = {one.lower() for one in taken}
    if name.lower() not in known:
        return name
    return next(free for number in range(2, len(known) + 3) if (free := f"{name}_{number}").lower() not in known)


def column_names(names: Sequence[str]) -> dict[str, str]:
    """Return a name for each field that CXL can read; a plain one stays. Where only hyphens stand in the way, letters keep their case: `USt-Satz` is `USt_Satz`."""
    made: dict[str, str] = {}
    taken: set[str] = set()
    for place, name in sorted(enumerate(names), key=lambda one: not is_plain(one[1])):
        joined = name.replace("-", "_")
        free = _free(joined if is_plain(joined) else plain_name(name, f"column_{place + 1}"), taken)
        taken.add(free.lower())
        made[name] = free
    return {name: made[name] for name in names}


def _free(name: str, taken: set[str]) -> str:
    if name.lower() not in taken:
        return name
    number = 2
    while f"{name}_{number}".lower() in taken:
        number += 1
    return f"{name}_{number}"


def common_name(names: Iterable[str], default: str) -> str:
    """Return the name that several file names begin with: of `orders-2026-01.csv` and `orders-2026-02.csv` it is `orders`."""
    stems = [name.split(".", 1)[0] for name in names]
    prefix = common_prefix(stems)
    if len(stems) > 1:
        prefix = re.sub(r"[\W_\d]+$", "", prefix)
    return plain_name(prefix, default)


def common_prefix(texts: Sequence[str]) -> str:
    """Return the text that all texts begin with."""
    first, last = min(texts), max(texts)
    return first[: next((place for place, sign in enumerate(first) if last[place] != sign), len(first))]
