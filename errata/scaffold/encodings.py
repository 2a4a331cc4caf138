"""The encoding of a text file, guessed from its first bytes."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CYRILLIC = re.compile("[\u0430-\u044f]")
_ASIAN = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60\u3000-\u3002]")
_SHOWN = 24


class Encoding(NamedTuple):
    """An encoding: its name, whether the text is ASCII, and why it is unsure; empty where it is sure."""

    name: str
    plain: bool = False
    doubt: str = ""


def encoding_of(data: bytes, *, whole: bool) -> Encoding:
    """Return the encoding of a text.

    Args:
        data: The bytes, or the first of them.
        whole: Whether these are all bytes; else the last character may be cut.
    """
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if marked is not None:
        return Encoding(marked)
    if data.isascii() and b"\0" not in data:
        return Encoding("utf-8", plain=True)
    if b"\0" in data[:4_000]:
        return _of_two_bytes(data)
    wrong = _first_wrong(data, "utf-8", whole=whole)
    return Encoding("utf-8") if wrong is None else _other(data, wrong, whole=whole)


def _first_wrong(data: bytes, encoding: str, *, whole: bool) -> int | None:
    """The first byte that is not valid in an encoding; None for none."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(data, final=whole)
    except UnicodeDecodeError as error:
        return error.start
    return None


def _of_two_bytes(data: bytes) -> Encoding:
    head = data[:4_000]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    name = "utf-16-le" if odd > even else "utf-16-be"
    return Encoding(name, doubt=f"many bytes are zero and there is no byte order mark: read as {name}")


def _other(data: bytes, wrong: int, *, whole: bool) -> Encoding:
    """The encoding of a text that is no UTF-8, by what its bytes would be."""
    name = _by_script(data, whole=whole) or "cp1252"
    if _first_wrong(data, name, whole=whole) is not None:
        name = "iso-8859-1"
    around = data[max(wrong - _SHOWN // 2, 0) : wrong + _SHOWN // 2].decode(name, "replace")
    line = around[: around.find("\n")] if "\n" in around[len(around) // 2 :] else around
    shown = line.rsplit("\n", 1)[-1].strip()
    return Encoding(name, doubt=f"the file is no UTF-8 (byte {wrong}), so it is read as {name}: '{shown}'. If that text is wrong, name its encoding in options.encoding")


def _by_script(data: bytes, *, whole: bool) -> str | None:
    """The encoding in which most other bytes are letters of one script; None for Latin scripts."""
    high = sum(byte >= 0x80 for byte in data)
    letters = sum(chr(byte).isalpha() for byte in data if byte < 0x80)
    if high < letters / 2:
        return None
    found = {name: _likeness(data, name, whole=whole) for name in ("cp1251", "koi8-r", "shift_jis", "euc_jp", "gb18030", "euc_kr", "big5")}
    best = max(found, key=lambda name: found[name])
    return best if found[best] > 0.5 else None


def _likeness(data: bytes, encoding: str, *, whole: bool) -> float:
    """The share of the characters beyond ASCII that belong to the script of an encoding."""
    if _first_wrong(data, encoding, whole=whole) is not None:
        return 0.0
    text = [one for one in data.decode(encoding, "ignore") if one >= "\x80"]
    script = _CYRILLIC if encoding in ("cp1251", "koi8-r") else _ASIAN
    return sum(bool(script.match(one)) for one in text) / max(len(text), 1)
