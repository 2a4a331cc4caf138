"""Where pages lead to: addresses of `errata ui`. A report leads nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of pages. Each is empty where `live` is false, and templates then show the text alone.

    Args:
        live: Whether a server answers.
        writes: Whether the server takes corrections.
        form_token: What a form must send along.
        origin: What goes before an address that is shared.
    """

    live: bool = False
    writes: bool = False
    form_token: str = ""
    origin: str = ""

    def page(self, name: str, /, **query: Any) -> str:
        """The address of a page. Empty and missing parts of the query are left out."""
        given = {key: value for key, value in query.items() if value not in (None, "")}
        return "" if not self.live else f"/{name}?{urlencode(given)}" if given else f"/{name}"

    def node(self, name: str) -> str:
        """A node's page."""
        return self.page("node", name=name)

    def changes(self, name: str, epoch: int, part: int | None = None) -> str:
        """The rows that an epoch changed in a node."""
        return self.page("changes", node=name, epoch=epoch, part=part)

    def row(self, name: str, key: str, *, why: bool = False) -> str:
        """A row's story, with what is behind it or without."""
        return self.page("row", node=name, key=key, why="yes" if why else None)

    def output(self, name: str, part: int | None = None) -> str:
        """An output's corrections."""
        return self.page("output", name=name, part=part)
