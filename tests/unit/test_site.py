"""The documents as a site: it builds without a warning, holds every page, loads nothing from elsewhere."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.site.build import build, loaded
from tests.site.pages import DOCS, navigation, title
from tests.support.chromium import browsing


def entries(menu):
    for entry in menu:
        for inner in entry.values() if isinstance(entry, dict) else [entry]:
            yield from entries(inner) if isinstance(inner, list) else [inner]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(folder / "sources", folder / "site")
    return folder / "site"


def test_the_menu_holds_every_page_once():
    inside = [entry for entry in entries(navigation()) if not entry.startswith("files/")]
    assert sorted(inside) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_every_page_becomes_one_of_the_site(site):
    expected = {page.relative_to(DOCS).with_suffix(".html").as_posix().replace("README", "index") for page in DOCS.rglob("*.md")}
    assert expected <= {page.relative_to(site).as_posix() for page in site.rglob("*.html")}


def test_every_page_is_found_by_the_search(site):
    index = (site / "search.js").read_text(encoding="utf-8")
    assert [page for page in DOCS.rglob("*.md") if title(page).replace("`", "") not in index] == []


def test_links_in_the_pages_of_the_site_lead_somewhere(site):
    broken = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for address, anchor in re.findall(r'<a\b[^>]*\bhref="(?!https?:|mailto:)([^"#]*)(?:#([^"]*))?"', text):
            target = (page.parent / address).resolve() if address else page
            if target.is_dir():
                target /= "index.html"
            if page.name != "404.html" and (not target.exists() or (anchor and f'id="{anchor}"' not in target.read_text(encoding="utf-8"))):
                broken.append(f"{page.relative_to(site)}: {address}#{anchor}")
    assert broken == []


LOOKED_AT = ("index.html", "start/first-pipeline.html", "reference/keys.html", "reference/merge-strategies.html")
FOUND = "[...document.querySelectorAll('div')].filter(one => one.shadowRoot).flatMap(one => [...one.shadowRoot.querySelectorAll('a')].map(link => link.href))"


GROUND = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).reduce((sum, one) => sum + Number(one), 0)"
"""The brightness of a page, up to 765."""


def test_pages_fit_a_phone_and_a_dark_room_and_the_search_finds_them(site):
    """Opened from the disk, as somebody without network reads them."""
    with browsing() as browser:
        for page in LOOKED_AT:
            browser.visit((site / page).as_uri())
            for width, theme in itertools.product((400, 1400), ("light", "dark")):
                browser.look(width, theme)
                browser.until(f"{GROUND} {'> 600' if theme == 'light' else '< 150'}")
                assert browser.value("document.documentElement.scrollWidth - innerWidth") <= 0, (page, width)
        browser.value("document.querySelector('.md-search__button').click()")
        browser.until("document.activeElement?.shadowRoot != null")
        browser.ask("Input.insertText", text="correlation")
        assert any("rollback" in address for address in browser.until(f"(found => found.length ? found : null)({FOUND})"))


def test_a_page_that_loads_from_elsewhere_is_found(tmp_path):
    pages = {
        "script.html": '<script async src="https://cdn.example/x.js">',
        "link.html": "<link rel=stylesheet href=//cdn.example/x.css>",
        "style.css": "@import 'https://cdn.example/x.css'; a { background: url(https://cdn.example/x.png) }",
        "fine.html": '<a href="https://example.org">elsewhere</a><img src="picture.svg">',
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [(page.name, address) for page, address in loaded(tmp_path)] == [
        ("link.html", "//cdn.example/x.css"),
        ("script.html", "https://cdn.example/x.js"),
        ("style.css", "https://cdn.example/x.css"),
        ("style.css", "https://cdn.example/x.png"),
    ]
