"""The picture of `errata lsp` in Neovim, with the settings that `docs/how-to/editors.md` shows: `python -m tests.site.neovim` writes it where Neovim is."""

from __future__ import annotations

import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape

from tests.site.pages import DOCS
from tests.support.neovim import Cell, Screen, editing

PICTURE = DOCS / "pictures" / "neovim.svg"
PIPELINE = """\
pipeline:
  name: shop
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      schema: [{name: id, type: int}, {name: amount, type: float}]
  - type: transform
    name: taxed
    input: orders
    config:
      cxl: |
        emit tax = amuont * 0.19
        emit total = amount + tax
  - type: output
    name: report
    input: taxed
    config: {name: report, type: csv, path: out/report.csv}
"""
WIDE, HIGH = 7.8, 18
GROUND, TEXT = 0x1E2227, 0xDDE1E6


def shown(folder: Path) -> Screen:
    """Return the screen with a message of the checker, and the hover of a column.

    Args:
        folder: an empty folder
    """
    settings = re.findall(r"^```lua\n(.*?)^```$", (DOCS / "how-to" / "editors.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    command = folder / "errata"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m errata "$@"\n', encoding="utf-8")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")
    begin = f'vim.env.PATH = "{folder}:" .. vim.env.PATH\nvim.o.termguicolors, vim.o.background, vim.o.number, vim.o.ruler, vim.o.signcolumn = true, "dark", true, false, "yes"\n'
    colours = {"Normal": "guibg=NONE", "NormalFloat": "guibg=#2f363f", "SignColumn": "guibg=NONE", "LineNr": "guifg=#768390", "Identifier": "guifg=#6cb6ff", "Special": "guifg=#adbac7", "DiagnosticError": "guifg=#ff938a"}
    begin += "".join(f"vim.cmd('highlight {name} {colour}')\n" for name, colour in colours.items())
    with editing(folder, f"{begin}vim.o.laststatus, vim.o.shortmess = 0, vim.o.shortmess .. 'F'\n{settings}", "pipeline.yaml", 100, 40) as editor:
        editor.until(lambda: bool(editor.lua("return #vim.diagnostic.get(0)")))
        editor.lua("vim.api.nvim_win_set_cursor(0, {17, 22}); vim.lsp.buf.hover()")
        editor.until(lambda: any(line.strip().startswith("amount: ") for line in editor.screen.lines[17:]))
        return editor.screen


def drawn(screen: Screen) -> str:
    """Return a screen as SVG."""
    lines = [line for line in screen.cells if "".join(cell.text for cell in line).strip(" ~")]
    width, height = screen.width * WIDE + 16, len(lines) * HIGH + 16
    parts = [part for row, line in enumerate(lines) for part in _line(screen, row, line)]
    title = "Neovim with a message of the checker beside a misspelt column, and the type of a column below the cursor"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img" aria-label="{title}">',
        f"<title>{title}</title>", f'<rect width="100%" height="100%" rx="8" fill="#{GROUND:06x}"/>',
        '<g font-family="ui-monospace, \'DejaVu Sans Mono\', monospace" font-size="13" xml:space="preserve">', *parts, "</g>", "</svg>", "",
    ])  # fmt: skip


def _line(screen: Screen, row: int, line: list[Cell]) -> Iterator[str]:
    column, y = 0, 8 + row * HIGH
    for style, cells in groupby(line, key=lambda cell: cell.style):
        text = "".join(cell.text for cell in cells)
        look = screen.styles.get(style, {})
        colours = [look.get("foreground", TEXT), look.get("background", GROUND)] if style else [TEXT, GROUND]
        front, back = reversed(colours) if look.get("reverse") else colours
        x, width, word = 8 + column * WIDE, len(text) * WIDE, text.strip()
        if back != GROUND:
            yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HIGH}" fill="#{back:06x}"/>'
        if word:
            start = x + (len(text) - len(text.lstrip())) * WIDE
            weight = ' font-weight="bold"' if look.get("bold") else ""
            below = ' text-decoration="underline"' if look.get("underline") else ""
            yield f'<text x="{start:.1f}" y="{y + 13}" fill="#{front:06x}" textLength="{len(word) * WIDE:.1f}" lengthAdjust="spacingAndGlyphs"{weight}{below}>{escape(word)}</text>'
        column += len(text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PICTURE.write_text(drawn(shown(Path(place))), encoding="utf-8")
