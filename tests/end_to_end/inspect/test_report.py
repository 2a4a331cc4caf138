"""`errata report`: one page that needs nothing but itself."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from errata.rendering.dag_svg import Box, bars, dag
from tests.support.audited import project, with_history


class Page(HTMLParser):
    """The tags that are open, and every address that a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closes itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_asks_for_nothing(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    text = folder.load().report()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.addresses == []
    assert "script" not in text
    assert "audited: epoch 3" in text
    assert text.count("<rect") > len(folder.load().node_names)


def test_status_says_when_a_node_changed_last(tmp_path: Path) -> None:
    folder = with_history(tmp_path)
    told = {node["name"]: node["last_epoch"] for node in folder.load().status()["nodes"]}
    assert told == {name: max(row["epoch"] for row in folder.log(name)) for name in folder.load().node_names}


def test_a_pipeline_that_never_ran_has_a_page_too(tmp_path: Path) -> None:
    assert "audited: never run" in project(tmp_path).load().report()


def test_names_are_text() -> None:
    assert "&lt;b&gt;" in dag([Box("<b>", "source", ())])


def test_a_node_stands_behind_what_it_reads() -> None:
    picture = dag([Box("a", "", ()), Box("b", "", ("a",)), Box("c", "", ("a", "b"))])
    assert picture.count('class="edge"') == 3


def test_bars_have_the_height_of_their_share() -> None:
    assert 'height="100.0"' in bars({1: {"+A": 4}, 2: {"-R": 1}}, 100)
    assert 'height="25.0"' in bars({1: {"+A": 4}, 2: {"-R": 1}}, 100)
