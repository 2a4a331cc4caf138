"""What was fetched of a service is kept: a page a file of JSON lines, an index of their validators, and all records one behind the other.

A run reads that last file like any other, so that what changed between two pulls is found by comparing, and a server that knows ETags sends nothing
that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage import durable
from storage.rest.client import CachedPages, Page, Pull

if TYPE_CHECKING:
    from storage.rest.config import Rest

RECORDS, INDEX = "records.ndjson", "pages.json"


def fetch(settings: Rest, name: str, folder: Path, records_of: Callable[[bytes], tuple[bytes, ...]]) -> Pull:
    """Bring what is kept in `folder` up to date. Raises InputError (the kept records stay as they were), OSError."""
    import orjson

    folder.mkdir(parents=True, exist_ok=True)
    entries = _index(folder)
    pull = Pull(settings, name, records_of, {url: CachedPages(**entry["kept"]) for url, entry in entries.items()})
    pages = list(_written(pull.pages(), folder, entries))
    _replace(folder / INDEX, orjson.dumps([{"url": url, "kept": asdict(kept)} for url, kept in pages]))
    _replace_if_changed(folder / RECORDS, b"".join(_lines(len(pages), folder, settings.max_records)))
    for number in range(len(pages) + 1, len(entries) + 1):
        _page_file(folder, number).unlink(missing_ok=True)
    return pull


def _index(folder: Path) -> dict[str, Any]:
    """The kept pages by URL with their numbers; nothing where the files are not what the index says."""
    import orjson

    try:
        entries = orjson.loads((folder / INDEX).read_bytes())
        found = {entry["url"]: {**entry, "number": number} for number, entry in enumerate(entries, 1)}
        for entry in found.values():
            CachedPages(**entry["kept"])
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {url: entry for url, entry in found.items() if _page_file(folder, entry["number"]).is_file()}


def _page_file(folder: Path, number: int) -> Path:
    return folder / f"page-{number:06}.ndjson"


def _written(pages: Iterator[Page], folder: Path, entries: dict[str, Any]) -> Iterator[tuple[str, CachedPages]]:
    """The pages, each in its place before the next one is asked for. A pull that breaks leaves no index, so that the next one asks for everything."""
    texts = {url: _page_file(folder, entry["number"]).read_bytes() for url, entry in entries.items()}
    (folder / INDEX).unlink(missing_ok=True)
    for number, page in enumerate(pages, 1):
        text = texts[page.url] if page.lines is None else b"".join(line + b"\n" for line in page.lines)
        _page_file(folder, number).write_bytes(text)
        yield page.url, page.kept


def _lines(count: int, folder: Path, most: int | None) -> Iterator[bytes]:
    left = most
    for number in range(1, count + 1):
        lines = _page_file(folder, number).read_bytes().splitlines(keepends=True)
        yield b"".join(lines if left is None else lines[:left])
        left = None if left is None else max(0, left - len(lines))


def _replace_if_changed(path: Path, text: bytes) -> None:
    """A file that would be the same keeps its time of change, by which a run sees that there is nothing to do."""
    if not path.is_file() or path.read_bytes() != text:
        _replace(path, text)


def _replace(path: Path, text: bytes) -> None:
    staged = durable.staging_path(path)
    staged.write_bytes(text)
    durable.publish(staged, path)
