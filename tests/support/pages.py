"""HTML as tests look at it: the tags that are open, the addresses, the text."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr", "img", "option"}
"""Tags that need no end."""


class Page(HTMLParser):
    """A page: tags that are open at its end, every address that it names, fields without a name for people (`unnamed`), its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.unnamed: list[dict[str, str | None]] = []

    @classmethod
    def of(cls, text: str) -> Page:
        """Read a page."""
        page = cls()
        page.feed(text)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "input" and "label" not in self.open and not {"aria-label", "hidden"} & {*dict(attrs), dict(attrs).get("type")}:
            self.unnamed.append(dict(attrs))
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "hx-get")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closes itself."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """The words of the page with one blank between them."""
        return " ".join(" ".join(self.words).split())
