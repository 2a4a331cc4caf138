"""`errata lsp` in Neovim with the settings of the documents: what it shows is what the picture of the documents shows."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from re import findall

from tests.site.neovim import PICTURE, drawn, shown


def words(picture: str) -> list[str]:
    """The texts of a picture. Other versions of the editor have other colours, and so cut lines elsewhere."""
    return "".join(unescape(text) for text in findall("<text [^>]*>([^<]*)</text>", picture)).split()


def test_the_picture_of_the_documents_is_what_neovim_shows(tmp_path: Path) -> None:
    screen = shown(tmp_path)
    assert "".join(words(drawn(screen))) == "".join(words(PICTURE.read_text(encoding="utf-8")))
    [line] = [line for line in screen.lines if "emit tax = amuont" in line]
    assert "unknown field 'amuont'" in line
    assert "did you mean 'amount'?" in line
