"""The cache of a REST source: a file of JSON lines for each page, an index with the pages' validators, and a file of all records.

A run reads the file of all records like any other file and finds the changes between two pulls by comparing. A server that supports ETags sends only
changed pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from storage import durable
from storage.rest.client import CachedPage, Page, Pull
from storage.rest.config import Rest

RECORDS, INDEX = "records.ndjson", "pages.json"


def fetch(settings: Rest, name: str, folder: Path, records_of: Callable[[bytes], tuple[bytes, ...]]) -> Pull:
    """Bring the cache in `folder` up to date. Raises OSError and InputError, after which the cached records are unchanged.

    Args:
        settings: the `transport:` block
        name: how messages call the source
        folder: the folder of the cache
        records_of: returns the records of a body as lines of JSON
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries = _index(folder)
    pull = Pull(settings, name, records_of, {url: CachedPage(**entry["kept"]) for url, entry in entries.items()})
    pages = list(_written(pull.pages(), folder, entries))
    _replace(folder / INDEX, orjson.dumps([{"url": url, "kept": asdict(facts)} for url, facts in pages]))
    _replace_if_changed(folder / RECORDS, b"".join(_lines(len(pages), folder, settings.max_records)))
    for number in range(len(pages) + 1, len(entries) + 1):
        _page_file(folder, number).unlink(missing_ok=True)
    return pull


def _index(folder: Path) -> dict[str, Any]:
    """The cached pages by URL with their numbers; none where the index cannot be read."""
    try:
        entries = orjson.loads((folder / INDEX).read_bytes())
        found = {entry["url"]: {**entry, "number": number} for number, entry in enumerate(entries, 1)}
        for entry in found.values():
            CachedPage(**entry["kept"])
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {url: entry for url, entry in found.items() if _page_file(folder, entry["number"]).is_file()}


def _page_file(folder: Path, number: int) -> Path:
    return folder / f"page-{number:06}.ndjson"


def _written(pages: Iterator[Page], folder: Path, entries: dict[str, Any]) -> Iterator[tuple[str, CachedPage]]:
    """Write each page to its file before the next one is requested. A pull that fails leaves no index, so the next pull requests everything."""
    texts = {url: _page_file(folder, entry["number"]).read_bytes() for url, entry in entries.items()}
    (folder / INDEX).unlink(missing_ok=True)
    for number, page in enumerate(pages, 1):
        text = texts[page.url] if page.lines is None else b"".join(line + b"\n" for line in page.lines)
        _page_file(folder, number).write_bytes(text)
        yield page.url, page.facts


def _lines(count: int, folder: Path, most: int | None) -> Iterator[bytes]:
    left = most
    for number in range(1, count + 1):
        lines = _page_file(folder, number).read_bytes().splitlines(keepends=True)
        yield b"".join(lines if left is None else lines[:left])
        left = None if left is None else max(0, left - len(lines))


def _replace_if_changed(path: Path, text: bytes) -> None:
    """Replace a file only where its content changes: a run skips a file whose time of change is the same."""
    if not path.is_file() or path.read_bytes() != text:
        _replace(path, text)


def _replace(path: Path, text: bytes) -> None:
    staged = durable.staging_path(path)
    staged.write_bytes(text)
    durable.publish(staged, path)
