"""Services that answer with bombs, trickles and rubbish: each run ends with exit code 4, soon and in little memory."""

import gzip
import json

import pytest

from tests.support.raw_server import answer_of, sending

PIPELINE = """\
pipeline: {{ name: service }}
nodes:
  - type: source
    name: s
    config:
      name: s
      type: json
      transport: {{ kind: rest, url: "{url}/rows", max_pages: 9, allow_http: true, allow_private: true, retries: 1, timeout_secs: 0.5, max_seconds: 2, max_bytes: 20000000, pagination: {pagination} }}
      options: {{ record_path: data }}
      schema: [{{ name: a, type: string }}]
  - type: output
    name: o
    input: s
    config: {{ name: o, type: csv, path: o.csv }}
"""
LINK, TOKEN = "{ strategy: link_header }", "{ strategy: cursor_token, cursor_param: c, next_token_pointer: /next }"


def body(**more) -> bytes:
    return json.dumps({"data": [{"a": "1"}], **more}).encode()


BLANKS = gzip.compress(gzip.compress(b" " * (1 << 27), 9), 9)
ANSWERS = {
    "twice gzip": (answer_of(BLANKS, "Content-Encoding: gzip, gzip\r\n"), LINK, "one content coding"),
    "gzip bomb": (answer_of(gzip.decompress(BLANKS), "Content-Encoding: gzip\r\n"), LINK, "more than 20,000,000 bytes"),
    "broken gzip": (answer_of(b"notgzip", "Content-Encoding: gzip\r\n"), LINK, "cannot be decompressed"),
    "zstd": (answer_of(b"notzstd", "Content-Encoding: zstd\r\n"), LINK, "not asked for"),
    "many headers": (answer_of(body(), "".join(f"X-{at}: {'y' * 1000}\r\n" for at in range(3000))), LINK, "ProtocolError"),
    "not modified": (answer_of(status="304 Not Modified"), LINK, "without a condition"),
    "bad link": (answer_of(body(), 'Link: <http://[::1>; rel="next"\r\n'), LINK, "makes no URL"),
    "long cursor": (answer_of(body(next="x" * 70_000)), TOKEN, "makes no URL"),
    "deep cursor": (answer_of(b'{"next": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), TOKEN, "nested deeper"),
}
SLOW = {"body": answer_of(b" " * 500), "head": b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 500}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_none(bed, name):
    answer, pagination, message = ANSWERS[name]
    with sending(lambda _: answer) as url:
        ended = bed.run({"pipeline.yaml": PIPELINE.format(url=url, pagination=pagination)}, limit_mb=250)
    assert (ended.code, message in ended.err) == (4, True), ended.err
    assert not (ended.folder / "o.csv").exists()


@pytest.mark.parametrize("part", SLOW)
def test_an_answer_of_a_byte_at_a_time(bed, part):
    with sending(lambda _: SLOW[part], every=0.1) as url:
        ended = bed.run({"pipeline.yaml": PIPELINE.format(url=url, pagination=LINK)}, elapsed=20)
    assert ended.code == 4, ended.err
    assert "in time" in ended.err or "longer than 2 seconds" in ended.err
