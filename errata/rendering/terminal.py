"""Text for a terminal: control characters escaped, wide characters counted, optional colour."""

import os
import re
import shutil
import unicodedata
from typing import TextIO

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_STEERING = re.compile(r"(?!\r\n|[\n\t])" + _CONTROL.pattern)
_STYLES = {"red": "31", "yellow": "33", "blue": "34", "green": "32", "bold": "1", "dim": "2"}
OP_STYLES = {"+A": "green", "-R": "red", "-C": "yellow", "+C": "yellow"}
"""The colour of each op."""
VERDICT_STYLES = {"ok": "green", "warning": "yellow", "missing": "red", "violation": "red"}
"""The colour of what checks find."""
MARK = "…"
"""The sign in place of the rest of a text that was cut."""
_OP = re.compile(r"(?<![\w+-])([+-][ARC])(?= [\d,.]+M?\b)")
_PICTURE, _SOFT_HYPHEN = "\ufe0f", "\u00ad"
"""A character that makes a picture of the one before it, which is two columns wide; and a format character that is drawn."""
_WITHOUT_WIDTH = ("Mn", "Me", "Cf")
"""Kinds of characters that are drawn over others, or not at all."""
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    """Return the text with control, bidirectional and lone surrogate characters as escapes."""
    return _CONTROL.sub(lambda found: _escape(found.group()), text) if not text.isprintable() else text


def _escape(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def harmless(text: str) -> str:
    """Return an answer for a terminal: line ends and tabs stay, other control characters become JSON escapes."""
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def flattened(text: str) -> str:
    """Return the text with one blank or `?` for each control character, so that columns keep their places."""
    return _CONTROL.sub(lambda found: " " if found.group() == "\t" else "?", text)


def width(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(character, before) for before, character in zip(f" {text}", text, strict=False))


def _columns(character: str, before: str) -> int:
    """The columns that a character adds to the one before it."""
    if character == _PICTURE:
        return 1 if _columns(before, " ") == 1 and before > "\x7f" else 0
    if (unicodedata.category(character) in _WITHOUT_WIDTH and character != _SOFT_HYPHEN) or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """Return the text, or as much of it as fits into `columns` with `…` after it."""
    if len(text) * 2 <= columns or width(text) <= columns:
        return text
    room = columns - 1
    for place, (before, character) in enumerate(zip(f" {text}", text, strict=False)):
        room -= _columns(character, before)
        if room < 0:
            return f"{text[:place]}{MARK}"
    return text


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Return the text filled with blanks to `columns`."""
    blanks = " " * max(columns - width(text), 0)
    return blanks + text if right else text + blanks


def styled(text: str, *names: str, on: bool) -> str:
    """Return the text in the styles named, where `on`."""
    return f"\x1b[{';'.join(_STYLES[name] for name in names)}m{text}\x1b[0m" if on and text else text


def ops_styled(text: str, *, on: bool) -> str:
    """Return a text with the counts of ops, such as `+A 3`, coloured, where `on`."""
    return _OP.sub(lambda found: styled(found[1], OP_STYLES[found[1]], on=True), text) if on else text


def wants_color(stream: TextIO, *, choice: str = "auto") -> bool:
    """Whether to colour what goes to a stream.

    Args:
        stream: Where it goes.
        choice: `always`, `never`, or `auto`: on a terminal, unless NO_COLOR or TERM=dumb asks for plain text.
    """
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return choice == "always" or (choice == "auto" and not plain and is_terminal(stream))


def columns_of(stream: TextIO) -> int | None:
    """Return the width of the stream's terminal, None where it is none."""
    return shutil.get_terminal_size().columns if is_terminal(stream) else None


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal."""
    return not stream.closed and stream.isatty()
