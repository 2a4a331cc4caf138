"""Sizes of memory as the documents write them: `512M`, powers of 1024 (user guide, "Setting the memory limit")."""

import re

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_SIZE = re.compile(r"([0-9]+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def binary_size(text: str | int) -> int | None:
    """The bytes of a size; None for what is none, and for no bytes at all."""
    match = _SIZE.fullmatch(str(text).strip())
    return (int(match[1]) * _UNITS[match[2].upper()] or None) if match else None
