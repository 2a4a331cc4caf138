"""A font whose letters are boxes, so that pages take the same room on every machine, whatever fonts it has."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Sequence

UNITS = 1000
CHARACTERS = sorted({*map(chr, range(0x20, 0x7F)), *map(chr, range(0xA0, 0x180)), *"–—‘’“”•…←↑→↓−✓✗×·⚠▲▼■●"})
"""The characters that the font has."""
_NARROW, _WIDE, _BLANK = "ijlftrI.,:;'|!()[]{}´`·", "mwMW@%…→←—", " \u00a0"
_HEIGHT, _ASCENT, _DESCENT = 520, 800, 200


def box_font() -> bytes:
    """Return the font as a TrueType file."""
    widths = [500, *(280 if one in _NARROW or one in _BLANK else 850 if one in _WIDE else 560 for one in CHARACTERS)]
    glyphs = [b"", *(b"" if one in _BLANK else _box(width) for one, width in zip(CHARACTERS, widths[1:], strict=True))]
    places = [0]
    for glyph in glyphs:
        places.append(places[-1] + len(glyph))
    count = len(glyphs)
    tables = {
        b"OS/2": _os2(), b"cmap": _cmap(), b"glyf": b"".join(glyphs), b"head": _head(), b"hhea": struct.pack(">4xhhhHhhhhhh8xhH", _ASCENT, -_DESCENT, 0, max(widths), 0, 0, 850, 1, 0, 0, 0, count),
        b"hmtx": b"".join(struct.pack(">Hh", width, 40) for width in widths), b"loca": b"".join(struct.pack(">I", place) for place in places),
        b"maxp": struct.pack(">I14H", 0x10000, count, 4, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0), b"name": _name(), b"post": struct.pack(">IIhhIIIII", 0x30000, 0, -100, 50, 0, 0, 0, 0, 0),
    }  # fmt: skip
    tables[b"hhea"] = struct.pack(">I", 0x10000) + tables[b"hhea"][4:]
    return _file(tables)


def font_style() -> str:
    """Return a style sheet by which all text of a page has the font."""
    source = b64encode(box_font()).decode()
    faces = "".join(f'@font-face {{ font-family: Boxes; font-weight: {weight}; src: url("data:font/ttf;base64,{source}") }}\n' for weight in ("100 500", "501 900"))
    return f"{faces}*, svg text {{ font-family: Boxes !important; font-style: normal !important }}\n"


def _box(width: int) -> bytes:
    """A glyph of one rectangle, as long as four bytes ask for."""
    right = width - 40
    points = ((40, 0), (40, _HEIGHT), (right, _HEIGHT), (right, 0))
    steps = [(x - before[0], y - before[1]) for (x, y), before in zip(points, ((0, 0), *points[:-1]), strict=True)]
    found = struct.pack(">hhhhhHH", 1, 40, 0, right, _HEIGHT, 3, 0) + b"\x01" * 4
    found += b"".join(struct.pack(">h", x) for x, _ in steps) + b"".join(struct.pack(">h", y) for _, y in steps)
    return found + b"\0" * (-len(found) % 4)


def _cmap() -> bytes:
    """Which character is which glyph: a segment for each run of characters."""
    runs: list[tuple[int, int, int]] = []
    for glyph, one in enumerate(map(ord, CHARACTERS), 1):
        if runs and runs[-1][1] == one - 1:
            runs[-1] = (runs[-1][0], one, runs[-1][2])
        else:
            runs.append((one, one, glyph))
    runs.append((0xFFFF, 0xFFFF, 0x10000))
    count = len(runs)
    power = 1 << (count.bit_length() - 1)
    parts = [
        struct.pack(">HHHH", count * 2, power * 2, power.bit_length() - 1, (count - power) * 2), _shorts([end for _, end, _ in runs]), b"\0\0", _shorts([start for start, _, _ in runs]),
        _shorts([(glyph - start) % 0x10000 for start, _, glyph in runs]), _shorts([0] * count),
    ]  # fmt: skip
    body = b"".join(parts)
    return struct.pack(">HHHHI", 0, 1, 3, 1, 12) + struct.pack(">HHH", 4, len(body) + 6, 0) + body


def _shorts(values: Sequence[int]) -> bytes:
    return struct.pack(f">{len(values)}H", *values)


def _head() -> bytes:
    return struct.pack(">IIIIHHqqhhhhHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0x0B, UNITS, 0, 0, 0, -_DESCENT, 850, _ASCENT, 0, 8, 2, 1, 0)


def _os2() -> bytes:
    strikes = (650, 700, 0, 140, 650, 700, 0, 480, 50, 250)
    return struct.pack(
        ">HhHHH10hh10s4I4sHHHhhhHHII", 3, 560, 400, 5, 0, *strikes, 0, b"\0" * 10, 0, 0, 0, 0, b"NONE", 0x40, 0x20, 0x25CF, _ASCENT, -_DESCENT, 0, _ASCENT, _DESCENT, 1, 0
    ) + struct.pack(">hhHHH", _HEIGHT, _ASCENT, 0, 0x20, 0)


def _name() -> bytes:
    words = {1: "Boxes", 2: "Regular", 3: "Boxes", 4: "Boxes", 5: "Version 1.0", 6: "Boxes"}
    texts = [word.encode("utf-16-be") for word in words.values()]
    places = [sum(map(len, texts[:at])) for at in range(len(texts))]
    records = b"".join(struct.pack(">6H", 3, 1, 0x409, number, len(text), place) for number, text, place in zip(words, texts, places, strict=True))
    return struct.pack(">HHH", 0, len(words), 6 + len(records)) + records + b"".join(texts)


def _file(tables: dict[bytes, bytes]) -> bytes:
    """The tables behind their directory."""
    count = len(tables)
    power = 1 << (count.bit_length() - 1)
    place, directory, body = 12 + 16 * count, b"", b""
    for tag, data in sorted(tables.items()):
        padded = data + b"\0" * (-len(data) % 4)
        directory += tag + struct.pack(">III", _checksum(padded), place + len(body), len(data))
        body += padded
    return struct.pack(">IHHHH", 0x10000, count, power * 16, power.bit_length() - 1, (count - power) * 16) + directory + body


def _checksum(data: bytes) -> int:
    return sum(struct.unpack(f">{len(data) // 4}I", data)) & 0xFFFFFFFF
