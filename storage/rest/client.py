"""The pages of a REST service, requested one after the other until the last one or a limit.

Requests go only to the declared origin. Redirects and links to other origins are refused, and so are addresses that are not public. A page in the cache
is requested with its ETag or its time of change.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import orjson

from storage.files.errors import InputError
from storage.rest.addresses import AddressRefused, address_of
from storage.rest.config import Rest
from storage.rest.exchange import Answer, Broken, Connections, TooLong, Unreadable
from storage.values.json_text import pointed

MOST_REDIRECTS = 5
LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class CachedPage:
    """The facts of a page from an earlier pull: its validators, its number of records, and the URL of the next page."""

    etag: str | None = None
    modified: str | None = None
    records: int = 0
    next: str | None = None

    def headers(self) -> dict[str, str]:
        """The conditions under which the server need not send the page again."""
        given = {"If-None-Match": self.etag, "If-Modified-Since": None if self.etag else self.modified}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `lines` are its records as lines of JSON; None where the cached ones are still valid."""

    url: str
    lines: tuple[bytes, ...] | None
    facts: CachedPage


@dataclass(slots=True)
class Pull:
    """One pull of all pages of a service.

    Raises InputError for a status that is no success, a connection that stays broken, a limit of bytes or seconds, and a page that leads to another origin
    or to an earlier page.

    Args:
        settings: the `transport:` block
        name: how messages call the source
        records_of: returns the records of a body as lines of JSON
        known: the cached pages by URL
        pause: sleeps
        clock: returns seconds
        size: the bytes so far
        capped: the setting that left pages out; None where all pages were read
    """

    settings: Rest
    name: str
    records_of: Callable[[bytes], tuple[bytes, ...]]
    known: Mapping[str, CachedPage] = field(default_factory=dict)
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    size: int = 0
    capped: str | None = None
    _number: int = 0
    _asks_for: str = "page"
    _ends: float = 0.0
    _longest: int | None = None

    def pages(self) -> Iterator[Page]:
        """The pages in order. If a setting leaves pages out, `capped` is its name afterwards."""
        self._ends = self.clock() + self.settings.max_seconds
        asked: set[str] = set()
        total = 0
        url: str | None = str(self._first())
        with Connections(self.clock) as connections:
            while url is not None:
                self.capped = self._reached(total)
                if self.capped is not None:
                    return
                if url in asked:
                    raise self._wrong("the server leads back to a page that was read already")
                asked.add(url)
                self._number += 1
                page = self._page(connections, url)
                yield page
                total += page.facts.records
                url = page.facts.next
            self.capped = "max_records" if total > self._most() else None

    @contextmanager
    def objects(self) -> Iterator[Callable[[str, int], bytes | None]]:
        """Give what gets objects below the URL by their keys, within the limits of the pull; it may be called `max_pages` times.

        Of an object with more bytes than its second argument says it gives None, and reads no further.
        """
        self._ends, self._asks_for = self.clock() + self.settings.max_seconds, "object"
        base = self._parsed(f"{self.settings.url.rstrip('/')}/")
        with Connections(self.clock) as connections:

            def got(key: str, most: int) -> bytes | None:
                if self._number >= self.settings.max_pages:
                    raise InputError(self.name, f"more than max_pages ({self.settings.max_pages}) objects: raise it if that is right")
                self._number += 1
                self._longest = most
                try:
                    return self._answer(connections, str(self._inside(base, key)), {}).body
                except TooLong:
                    return None

            yield got

    def _reached(self, total: int) -> str | None:
        """The setting that forbids another page after `total` records; None where none does."""
        if self._number >= self.settings.max_pages:
            return "max_pages"
        return "max_records" if total >= self._most() else None

    def _most(self) -> float:
        return math.inf if self.settings.max_records is None else self.settings.max_records

    def _first(self) -> httpx.URL:
        paging = self.settings.pagination
        url = self._parsed(self.settings.url)
        if paging.strategy == "offset":
            return url.copy_merge_params({paging.offset_param: 0, paging.limit_param: paging.limit})
        return url

    def _page(self, connections: Connections, url: str) -> Page:
        known = self.known.get(url)
        answer = self._answer(connections, url, known.headers() if known else {})
        if answer.status == 304 and known is not None:
            return Page(url, None, known)
        lines = self._records(answer.body) if answer.body.strip() else ()
        following = self._following(url, answer, len(lines))
        return Page(url, lines, CachedPage(answer.validator("etag"), answer.validator("last-modified"), len(lines), following))

    def _records(self, body: bytes) -> tuple[bytes, ...]:
        """The records of the current page. Raises InputError."""
        try:
            return self.records_of(body)
        except InputError as wrong:
            placed = wrong.in_text(body)
            raise self._wrong(": ".join(filter(None, (placed.place, placed.message)))) from None

    def _following(self, url: str, answer: Answer, count: int) -> str | None:
        """The URL of the next page; None after the last one."""
        paging = self.settings.pagination
        if paging.strategy == "offset" and count >= (paging.limit or 0):
            at = self._parsed(url)
            return str(at.copy_set_param(paging.offset_param, int(at.params[paging.offset_param]) + (paging.limit or 0)))
        if paging.strategy == "cursor_token":
            token = self._token(answer.body)
            return None if token is None else str(self._url(lambda at: at.copy_set_param(paging.cursor_param or "", token), self.settings.url))
        if paging.strategy == "link_header" and (reference := answer.following) is not None:
            return str(self._inside(self._parsed(url), reference))
        return None

    def _token(self, body: bytes) -> str | None:
        """The cursor of the next page; None where the pointer leads to nothing, null, false or an empty text."""
        try:
            found = pointed(orjson.loads(body), self.settings.pagination.next_token_pointer or "")
        except orjson.JSONDecodeError:
            return None
        if found is None or found is False or found == "":
            return None
        if isinstance(found, bool) or not isinstance(found, (str, int, float)):
            kind = "true" if found is True else "a list" if isinstance(found, list) else "a map"
            raise self._wrong(f"next_token_pointer leads to {kind}, which is no cursor: a text or a number is expected")
        return str(found)

    def _answer(self, connections: Connections, url: str, conditions: Mapping[str, str]) -> Answer:
        """The answer to a GET, after retries of transient failures and redirects inside the origin."""
        at = self._parsed(url)
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._steadily(connections, at, conditions)
            if answer.status not in (301, 302, 303, 307, 308):
                break
            at = self._inside(at, answer.headers.get("location", ""))
        else:
            raise self._wrong(f"more than {MOST_REDIRECTS} redirects")
        if answer.status == 304 and not conditions:
            raise self._wrong("the server answers 304 Not Modified, and was asked for the page without a condition")
        if answer.status == 206:
            raise self._wrong("the server answers 206 with a part of the page, and was asked for all of it")
        if answer.status == 304 or 200 <= answer.status < 300:
            return answer
        raise self._wrong(f"the server answers {answer.status} {answer.reason}".rstrip())

    def _steadily(self, connections: Connections, url: httpx.URL, conditions: Mapping[str, str]) -> Answer:
        reason = ""
        for attempt in range(self.settings.retries + 1):
            if attempt:
                self.pause(min(0.25 * 2**attempt, LONGEST_PAUSE, max(0.0, self._ends - self.clock())))
            try:
                answer = self._once(connections, url, conditions)
            except (Broken, OSError) as error:
                reason = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}".rstrip(": ")
                continue
            if answer.status < 500:
                return answer
            reason = f"the server answers {answer.status} {answer.reason}".rstrip()
        self._time_left()
        raise self._wrong(f"{reason} ({self.settings.retries + 1} attempts)" if self.settings.retries else reason)

    def _once(self, connections: Connections, url: httpx.URL, conditions: Mapping[str, str]) -> Answer:
        seconds = min(self.settings.timeout_secs, self._time_left())
        left = self.settings.max_bytes - self.size
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            address = address_of(url.raw_host.decode(), port, allow_private=self.settings.allow_private)
            headers = {**self.settings.auth.headers(), **conditions}
            answer = connections.get(url, address, headers, deadline=self.clock() + seconds, most=left if self._longest is None else min(left, self._longest))
        except TooLong:
            if self._longest is not None and self._longest < left:
                raise
            raise self._wrong(f"more than {self.settings.max_bytes:,} bytes: raise max_bytes if that is right") from None
        except (AddressRefused, Unreadable) as refused:
            raise self._wrong(str(refused)) from None
        self.size += len(answer.body)
        return answer

    def _time_left(self) -> float:
        """The seconds until the pull has to end. Raises InputError when there are none."""
        left = self._ends - self.clock()
        if left <= 0:
            raise self._wrong(f"the pull takes longer than {self.settings.max_seconds:g} seconds: raise max_seconds if that is right")
        return left

    def _parsed(self, url: str) -> httpx.URL:
        """The URL of a text. Raises InputError where it is none."""
        return self._url(lambda at: at, url)

    def _url(self, made: Callable[[httpx.URL], httpx.URL], base: str | httpx.URL) -> httpx.URL:
        """Return the result of `made` for a URL; the server may have sent parts of it. Raises InputError if it is no URL or too long."""
        try:
            return made(httpx.URL(base))
        except (httpx.InvalidURL, ValueError) as wrong:
            raise self._wrong(f"what leads to the next page makes no URL: {wrong}" if self._number else f"no URL: {wrong}") from None

    def _inside(self, url: httpx.URL, reference: str) -> httpx.URL:
        """The URL of a reference from the server. Raises InputError for another origin, which must not get the credentials."""
        found = self._url(lambda at: at.join(reference), url)
        own = httpx.URL(self.settings.url)
        if (found.scheme, found.host, found.port) != (own.scheme, own.host, own.port) or found.userinfo:
            raise self._wrong(f"the server leads to another origin, {found.scheme}://{found.netloc.decode()}")
        return found

    def _wrong(self, text: str) -> InputError:
        return InputError(self.name, f"{self._asks_for} {self._number}: {text}")

