"""Text for a terminal: control characters escaped, wide characters counted, optional colour."""

import os
import re
import shutil
import unicodedata
from typing import TextIO

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_STEERING = re.compile(r"(?!\r\n|[\n\t])" + _CONTROL.pattern)
_STYLES = {"red": "31", "yellow": "33", "blue": "34", "green": "32", "bold": "1", "dim": "2"}
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
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """Return the text, or as much of it as fits into `columns` with three dots after it."""
    if width(text) <= columns:
        return text
    short = text[: columns - 3]
    while width(short) > columns - 3:
        short = short[:-1]
    return f"{short}..."


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Return the text filled with blanks to `columns`."""
    blanks = " " * max(columns - width(text), 0)
    return blanks + text if right else text + blanks


def styled(text: str, *names: str, on: bool) -> str:
    """Return the text in the styles named, where `on`."""
    return f"\x1b[{';'.join(_STYLES[name] for name in names)}m{text}\x1b[0m" if on and text else text


def wants_color(stream: TextIO, *, no_color: bool = False) -> bool:
    """Whether the stream is a terminal and plain text was not requested (--no-color, NO_COLOR, TERM=dumb)."""
    plain = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return not plain and is_terminal(stream)


def columns_of(stream: TextIO) -> int | None:
    """Return the width of the stream's terminal, None where it is none."""
    return shutil.get_terminal_size().columns if is_terminal(stream) else None


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal."""
    return not stream.closed and stream.isatty()
