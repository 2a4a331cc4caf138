"""The files made from the program: pages of keys, commands, diagnostics and functions, and the pictures. `python -m tests.documents --write` writes all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cxl.commands.reference import markdown as functions
from tests import keys_page
from tests.site import codes_pages, commands_page
from tests.site.pages import DOCS
from tests.site.pictures import pictures

FUNCTIONS = DOCS / "reference" / "cxl" / "functions.md"


def pages() -> Mapping[Path, str]:
    """Return the generated pages with their texts."""
    return {keys_page.PAGE: keys_page.markdown(), commands_page.PAGE: commands_page.markdown(), FUNCTIONS: functions(), **dict(codes_pages.pages())}


@cache
def drawn() -> Mapping[Path, str]:
    """Return the pictures with their texts; this runs some examples."""
    with tempfile.TemporaryDirectory() as folder:
        return dict(pictures(Path(folder)))


def write(texts: Mapping[Path, str]) -> None:
    """Write pages or pictures, and remove diagnostics' pages that are no more."""
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
