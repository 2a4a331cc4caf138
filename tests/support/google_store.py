"""A store in memory that answers as Google Cloud Storage does, by Google's description of its XML API, which the libraries use.

No emulator that is to be had knows this API with its conditions. The store has what the libraries ask for: objects with generations, ranges, the conditions
`If-Match` and `x-goog-if-generation-match`, listings by pages, uploads in parts, copies. Signatures are not checked. Run as a program it ends with its standard input.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import gmtime, strftime, time
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 100
"""Objects of one page of a listing."""


@dataclass(frozen=True)
class Stored:
    """An object in one generation."""

    body: bytes
    headers: dict[str, str]
    generation: int
    written: float

    @property
    def tag(self) -> str:
        """Its ETag, quoted."""
        return f'"{hashlib.md5(self.body, usedforsecurity=False).hexdigest()}"'


@dataclass
class Contents:
    """All objects of all buckets, and the parts of uploads."""

    objects: dict[str, dict[str, Stored]] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    written: int = 1000

    def put(self, bucket: str, key: str, body: bytes, headers: dict[str, str]) -> Stored:
        """Write an object in a new generation."""
        self.written += 1
        made = self.objects[bucket][key] = Stored(body, headers, self.written, time())
        return made


CONTENTS = Contents()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).removeprefix("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        with CONTENTS.lock:
            if not key and self.command == "PUT":
                CONTENTS.objects.setdefault(bucket, {})
                self._say(200)
            elif bucket not in CONTENTS.objects:
                self._refuse(404, "NoSuchBucket")
            elif not key:
                self._list(CONTENTS.objects[bucket], query)
            elif "uploads" in query or "uploadId" in query:
                self._upload(bucket, key, query, body)
            else:
                self._object(bucket, key, body)

    def _object(self, bucket: str, key: str, body: bytes) -> None:
        found = CONTENTS.objects[bucket].get(key)
        wanted = self.headers.get("x-goog-if-generation-match")
        if wanted is not None and int(wanted) != (0 if found is None else found.generation):
            self._refuse(412, "PreconditionFailed")
        elif self.command == "PUT":
            source = self.headers.get("x-goog-copy-source")
            copied = None if source is None else CONTENTS.objects[bucket][unquote(source).partition("/")[2]]
            self._written(CONTENTS.put(bucket, key, body, self._kept()) if copied is None else CONTENTS.put(bucket, key, copied.body, copied.headers))
        elif found is None:
            self._refuse(404, "NoSuchKey")
        elif self.command == "DELETE":
            del CONTENTS.objects[bucket][key]
            self._say(204)
        else:
            self._read(found)

    def _read(self, found: Stored) -> None:
        if self.headers.get("If-Match") not in (None, "*", found.tag):
            self._refuse(412, "PreconditionFailed")
            return
        headers = {"Last-Modified": formatdate(found.written, usegmt=True), "ETag": found.tag, "x-goog-generation": str(found.generation), **found.headers}
        asked = self.headers.get("Range")
        if asked is None:
            self._say(200, found.body, headers)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        size = len(found.body)
        start, end = (int(first), min(int(last or size - 1), size - 1)) if first else (max(0, size - int(last)), size - 1)
        self._say(206, found.body[start : end + 1], headers | {"Content-Range": f"bytes {start}-{end}/{size}"})

    def _list(self, objects: dict[str, Stored], query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = max(query.get("continuation-token", ""), query.get("start-after", ""))
        entries = dict[str, Stored | None]()
        for key in sorted(one for one in objects if one.startswith(prefix)):
            step = key[len(prefix) :].partition(delimiter)[1] if delimiter else ""
            name = prefix + key[len(prefix) :].partition(delimiter)[0] + step if step else key
            entries.setdefault(name, None if step else objects[key])
        names = [name for name in entries if name > after]
        said = []
        for name in names[:PAGE]:
            one = entries[name]
            if one is None:
                said.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
            else:
                date = strftime("%Y-%m-%dT%H:%M:%S.000Z", gmtime(one.written))
                said.append(
                    f"<Contents><Key>{escape(name)}</Key><Generation>{one.generation}</Generation><LastModified>{date}</LastModified>"
                    f"<ETag>{escape(one.tag)}</ETag><Size>{len(one.body)}</Size></Contents>"
                )
        more = f"<NextContinuationToken>{escape(names[PAGE - 1])}</NextContinuationToken>" if len(names) > PAGE else ""
        self._say(200, f"<?xml version='1.0'?><ListBucketResult><IsTruncated>{str(bool(more)).lower()}</IsTruncated>{''.join(said)}{more}</ListBucketResult>".encode())

    def _upload(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            CONTENTS.written += 1
            name = str(CONTENTS.written)
            CONTENTS.parts[name], CONTENTS.headers[name] = {}, self._kept()
            self._say(200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>".encode())
        elif query["uploadId"] not in CONTENTS.parts:
            self._refuse(404, "NoSuchUpload")
        elif self.command == "PUT":
            CONTENTS.parts[query["uploadId"]][int(query["partNumber"])] = body
            self._say(200, b"", {"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'})
        else:
            parts, headers = CONTENTS.parts.pop(query["uploadId"]), CONTENTS.headers.pop(query["uploadId"])
            if self.command == "DELETE":
                self._say(204)
            else:
                made = CONTENTS.put(bucket, key, b"".join(parts[number] for number in sorted(parts)), headers)
                self._written(made, f"<CompleteMultipartUploadResult><ETag>{escape(made.tag)}</ETag></CompleteMultipartUploadResult>".encode())

    def _kept(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower().startswith("x-goog-meta-") or name.lower() == "content-type"}

    def _written(self, made: Stored, body: bytes = b"") -> None:
        self._say(200, body, {"ETag": made.tag, "x-goog-generation": str(made.generation)})

    def _refuse(self, status: int, code: str) -> None:
        self._say(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # a client that waits no more
                self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _answer  # noqa: N815 - names of the standard library


if __name__ == "__main__":
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler) as listening:
        listening.serve_forever()
