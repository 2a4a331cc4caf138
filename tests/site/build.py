"""`make site`: the documents as a site, below `build/site/`.

Zensical builds it from a copy of `docs/` (`tests/site/pages.py`). Warnings fail the build, and so does a page that would load something from another place.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.site.drawing import SITE_STYLE
from tests.site.pages import ROOT, Copy, navigation

SITE = ROOT / "build" / "site"
SOURCES = ROOT / "build" / "site-sources"
SETTINGS = Path(__file__).with_name("zensical.toml")
OWN = ("site.css", "worker.js")
SHIM = "https://unpkg.com/iframe-worker/shim"
"""The script that Zensical loads for the search of pages that are opened from a disk; `worker.js` takes its place."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LOADED = re.compile(r"""<(?:script|link|img|iframe|source|video|audio)\b[^>]*\b(?:src|href|srcset)=["']?((?:https?:)?//[^\s"'>]+)|@import\s+["'](https?:[^"']+)|url\(["']?((?:https?:)?//[^)"']+)""")


def toml(value: object) -> str:
    """Return a text, a list or a table of one key as TOML."""
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(key)} = {toml(inner)}" for key, inner in value.items()) + " }"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def build(sources: Path = SOURCES, site: Path = SITE) -> None:
    """Build the site.

    Args:
        sources: the folder for the copy of the pages and the settings
        site: the folder of the site
    """
    for folder in (sources, site):
        shutil.rmtree(folder, ignore_errors=True)
    Copy(sources / "docs").write()
    for name in OWN:
        shutil.copy(Path(__file__).with_name(name), sources / "docs" / name)
    with (sources / "docs" / "site.css").open("a", encoding="utf-8") as file:
        file.write(SITE_STYLE)
    menu = [{"Home": "README.md"} if entry == "README.md" else entry for entry in navigation()]
    settings = SETTINGS.read_text(encoding="utf-8").replace("nav = []", f"nav = {toml(menu)}")
    (sources / "zensical.toml").write_text(settings, encoding="utf-8")
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict", "--clean", "--config-file", sources / "zensical.toml"]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(COLOURS.sub("", done.stdout + done.stderr).partition("Traceback")[0])
    shutil.move(sources / "site", site)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(SHIM, os.path.relpath(site / "worker.js", page.parent)), encoding="utf-8")
    if loads := list(loaded(site)):
        raise SystemExit("pages load from other places:\n" + "\n".join(f"{page.relative_to(site)}: {address}" for page, address in loads))


def loaded(site: Path) -> Iterator[tuple[Path, str]]:
    """Yield pages and style sheets that load something from another place, with its address."""
    for page in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for found in LOADED.finditer(page.read_text(encoding="utf-8")):
            yield page, next(filter(None, found.groups()))


if __name__ == "__main__":
    build()
    sys.stdout.write(f"built {SITE.relative_to(ROOT)}/index.html\n")
