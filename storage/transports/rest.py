"""Pages of a service, one GET after the other, until the last one or a limit (user guide, "REST sources").

Only the declared origin is asked: redirects and next links that lead elsewhere are refused, and so are addresses that are not public. A page that
was kept is asked for by its ETag or its time of change.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from storage.formats.contract import InputError
from storage.transports.addresses import AddressRefused, address_of

if TYPE_CHECKING:
    import httpx

    from storage.transports.rest_settings import Rest

MOST_REDIRECTS = 5
LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of a page from an earlier pull: its validators and the URL of the page behind it."""

    etag: str | None = None
    modified: str | None = None
    records: int = 0
    next: str | None = None

    def headers(self) -> dict[str, str]:
        """The conditions under which the server need not send it again."""
        given = {"If-None-Match": self.etag, "If-Modified-Since": None if self.etag else self.modified}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `lines`: its records as lines of JSON; None where the kept ones are still right."""

    url: str
    lines: tuple[bytes, ...] | None
    kept: Kept


@dataclass(slots=True)
class Pull:
    """One reading of a service. `name` is how messages call the source; `records_of` takes a body apart.

    Raises InputError: a status that is no success, a connection that stays broken, a limit of bytes or seconds, a page that leads elsewhere or back.
    """

    settings: Rest
    name: str
    records_of: Callable[[bytes], tuple[bytes, ...]]
    known: Mapping[str, Kept] = field(default_factory=dict)
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    size: int = 0
    capped: str | None = None
    _number: int = 0
    _ends: float = 0.0

    def pages(self) -> Iterator[Page]:
        """The pages in order; where the server had more, `capped` tells afterwards which setting left that out."""
        import httpx

        self._ends = self.clock() + self.settings.max_seconds
        asked: set[str] = set()
        total = 0
        url: str | None = str(self._first())
        with httpx.Client(trust_env=False, follow_redirects=False, timeout=self.settings.timeout_secs) as client:
            while url is not None:
                self.capped = self._reached(total)
                if self.capped is not None:
                    return
                if url in asked:
                    raise self._wrong("the server leads back to a page that was read already")
                asked.add(url)
                self._number += 1
                page = self._page(client, url)
                yield page
                total += page.kept.records
                url = page.kept.next
            self.capped = "max_records" if total > self._most() else None

    def _reached(self, total: int) -> str | None:
        """The setting by which no more pages are read after this many records."""
        if self._number >= self.settings.max_pages:
            return "max_pages"
        return "max_records" if total >= self._most() else None

    def _most(self) -> float:
        return math.inf if self.settings.max_records is None else self.settings.max_records

    def _first(self) -> httpx.URL:
        import httpx

        paging = self.settings.pagination
        url = httpx.URL(self.settings.url)
        if paging.strategy == "offset":
            return url.copy_merge_params({paging.offset_param: 0, paging.limit_param: paging.limit})
        return url

    def _page(self, client: httpx.Client, url: str) -> Page:
        known = self.known.get(url)
        answer = self._answer(client, url, known.headers() if known else {})
        if answer.status == 304 and known is not None:
            return Page(url, None, known)
        lines = self._records(answer.body) if answer.body.strip() else ()
        following = self._following(url, answer, len(lines))
        return Page(url, lines, Kept(answer.headers.get("etag"), answer.headers.get("last-modified"), len(lines), following))

    def _records(self, body: bytes) -> tuple[bytes, ...]:
        """The records of the page that was read last. Raises InputError."""
        try:
            return self.records_of(body)
        except InputError as wrong:
            told = wrong.in_text(body)
            raise self._wrong(": ".join(filter(None, (told.place, told.message)))) from None

    def _following(self, url: str, answer: _Answer, count: int) -> str | None:
        """The URL of the next page; None behind the last one."""
        import httpx

        paging = self.settings.pagination
        if paging.strategy == "offset" and count >= (paging.limit or 0):
            at = int(httpx.URL(url).params[paging.offset_param])
            return str(httpx.URL(url).copy_set_param(paging.offset_param, at + (paging.limit or 0)))
        if paging.strategy == "cursor_token":
            token = _pointed(answer.body, paging.next_token_pointer or "")
            return None if token in (None, "") else str(httpx.URL(self.settings.url).copy_set_param(paging.cursor_param or "", token))
        if paging.strategy == "link_header" and answer.link is not None:
            return str(self._inside(httpx.URL(url).join(answer.link)))
        return None

    # -- one request

    def _answer(self, client: httpx.Client, url: str, conditions: Mapping[str, str]) -> _Answer:
        """The answer to a GET, transient failures retried, redirects inside the origin followed."""
        import httpx

        at = httpx.URL(url)
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._steadily(client, at, conditions)
            if answer.status not in (301, 302, 303, 307, 308):
                break
            at = self._inside(at.join(answer.headers.get("location", "")))
        else:
            raise self._wrong(f"more than {MOST_REDIRECTS} redirects")
        if answer.status == 304 or 200 <= answer.status < 300:
            return answer
        raise self._wrong(f"the server answers {answer.status} {answer.reason}".rstrip())

    def _steadily(self, client: httpx.Client, url: httpx.URL, conditions: Mapping[str, str]) -> _Answer:
        import httpx

        told = ""
        for attempt in range(self.settings.retries + 1):
            if attempt:
                self.pause(min(0.25 * 2**attempt, LONGEST_PAUSE))
            self._check_time()
            try:
                answer = self._once(client, url, conditions)
            except (httpx.TransportError, OSError) as error:
                told = f"{type(error).__name__}: {error}".rstrip(": ")
                continue
            if answer.status < 500:
                return answer
            told = f"the server answers {answer.status} {answer.reason}".rstrip()
        raise self._wrong(f"{told} ({self.settings.retries + 1} attempts)" if self.settings.retries else told)

    def _once(self, client: httpx.Client, url: httpx.URL, conditions: Mapping[str, str]) -> _Answer:
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            address = address_of(url.host, port, allow_private=self.settings.allow_private)
        except AddressRefused as refused:
            raise self._wrong(str(refused)) from None
        headers = {"Host": url.netloc.decode(), "Accept": "*/*", **self.settings.auth.headers(), **conditions}
        began = self.clock()
        with client.stream("GET", url.copy_with(host=address), headers=headers, extensions={"sni_hostname": url.host}) as response:
            body = self._body(response, began) if response.status_code < 300 else b""
            link = response.links.get("next", {}).get("url")
            return _Answer(response.status_code, response.reason_phrase, dict(response.headers), link, body)

    def _body(self, response: httpx.Response, began: float) -> bytes:
        import httpx

        found = bytearray()
        for chunk in response.iter_bytes(1 << 16):
            found += chunk
            self.size += len(chunk)
            if self.size > self.settings.max_bytes:
                raise self._wrong(f"more than {self.settings.max_bytes:,} bytes: raise max_bytes if that is right")
            if self.clock() - began > self.settings.timeout_secs:
                raise httpx.ReadTimeout(f"the page is not complete after {self.settings.timeout_secs:g} seconds")
            self._check_time()
        return bytes(found)

    def _check_time(self) -> None:
        if self.clock() > self._ends:
            raise self._wrong(f"the pull takes longer than {self.settings.max_seconds:g} seconds: raise max_seconds if that is right")

    def _inside(self, url: httpx.URL) -> httpx.URL:
        """A URL that the server gave, if it is of the declared origin. Credentials never go anywhere else."""
        import httpx

        own = httpx.URL(self.settings.url)
        if (url.scheme, url.host, url.port) != (own.scheme, own.host, own.port) or url.userinfo:
            raise self._wrong(f"the server leads to another origin, {url.scheme}://{url.netloc.decode()}")
        return url

    def _wrong(self, text: str) -> InputError:
        return InputError(self.name, f"page {self._number}: {text}")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    reason: str
    headers: Mapping[str, str]
    link: str | None
    body: bytes


def _pointed(body: bytes, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901); null where there is none."""
    import orjson

    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value
