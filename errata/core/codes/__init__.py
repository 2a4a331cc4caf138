"""Every diagnostic's code with its page: what it means, how to repair it, an example that causes it.

The pages are Markdown files beside this module; a section `# CODE: title` is the page of a code. A new code is a new
section, found by reading. The language has pages of its own in `cxl.codes`.
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
    """A text that causes the diagnostic: its language (yaml, cxl, toml, text) and the words beside it."""

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
    """All pages by code, in alphabetical order of the codes."""
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
    """The page of a code, in any case of letters; None for a code that is not registered."""
    found = pages().get(code) or next((one for one in pages().values() if one.code.lower() == code.lower()), None)
    return found.text if found else None


def registered() -> tuple[str, ...]:
    """All codes."""
    return tuple(pages())
