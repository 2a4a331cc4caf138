"""The pages of the site: where each page of `docs/` goes, and what it links to outside of `docs/`.

The site is made of a copy of `docs/`. A link to a file elsewhere in the repository, an example's pipeline say, leads to a page with its text, below `files/`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]+)?(\))")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+\.svg)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SUBJECTS = re.compile(r"^\| subject \| page \|\n\|[-|]*\n((?:\|.*\n)+)", re.MULTILINE)
TITLED = re.compile(r'^```\w+ title="([^"\n]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
LANGUAGES = {".yaml": "yaml", ".csv": "text", ".sh": "bash", ".py": "python", ".json": "json", ".toml": "toml", ".service": "ini", ".timer": "ini"}


@cache
def tracked() -> frozenset[str]:
    """Return the files of the repository, as paths from its root."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def titled(page: Path) -> list[tuple[str, str]]:
    """Return the files that a page shows, path and text, in order: blocks with a title."""
    return TITLED.findall(page.read_text(encoding="utf-8"))


def title(page: Path) -> str:
    """Return the first heading of a page."""
    found = TITLE.search(FENCE.sub("", page.read_text(encoding="utf-8")))
    if found is None:
        raise ValueError(f"{page}: no heading of level 1")
    return found[1].replace("`", "")


def linked(page: Path) -> Iterator[Path]:
    """Yield what a page links to, in the order of the links."""
    for link in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        yield (page.parent / link[2]).resolve()


def navigation(folder: Path = DOCS) -> list[object]:
    """Return the menu of a folder: pages and inner folders in the order in which its README links to them, then all others.

    A README with a table of subjects groups the pages by them.

    Args:
        folder: a folder of `docs/` with a page `README.md`
    """
    opening = folder / "README.md"
    inner = [path / "README.md" for path in sorted(folder.iterdir()) if (path / "README.md").is_file()]
    own = {page: entry(page) for page in [*sorted(folder.glob("*.md")), *inner] if page != opening}
    own |= {page: entry(page) for page in linked(opening) if page.suffix == ".md" and page.is_file() and not page.is_relative_to(DOCS)}
    groups = [(name, [page for page in pages if page in own]) for name, pages in subjects(opening)]
    grouped = {page for _, pages in groups for page in pages}
    order = [page for page in dict.fromkeys([*linked(opening), *own]) if page in own and page not in grouped]
    menu: list[object] = [opening.relative_to(DOCS).as_posix()]
    menu += [{name: [own[page] for page in dict.fromkeys(pages)]} for name, pages in groups]
    return [*menu, *(own[page] for page in order)]


def entry(page: Path) -> dict[str, object]:
    """Return the entry of the menu for a page, or for the folder of a README."""
    if page.name == "README.md" and page.is_relative_to(DOCS):
        return {title(page): navigation(page.parent)}
    place = page.relative_to(DOCS) if page.is_relative_to(DOCS) else outside(page)
    name = title(page).removeprefix("Diagnostics: ")
    return {name[0].upper() + name[1:]: place.as_posix()}


def subjects(page: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield the subjects of a page's table of subjects, each with the pages that it links to."""
    table = SUBJECTS.search(page.read_text(encoding="utf-8"))
    for line in table[1].splitlines() if table else ():
        name, cell = line.strip("| ").split(" | ", 1)
        yield name[0].upper() + name[1:], [(page.parent / link[2]).resolve() for link in LINK.finditer(cell)]


def outside(file: Path) -> Path:
    """Return the place on the site of a file outside of `docs/`. The site has no names that begin with a point."""
    place = Path("files", *(f"dot-{part[1:]}" if part.startswith(".") else part for part in file.relative_to(ROOT).parts))
    if file.is_dir():
        return place / "README.md"
    return place if place.suffix == ".md" else place.with_name(place.name + ".md")


@dataclass(slots=True)
class Copy:
    """The copy of `docs/` that the site is made of.

    Args:
        folder: where it is written
        waiting: files and folders outside of `docs/` that pages link to, which get pages of their own
    """

    folder: Path
    waiting: dict[Path, Path] = field(default_factory=dict)

    def write(self) -> None:
        """Write all pages, pictures and files, and a page for each file that they link to."""
        for name in sorted(tracked()):
            if name.startswith("docs/"):
                source = ROOT / name
                self._put(source.relative_to(DOCS), source)
        done: set[Path] = set()
        while left := {target: page for target, page in self.waiting.items() if target not in done}:
            for target, page in left.items():
                done.add(target)
                self._put_outside(target, page)

    def _put(self, place: Path, source: Path) -> None:
        if source.suffix == ".md":
            self._write(place, self._rewritten(source, place))
            return
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())

    def _put_outside(self, source: Path, place: Path) -> None:
        hidden = "---\nsearch:\n  exclude: true\n---\n\n"
        if source.suffix == ".md":
            self._write(place, hidden + self._rewritten(source, place))
            return
        name = source.relative_to(ROOT).as_posix()
        if source.is_dir():
            inside = [path for path in map(Path, sorted(tracked())) if (ROOT / path).is_relative_to(source)]
            files = [path for path in inside if not any(part.startswith(".") for part in path.parts)]  # the site has no hidden pages
            lines = [f"* [`{path.relative_to(name)}`]({self._address(ROOT / path, place)})" for path in files]
            self._write(place, hidden + f"# `{name}/`\n\n" + "\n".join(lines) + "\n")
            return
        text = source.read_text(encoding="utf-8").rstrip("\n")
        self._write(place, hidden + f"# `{name}`\n\n````{LANGUAGES.get(source.suffix, 'text')}\n{text}\n````\n")

    def _write(self, place: Path, text: str) -> None:
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def _rewritten(self, source: Path, place: Path) -> str:
        """Return the text of a page with its links as they lead from its new place; code is copied."""
        text, end, parts = source.read_text(encoding="utf-8"), 0, []
        for fence in FENCE.finditer(text):
            parts += [self._linked(text[end : fence.start()], source, place), fence[0]]
            end = fence.end()
        return "".join([*parts, self._linked(text[end:], source, place)])

    def _linked(self, text: str, source: Path, place: Path) -> str:
        drawn = PICTURE.sub(lambda picture: self._picture((source.parent / picture[2]).resolve(), picture[1]), text)
        return LINK.sub(lambda link: f"{link[1]}{self._address((source.parent / link[2]).resolve(), place)}{link[3] or ''}{link[4]}", drawn)

    def _picture(self, picture: Path, alternative: str) -> str:
        """Return a drawing as part of the page, so that it has the page's colours."""
        drawing = " ".join(picture.read_text(encoding="utf-8").split("\n"))
        return f'<div class="picture" role="img" aria-label="{alternative}">{drawing}</div>'

    def _address(self, target: Path, place: Path) -> str:
        """Return the address of a file or folder from a page of the copy."""
        if target == DOCS:
            target = DOCS / "README.md"
        if target.is_relative_to(DOCS):
            inside = target.relative_to(DOCS) / "README.md" if target.is_dir() else target.relative_to(DOCS)
        elif target == ROOT / "README.md":
            inside = Path("README.md")
        else:
            inside = outside(target)
            self.waiting.setdefault(target / "README.md" if (target / "README.md").is_file() else target, inside)
        return os.path.relpath(inside, place.parent)
