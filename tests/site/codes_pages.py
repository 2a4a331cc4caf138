"""The pages of all diagnostics: `docs/reference/diagnostics/`, one page a subject, as `errata explain --code` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from errata.core import codes

if TYPE_CHECKING:
    from errata.core.codes import Page

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "diagnostics"
TITLES = {
    "branches": "Routes and merges",
    "combine": "Combines",
    "compositions": "Compositions",
    "configuration": "Keys, nodes, engine settings",
    "connections": "Databases",
    "cxl": "CXL",
    "files": "YAML files, the environment",
    "formats": "Workbooks and Avro",
    "histories": "Histories",
    "nodes": "Aggregates, analytic windows, memory",
    "source": "Sources and outputs",
    "variables": "Variables and channels",
    "windows": "Time windows",
}
INTRODUCTION = """\
# Diagnostics

Every message that names a problem of a pipeline, a file or the machine has a code. The same text as here is printed by `errata explain --code CODE`. These pages are made from the texts of the program: `make docs` writes them.

A code that begins with `W` or `CXL-W` is a warning: the exit code stays the same. The examples are nodes or files that cause the diagnostic; a test runs each.

| code | meaning |
|---|---|
"""


@cache
def subjects() -> Mapping[str, tuple[Page, ...]]:
    """Return the diagnostics of each page, by the name of the page."""
    by_code = codes.pages()
    named = {file.name.removesuffix(".md"): re.findall(r"(?m)^# ([A-Z][A-Za-z0-9-]*): ", file.read_text(encoding="utf-8")) for file in (files(codes) / "pages").iterdir()}
    own = {code for listed in named.values() for code in listed}
    named["cxl"] = [code for code in by_code if code not in own]
    return {name: tuple(by_code[code] for code in listed) for name, listed in sorted(named.items())}


def address(code: str) -> str | None:
    """Return the address of a code from the folder of these pages, None for an unknown code."""
    for name, listed in subjects().items():
        for page in listed:
            if page.code == code:
                return f"{name}.md#{anchor(heading(page))}"
    return None


def heading(page: Page) -> str:
    return f"{page.code}: {page.title}"


def anchor(text: str) -> str:
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page with its text."""
    index = [f"| [`{page.code}`]({address(page.code)}) | {escaped(page.title)} |" for page in codes.pages().values()]
    yield FOLDER / "README.md", INTRODUCTION + "\n".join(index) + "\n"
    for name, listed in subjects().items():
        title = TITLES.get(name, name.replace("_", " ").capitalize())
        sections = [f"## {heading(page)}\n\n{body(page)}" for page in listed]
        yield FOLDER / f"{name}.md", f"# Diagnostics: {title[0].lower() + title[1:] if title[1].islower() else title}\n\n" + "\n\n".join(sections) + "\n"


def body(page: Page) -> str:
    """Return the text of a diagnostic; the settings of its examples are for the tests."""
    text = page.text.split("\n", 1)[1].strip()
    return re.sub(r"(?m)^```(\w+) [^\n]*$", r"```\1", text)


def escaped(text: str) -> str:
    return re.sub(r"([|*_<>])", r"\\\1", text)
