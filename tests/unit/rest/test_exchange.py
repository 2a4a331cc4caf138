"""Answers that are too large, too slow, strangely encoded or invalid: each ends a pull with an input error in time."""

from __future__ import annotations

import gzip
import itertools
import json
import time
import zlib

import httpcore
import pytest

from storage.formats import InputError
from storage.rest import exchange
from storage.rest.client import CachedPage, Pull
from tests.support.raw_server import answer_of, sending
from tests.unit.rest.test_rest import TOKEN, pulled, records, rest

BODY = json.dumps({"items": [1, 2]}).encode()
LINK = {"strategy": "link_header"}


def ends_with(message: str, answer: bytes, **keys):
    with sending(lambda _: answer) as url, pytest.raises(InputError, match=message):
        pulled(url, **{"retries": 0, **keys})


# Size
def blanks(size: int) -> bytes:
    """Blanks that gzip compresses to a thousandth."""
    return gzip.compress(b" " * size, 9, mtime=0)


def test_a_body_is_decompressed_in_pieces_up_to_its_limit(monkeypatch):
    largest: list[int] = []
    plain = exchange._unzipped

    def watched(pieces):
        for piece in plain(pieces):
            largest.append(len(piece))
            yield piece

    monkeypatch.setattr(exchange, "_unzipped", watched)
    ends_with("more than 3,000,000 bytes: raise max_bytes", answer_of(blanks(1 << 25), "Content-Encoding: gzip\r\n"), max_bytes=3_000_000)
    assert max(largest) <= exchange.PIECE
    assert sum(largest) <= 3_000_000 + exchange.PIECE


@pytest.mark.parametrize("members", [1, 3])
def test_a_body_of_gzip_is_read_whole(members):
    cuts = [len(BODY) * at // members for at in range(members + 1)]
    body = b"".join(gzip.compress(BODY[start:end]) for start, end in itertools.pairwise(cuts))
    with sending(lambda _: answer_of(body, "Content-Encoding: GZip\r\n")) as url:
        assert pulled(url) == [1, 2]


def test_what_decompresses_to_nothing_is_counted_as_it_comes():
    nothing = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = nothing.compress(b"") + b"".join(nothing.flush(zlib.Z_FULL_FLUSH) + nothing.compress(b"") for _ in range(2000))
    ends_with("more than 5,000 bytes", answer_of(body + b"\0" * 5000, "Content-Encoding: gzip\r\n"), max_bytes=5_000)


@pytest.mark.parametrize(
    ("coding", "body", "message"),
    [
        ("gzip, gzip", gzip.compress(gzip.compress(BODY, mtime=0), mtime=0), r"encoded 2 times \(Content-Encoding: gzip, gzip\): one content coding is read"),
        ("gzip\r\nContent-Encoding: gzip", gzip.compress(gzip.compress(BODY, mtime=0), mtime=0), "encoded 2 times"),
        ("zstd", BODY, "Content-Encoding 'zstd', which was not asked for"),
        ("br", BODY, "Content-Encoding 'br', which was not asked for"),
        ("wat", BODY, "Content-Encoding 'wat'"),
        ("gzip", b"notgzip", "cannot be decompressed"),
        ("gzip", gzip.compress(BODY, mtime=0) + b"rubbish", "cannot be decompressed"),
        ("gzip", gzip.compress(BODY, mtime=0)[:-9], "cut off"),
        ("gzip", b"", "cut off"),
    ],
)
def test_a_body_in_a_coding_that_is_not_gzip(coding, body, message):
    ends_with(message, answer_of(body, f"Content-Encoding: {coding}\r\n"))


def test_what_is_asked_for_is_gzip():
    heads: list[bytes] = []
    with sending(lambda head: heads.append(head) or answer_of(BODY)) as url:
        pulled(url)
    assert b"\r\naccept-encoding: gzip\r\n" in heads[0].lower()


# Time
SLOW = {
    "in the body": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + b" " * 90,
    "in the head": b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 90,
    "in the status": b"HTTP/1.1 200 " + b"a" * 90,
    "between answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 90,
}


@pytest.mark.parametrize("where", SLOW)
def test_an_answer_of_a_byte_at_a_time_ends_with_timeout_secs(where):
    began = time.monotonic()
    with sending(lambda _: SLOW[where], every=0.02) as url, pytest.raises(InputError, match="ReadTimeout: the answer is not complete in time"):
        pulled(url, retries=0, timeout_secs=0.2)
    assert time.monotonic() - began < 5


def test_a_pull_ends_with_max_seconds_while_an_answer_comes():
    began = time.monotonic()
    with sending(lambda _: SLOW["in the body"], every=0.02) as url, pytest.raises(InputError, match=r"the pull takes longer than 0\.2 seconds"):
        pulled(url, timeout_secs=30, max_seconds=0.2)
    assert time.monotonic() - began < 5


def test_a_pause_before_another_attempt_ends_with_max_seconds():
    pauses: list[float] = []
    with sending(lambda _: answer_of(status="500 oops")) as url, pytest.raises(InputError, match="oops"):
        Pull(rest(url, retries=9, max_seconds=7), "<source:s>", records, pause=pauses.append).pages().__next__()
    assert pauses[3] == 4
    assert all(6 < pause <= 7 for pause in pauses[4:])


def test_an_answer_that_began_keeps_to_a_least_pace():
    now = [0.0]
    pace = exchange._Pace(lambda: now[0])
    pace.begin(1000.0)
    now[0] = 500.0
    assert pace.left() == 500.0  # a server may wait before it answers
    pace.brought(1)
    assert pace.left() == exchange.INTERVAL
    pace.brought(exchange.LEAST_BYTES - 1)
    now[0] += exchange.INTERVAL
    assert pace.left() == exchange.INTERVAL
    pace.brought(exchange.LEAST_BYTES - 1)
    now[0] += exchange.INTERVAL
    with pytest.raises(httpcore.ReadTimeout, match="the answer brings fewer than 1,000 bytes in 30 seconds"):
        pace.left()


def test_a_slow_answer_ends_by_its_pace(monkeypatch):
    monkeypatch.setattr(exchange, "INTERVAL", 0.1)
    with sending(lambda _: SLOW["in the body"], every=0.02) as url, pytest.raises(InputError, match=r"fewer than 1,000 bytes in 0\.1 seconds"):
        pulled(url, retries=0, timeout_secs=60)


# Invalid answers
def test_304_is_an_answer_to_a_condition_only():
    with sending(lambda _: answer_of(status="304 Not Modified")) as url:
        with pytest.raises(InputError, match="page 1: the server answers 304 Not Modified, and was asked for the page without a condition"):
            pulled(url)
        for kept, right in [(CachedPage(), False), (CachedPage(etag='"a"'), True), (CachedPage(modified="Mon, 01 Jan 2024 00:00:00 GMT"), True)]:
            pull = Pull(rest(url), "<source:s>", records, {url: kept})
            if right:
                assert [page.lines for page in pull.pages()] == [None]
            else:
                with pytest.raises(InputError, match="304"):
                    list(pull.pages())


def test_a_part_of_a_page_is_no_page():
    ends_with("answers 206 with a part of the page", answer_of(BODY, "Content-Range: bytes 0-9/100\r\n", "206 Partial Content"))


@pytest.mark.parametrize("link", ["http://[::1", "http://[::1]:x/", "http://127.0.0.1:999999/", "/\x01", "/" + "x" * 70_000, "http://a\xff.b/", "http://" + "a" * 80 + ".b/"])
@pytest.mark.parametrize("how", ["link", "redirect"])
def test_a_reference_that_is_no_url_of_this_origin(link, how):
    header = f'Link: <{link}>; rel="next"\r\n' if how == "link" else f"Location: {link}\r\n"
    ends_with(r"page 1: ", answer_of(BODY, header, "200 OK" if how == "link" else "302 Found"), pagination=LINK)


@pytest.mark.parametrize("link", ["garbage;;;=", "<>; rel=", "", ",,,", '<x>; rel="prev"'])
def test_a_link_that_leads_nowhere_is_the_end(link):
    body = answer_of(BODY, f"Link: {link}\r\n")
    with sending(lambda _: body) as url:
        assert pulled(url, pagination=LINK) == [1, 2]


def test_a_link_to_the_page_itself_leads_back():
    ends_with("leads back", answer_of(BODY, "Link: garbage;;;=,<>;rel=next\r\n"), pagination=LINK)


def with_token(token: object) -> bytes:
    return answer_of(json.dumps({"items": [1], "meta": {"next": token}}).encode())


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("x" * 70_000, "makes no URL: URL component 'query' too long"),
        ({"x": [1]}, "leads to a map, which is no cursor"),
        ([1], "leads to a list, which is no cursor"),
        (True, "leads to true, which is no cursor"),
    ],
)
def test_a_cursor_that_is_none(token, message):
    ends_with(message, with_token(token), pagination=TOKEN)


@pytest.mark.parametrize(("token", "sent"), [("\0\r\nX: y\U0001f600", b"page=%00%0D%0AX%3A+y%F0%9F%98%80"), (0, b"page=0"), (1.5e300, b"page=1.5e%2B300")])
def test_a_cursor_goes_along_as_text(token, sent):
    heads: list[bytes] = []

    def answer(head: bytes) -> bytes:
        heads.append(head)
        return with_token(token if len(heads) == 1 else None)

    with sending(answer) as url:
        assert pulled(url, pagination=TOKEN) == [1, 1]
    assert sent in heads[1].splitlines()[0].replace(b"%20", b"+")


@pytest.mark.parametrize("token", [None, False, ""])
def test_no_cursor_is_the_end(token):
    with sending(lambda _: with_token(token)) as url:
        assert pulled(url, pagination=TOKEN) == [1]


@pytest.mark.parametrize("value", ["s3cret\n", "s3cret€", " s3cret", "s3\0cret"])
def test_an_invalid_credential_is_not_shown(value):
    with sending(lambda _: answer_of(BODY)) as url, pytest.raises(InputError, match="the value for the header X-Key begins or ends with a blank") as caught:
        pulled(url, auth={"scheme": "header", "name": "X-Key", "value": value})
    assert "s3" not in str(caught.value)


def test_a_validator_is_sent_back_as_it_came_unless_it_is_far_too_long():
    for tag, kept in [('"\xff\xfe"', '"\xff\xfe"'), ('"' + "e" * 60_000 + '"', None)]:
        with sending(lambda _, tag=tag: answer_of(BODY, f"ETag: {tag}\r\n")) as url:
            (page,) = Pull(rest(url), "<source:s>", records).pages()
        assert page.facts.etag == kept
