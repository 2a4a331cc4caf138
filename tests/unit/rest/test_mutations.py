"""Damaged answers of services give pages or an input error. None crashes, hangs or takes much memory."""

from __future__ import annotations

import gzip
import json
import random
import resource
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import pytest

from storage import formats
from storage.formats import Column, InputError, ReadPlan
from storage.rest import exchange
from storage.rest.client import CachedPage, Page, Pull
from tests.support.raw_server import answer_of
from tests.unit.formats.test_mutations import mutated
from tests.unit.rest.test_rest import TOKEN, rest

BODY = json.dumps({"items": [{"a": 1, "b": "x"}, {"a": None}], "meta": {"next": "7"}}).encode()
CHUNKED = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
ANSWERS = [
    answer_of(BODY, 'Link: </rows?at=2>; rel="next", </rows>; rel="first"\r\nETag: "a"\r\n'),
    answer_of(gzip.compress(BODY, mtime=0), "Content-Encoding: gzip\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n"),
    answer_of(gzip.compress(b" " * 3_000_000, mtime=0), "Content-Encoding: gzip\r\n"),
    CHUNKED % (len(gzip.compress(BODY, mtime=0)), gzip.compress(BODY, mtime=0)),
    answer_of(b"", "Location: /rows?n=1\r\n", "302 Found"),
    answer_of(b"", 'ETag: "a"\r\n', "304 Not Modified"),
    answer_of(b"oops", "", "503 Unavailable"),
    b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + answer_of(BODY),
]
PAGING: list[dict[str, Any]] = [{"strategy": "link_header"}, TOKEN, {"strategy": "offset", "limit": 2}, {"strategy": "none"}]
PLACES = [b"http://[::1", b"http://127.0.0.1:999999/", b"//other/rows", b"/rows?at=3", b"gzip, gzip", b"zstd", b"identity", b"9" * 30, b"-1", b"\x00", b"\xff\xfe", b"x" * 3000, b"{}", b"[[[[", b'"']
WORDS = [b"</rows?at=2>", b"/rows?n=1", b"gzip", b'"7"', b"chunked", b"close", b"200", b"302", b"304", b'"a"', b"Content-Length: "]


def answers(rnd: random.Random) -> Iterable[list[bytes]]:
    """The bytes that the connections of a pull receive, in pieces: answers of all kinds, some with a word replaced, most damaged."""
    while True:
        data = rnd.choice(ANSWERS)
        if rnd.random() < 0.4:
            data = data.replace(rnd.choice(WORDS), rnd.choice(PLACES))
        data = mutated(data, rnd) if rnd.random() < 0.7 else data
        cuts = sorted(rnd.randrange(len(data) + 1) for _ in range(rnd.randrange(4)))
        yield [piece for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if (piece := data[start:end])]


class Bringing(httpcore.NetworkBackend):
    """A network whose connections receive one answer each."""

    def __init__(self, brought: Iterable[list[bytes]]) -> None:
        self._brought = iter(brought)

    def connect_tcp(self, *_: object, **__: object) -> httpcore.NetworkStream:
        return httpcore.MockStream(next(self._brought))


def outcome(pull: Pull) -> tuple[str, list[Page] | None]:
    """The pages of a pull, or its error."""
    try:
        return "", list(pull.pages())
    except InputError as wrong:
        return str(wrong), None


def survives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rnd = random.Random(seed)
    monkeypatch.setattr(exchange.httpcore, "SyncBackend", lambda: Bringing(answers(rnd)))
    settings = rest("http://127.0.0.1/rows", max_pages=rnd.randint(1, 4), retries=rnd.randint(0, 2), max_bytes=rnd.choice([50, 500, 2_000_000, 1 << 28]), pagination=rnd.choice(PAGING))
    reader = formats.reader("json", {"record_path": "items"}, ReadPlan((Column("a", "int"),)))
    known = {settings.url: CachedPage(etag='"a"', records=1)} if rnd.random() < 0.3 else {}
    pull = Pull(settings, "<source:s>", lambda body: tuple(reader.lines(body, "<source:s>")), known, pause=lambda _: None)
    began = time.process_time()
    message, pages = outcome(pull)
    assert message.startswith("<source:s>: page ") if pages is None else 1 <= len(pages) <= settings.max_pages
    assert all(line and b"\n" not in line for page in pages or () for line in page.lines or ())
    assert pull.size <= settings.max_bytes
    assert time.process_time() - began < 5


@pytest.mark.parametrize("seeds", [range(700), pytest.param(range(1_000_000, 1_005_000), marks=pytest.mark.deep)])
def test_damaged_answers(seeds, monkeypatch):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        survives(seed, monkeypatch)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20
