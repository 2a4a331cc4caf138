"""Pages of `errata ui` as Chromium shows them, dark and light, on a phone and on a desk, compared with pictures.

All text is set in a font of boxes, and the times of epochs are fixed, so that the pages are the same on every machine. `python -m tests.end_to_end.ui.test_screens`
takes the pictures of today into `screens/`.
"""

from __future__ import annotations

import json
import re
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from storage.state.entry import Entry
from storage.state.ledger import Ledger, _rows
from tests.support.audited import LINES, PIPELINE, lines, with_history
from tests.support.box_font import CHARACTERS, font_style
from tests.support.chromium import Browser, browsing
from tests.support.pipelines import Folder
from tests.support.sites import Visit

SCREENS = Path(__file__).parent / "screens"
WIDTHS = (400, 1400)
SCALE = 0.25
"""The scale of pictures."""
THEMES = ("light", "dark")
PAGES = ("overview", "calendar", "output", "row", "letters", "next")
MOST_MOVED = 2
"""Pixels by which a part of a page may be elsewhere."""
MOST_DIFFERENT = 0.01
"""The share of a picture's pixels that may have another colour."""
_PARTS = "header, nav ul, main, h1, h2, .facts, .dag svg, .chart svg, .scroll, table, form, .notice, .letter, .tree, .pager"
_PLACES = f"""(() => [...document.querySelectorAll({json.dumps(_PARTS)})].filter(one => one.checkVisibility()).map(one => {{
  const box = one.getBoundingClientRect()
  return [one.localName + (one.getAttribute("class") ? "." + one.getAttribute("class").split(" ")[0] : ""), ...[box.x, box.y, box.width, box.height].map(Math.round)]
}}))()"""
_SPILLED = "document.documentElement.scrollWidth - innerWidth"
_DIFFERENT = """(async () => {
  const pixels = await Promise.all(PICTURES.map(async text => {
    const image = new Image()
    image.src = "data:image/png;base64," + text
    await image.decode()
    const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d")
    context.drawImage(image, 0, 0)
    return context.getImageData(0, 0, image.width, image.height)
  }))
  const [one, other] = pixels
  if (one.width !== other.width || Math.abs(one.height - other.height) > 2) return 1
  const length = Math.min(one.data.length, other.data.length)
  let found = 0
  for (let at = 0; at < length; at += 4)
    if (Math.max(...[0, 1, 2].map(part => Math.abs(one.data[at + part] - other.data[at + part]))) > 32) found += 4
  return found / length
})()"""


def history(path: Path) -> Folder:
    """A project with corrections, a rejected record and fixed times: an epoch a day."""
    folder = with_history(path, pipeline=PIPELINE + "error_handling: { strategy: continue, dlq: { path: rejected.csv } }\n")
    changed = lines(0)
    changed[4] = {**changed[4], "qty": "many"}
    folder.write_csv("lines.csv", LINES, changed)
    folder.run()
    ledger = Ledger(folder.load().state.ledger)
    made: list[Entry] = []
    for entry in ledger.entries():
        started = datetime(2026, 3, entry.epoch, 9, 30, tzinfo=UTC)
        fixed = replace(entry, started=started, finished=started + timedelta(seconds=1.5), execution_id=f"run-{entry.epoch}")
        made.append(fixed.sealed(made[-1].hash if made else ""))
    write_deltalake(ledger.uri, _rows(made), mode="overwrite")
    return folder


def shown(folder: Folder) -> dict[str, str]:
    """The pages with their style inside, and the font of boxes."""
    visit = Visit(folder, writes=True)
    [key] = [row["key"] for row in folder.log("costs") if row["epoch"] == 2 and row["op"] == "+C"][:1]
    addresses = ("/", "/calendar", "/output?name=costs", f"/row?node=costs&key={key}&why=yes", "/letters", "/next")
    style = f"<style>{visit.client.get('/static/pages.css').text}\n{font_style()}</style>"
    return {name: _fixed(visit.client.get(address).text, style) for name, address in zip(PAGES, addresses, strict=True)}


def _fixed(text: str, style: str) -> str:
    text = re.sub(r"<link rel=.stylesheet.[^>]*>", lambda _found: style, text)
    return re.sub(r"<script[^>]*></script>", "", text)


def screens(browser: Browser, html: str) -> Iterator[tuple[str, Any, str]]:
    """Yield each look of a page: its name, the places of its parts, its picture."""
    browser.look(1400, "light")
    browser.show(html)
    for width in WIDTHS:
        for theme in THEMES:
            browser.look(width, theme)
            assert browser.value(_SPILLED) <= 0, f"the page is wider than {width} pixels"
            yield f"{width}-{theme}", browser.value(_PLACES), browser.picture(SCALE)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return shown(history(tmp_path_factory.mktemp("screens")))


def test_pages_look_as_their_pictures(pages: dict[str, str], tmp_path: Path) -> None:
    kept = tmp_path / "screens"  # stays behind a failure
    kept.mkdir()
    wrong = []
    with browsing() as browser:
        for name, html in pages.items():
            assert set(re.sub("<style>.*?</style>|<[^>]*>|\n|\t", "", html, flags=re.DOTALL)) <= set(CHARACTERS)
            for look, places, picture in [*screens(browser, html)]:
                (kept / f"{name}-{look}.png").write_bytes(b64decode(picture))
                wrong += [f"{name} {look}: {difference}" for difference in differences(browser, f"{name}-{look}", places, picture)]
    assert wrong == [], f"the pictures of this run are in {kept}"


def differences(browser: Browser, name: str, places: Any, picture: str) -> Iterator[str]:
    """Yield how a look differs from the one that was taken before."""
    known = json.loads((SCREENS / "places.json").read_text())[name]
    if [one[0] for one in places] != [one[0] for one in known]:
        yield f"its parts are {[one[0] for one in places]}, not {[one[0] for one in known]}"
        return
    yield from (f"{now} was {before}" for now, before in zip(places, known, strict=True) if any(abs(one - other) > MOST_MOVED for one, other in zip(now[1:], before[1:], strict=True)))
    before = b64encode((SCREENS / f"{name}.png").read_bytes()).decode()
    share = browser.value(_DIFFERENT.replace("PICTURES", json.dumps([picture, before])))
    if share > MOST_DIFFERENT:
        yield f"{share:.1%} of its pixels have other colours"


def test_a_page_that_looks_different_is_found(pages: dict[str, str]) -> None:
    changes = {"moved": ("<h1>", '<h1 style="padding-top: 6px">'), "coloured": ("<body>", '<body style="background: #808080">'), "gone": ("<h2>Nodes</h2>", "")}
    with browsing() as browser:
        for name, (before, after) in changes.items():
            assert before in pages["overview"]
            look, places, picture = next(screens(browser, pages["overview"].replace(before, after)))
            assert [*differences(browser, f"overview-{look}", places, picture)] != [], name


def take() -> None:
    """Take the pictures and the places of today."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        for name, html in shown(history(Path(folder))).items():
            for look, places, picture in screens(browser, html):
                found[f"{name}-{look}"] = places
                (SCREENS / f"{name}-{look}.png").write_bytes(b64decode(picture))
    texts = ",\n".join(f"{json.dumps(name)}: {json.dumps(places)}" for name, places in found.items())
    (SCREENS / "places.json").write_text("{\n" + texts + "\n}\n")


if __name__ == "__main__":
    take()
