"""Neovim as a screen of cells: an embedded editor that a test asks by MessagePack, and what it would show on a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.chromium import REQUIRED

PATIENCE = 60.0
"""Seconds that the editor has to show something."""


class Cell(NamedTuple):
    """A character with the number of its colours."""

    text: str = " "
    style: int = 0


@dataclass
class Screen:
    """The screen of the editor. `styles` are colours and the like by number; 0 is the default."""

    width: int
    height: int
    styles: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    cells: list[list[Cell]] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """The text of each line."""
        return ["".join(cell.text for cell in line).rstrip() for line in self.cells]

    def draw(self, name: str, words: Sequence[Any]) -> None:
        """Take one event of a screen."""
        if name == "grid_clear":
            self.cells = [[Cell()] * self.width for _ in range(self.height)]
        elif name == "hl_attr_define":
            self.styles[words[0]] = words[1]
        elif name == "default_colors_set":
            self.styles[0] = {"foreground": words[0], "background": words[1]}
        elif name == "grid_line":
            self._line(*words[1:4])
        elif name == "grid_scroll":
            self._scroll(*words[1:6])

    def _line(self, row: int, column: int, cells: Sequence[Sequence[Any]]) -> None:
        style = 0
        for text, *more in cells:
            style = more[0] if more else style
            for _ in range(more[1] if len(more) > 1 else 1):
                self.cells[row][column] = Cell(text, style)
                column += 1

    def _scroll(self, top: int, bottom: int, left: int, right: int, rows: int) -> None:
        for row in range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1):
            self.cells[row][left:right] = self.cells[row + rows][left:right]


@dataclass
class Editor:
    """A running Neovim."""

    process: subprocess.Popen[bytes]
    screen: Screen
    number: int = 0
    buffered: bytearray = field(default_factory=bytearray)

    def ask(self, method: str, *words: Any) -> Any:
        """Call a function of the editor. Raises AssertionError where it fails."""
        self.number += 1
        assert self.process.stdin is not None
        self.process.stdin.write(packed([0, self.number, method, list(words)]))
        self.process.stdin.flush()
        while True:
            message = self._message(time.monotonic() + PATIENCE)
            if message[0] == 1 and message[1] == self.number:
                assert message[2] is None, message[2]
                return message[3]

    def lua(self, text: str) -> Any:
        """Return what a piece of Lua returns."""
        return self.ask("nvim_exec_lua", text, [])

    def until(self, shown: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + PATIENCE
        while not shown():
            assert time.monotonic() < end, "\n".join(self.screen.lines)
            time.sleep(0.1)
            self.lua("vim.cmd('redraw')")

    def _message(self, deadline: float) -> Any:
        while True:
            try:
                message, used = unpacked(memoryview(bytes(self.buffered)), 0)
            except (IndexError, struct.error):
                assert self.process.stdout is not None
                ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
                assert ready, f"the editor did not answer within {PATIENCE:.0f} s"
                read = os.read(self.process.stdout.fileno(), 1 << 16)
                assert read, "the editor ended"
                self.buffered += read
                continue
            del self.buffered[:used]
            if message[0] == 2 and message[1] == "redraw":
                for name, *events in message[2]:
                    for words in events:
                        self.screen.draw(name, words)
                continue
            return message


@contextlib.contextmanager
def editing(folder: Path, settings: str, file: str, width: int = 100, height: int = 30) -> Iterator[Editor]:
    """Start Neovim for the body of a `with`. Skips the test where there is none, unless it has to be.

    Args:
        folder: Where it starts; its settings are below it too.
        settings: The text of `init.lua`.
        file: The file that it opens.
        width: The columns of its screen.
        height: The lines of its screen.
    """
    program = shutil.which("nvim")
    if program is None:
        assert "nvim" not in REQUIRED, "Neovim is not installed"
        pytest.skip("the language server is tried in Neovim, which is not installed: apt-get install neovim")
    (folder / "init.lua").write_text(settings, encoding="utf-8")
    places = {name: str(folder / ".nvim") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    words = [program, "--embed", "-n", "-i", "NONE", "-u", "init.lua", file]
    process = subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **places})
    editor = Editor(process, Screen(width, height))
    try:
        editor.ask("nvim_ui_attach", width, height, {"rgb": True, "ext_linegrid": True})
        yield editor
    finally:
        process.kill()
        process.communicate()


def packed(value: Any) -> bytes:
    """Return a value as MessagePack."""
    if value is None or isinstance(value, bool):
        return bytes([0xC0 if value is None else 0xC3 if value else 0xC2])
    if isinstance(value, int):
        return struct.pack(">Bq", 0xD3, value)
    if isinstance(value, str):
        return struct.pack(">BI", 0xDB, len(value.encode())) + value.encode()
    if isinstance(value, Mapping):
        return struct.pack(">BI", 0xDF, len(value)) + b"".join(packed(part) for pair in value.items() for part in pair)
    return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(packed, value))


_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_SIZES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xC7: ">B", 0xC8: ">H", 0xC9: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def unpacked(data: memoryview, at: int) -> tuple[Any, int]:
    """Return the value at a place, and the place after it. Raises IndexError or struct.error where data is missing."""
    head, at = data[at], at + 1
    if head < 0x80 or head >= 0xE0:
        return (head if head < 0x80 else head - 0x100), at
    if head < 0xC0:
        kind, size = (0xDF, head & 0x0F) if head < 0x90 else (0xDD, head & 0x0F) if head < 0xA0 else (0xDB, head & 0x1F)
        return _sized(data, at, kind, size)
    if head in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    if head in _NUMBERS:
        form = _NUMBERS[head]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if head in _EXTENSIONS:
        return _bytes(data, at + 1, _EXTENSIONS[head])
    form = _SIZES[head]
    return _sized(data, at + struct.calcsize(form), head, struct.unpack_from(form, data, at)[0])


def _sized(data: memoryview, at: int, kind: int, size: int) -> tuple[Any, int]:
    if kind in (0xDC, 0xDD, 0xDE, 0xDF):
        found = []
        for _ in range(size * (2 if kind >= 0xDE else 1)):
            value, at = unpacked(data, at)
            found.append(value)
        return (dict(zip(found[::2], found[1::2], strict=True)) if kind >= 0xDE else found), at
    if kind in (0xC7, 0xC8, 0xC9):
        return _bytes(data, at + 1, size)
    read, at = _bytes(data, at, size)
    return (read.decode("utf-8", "replace") if kind >= 0xD9 else read), at


def _bytes(data: memoryview, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise IndexError
    return bytes(data[at : at + size]), at + size
