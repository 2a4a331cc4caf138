"""The encodings of text files: the codecs of Python that are character sets.

Excluded are other codecs (rot13, hex, zlib, idna, punycode, undefined, unicode_escape) and utf-7, whose bytes look like other text.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

_TEXT: Final = re.compile(
    r"utf-8|utf-8-sig|utf-(16|32)(-[lb]e)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|kz1048|mac-\w+|ptcp154|tis-620|hp-roman8"
    r"|shift_jis\w*|euc_\w+|gb\d+|gbk|hz|big5\w*|johab|iso2022_\w+"
)
_STATEFUL: Final = ("hz", "iso2022")
_EXPAT: Final = frozenset({"utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii", "iso-8859-1"})
"""Encodings that expat reads by itself."""
IN_WORDS: Final = "utf-8, utf-16, utf-32, ascii, iso-8859-1 to -16, cp1252 and other code pages, koi8-r, mac-roman, shift_jis, euc_jp, gb18030, big5 and their relatives"


def text_encoding(name: str) -> str | None:
    """Python's name of a text encoding; None for an unknown one."""
    try:
        found = codecs.lookup(name.strip()).name
    except (LookupError, ValueError):
        return None
    return found if _TEXT.fullmatch(found) else None


def expat_reads(name: str) -> bool:
    """Whether expat reads XML in this encoding: by itself, or because each character is one byte."""
    if name.lower() in _EXPAT:
        return True
    encoding = text_encoding(name)
    if encoding is None or encoding.startswith(_STATEFUL):
        return False
    return len(bytes(range(256)).decode(encoding, "replace")) == 256 and "<?xml".encode(encoding, "replace") == b"<?xml"
