"""Diagnostic codes, each with a page: meaning, repair, an example that causes it.

The pages are sections `# CODE: title` of Markdown files beside this module. A new code is a new section. CXL has its own pages
in `cxl.codes`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_SECTION = re.compile(r"^# (?P<code>[A-Z][A-Za-z0-9-]*): (?P<title>.*)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^```(?P<language>\w+)(?P<settings>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """A text that causes the diagnostic: its language (yaml, cxl, toml, text), settings and text."""

    language: str
    settings: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """The page of one code."""

    code: str
    title: str
    text: str

    @property
    def examples(self) -> tuple[Example, ...]:
        """The fenced examples of the page."""
        return tuple(Example(found["language"], found["settings"].strip(), found["text"]) for found in _EXAMPLE.finditer(self.text))


@cache
def pages() -> Mapping[str, Page]:
    """Return all pages by code, in alphabetical order."""
    folder = files(__name__) / "pages"
    found = [page for file in folder.iterdir() if file.name.endswith(".md") for page in _sections(file.read_text(encoding="utf-8"))]
    own = {one.code for one in found}
    found += [one for one in _language() if one.code not in own]
    return {page.code: page for page in sorted(found, key=lambda page: page.code)}


def _language() -> list[Page]:
    from cxl import codes

    return [Page(one.code, one.title, f"# {codes.page(one)}") for one in codes.CODES]


def _sections(text: str) -> list[Page]:
    heads = list(_SECTION.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [Page(head["code"], head["title"], text[head.start() : end].strip() + "\n") for head, end in zip(heads, ends, strict=True)]


def page(code: str) -> str | None:
    """Return the text of a code's page, None for an unknown code. Case does not matter."""
    found = pages().get(code) or next((one for one in pages().values() if one.code.lower() == code.lower()), None)
    return found.text if found else None


def registered() -> tuple[str, ...]:
    """Return all codes."""
    return tuple(pages())
