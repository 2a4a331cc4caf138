"""An S3 server that a process starts for itself, and a proxy before it that counts requests and answers with faults."""

from __future__ import annotations

import atexit
import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from socket import create_connection, socket
from typing import Any, Self, cast

import obstore
from obstore.store import ObjectStore, S3Store

KEY, SECRET = "AKIAERRATATEST", "s3cret/with+signs%and=more"
NUMBERS = count(1)
"""Numbers for the names of buckets."""
DEADLINE = 30.0
"""Seconds in which the server has to answer."""


SERVER = """
import os, sys, threading
from moto.s3.responses import S3Response
from moto.server import main
put, one = S3Response.put_object, threading.Lock()
def put_object(*asked):
    with one:
        return put(*asked)
S3Response.put_object = put_object
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
"""
"""The server, which ends with the process that started it, however that ends. It takes one object at a time: like S3, and unlike moto by itself, it tests a condition and stores the object in one step."""


@cache
def server() -> int:
    """The port of the server of this process, started where it is first asked for."""
    return started("S3", lambda port: [sys.executable, "-W", "ignore", "-c", SERVER, str(port)])


def started(name: str, command: Callable[[int], list[str]]) -> int:
    """The port of a server by the command that starts it at a port. It is ended when this process ends, and has to end with its standard input."""
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(command(port), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(process.wait)
    atexit.register(process.kill)
    end = time.monotonic() + DEADLINE
    while True:
        with suppress(OSError), create_connection(("127.0.0.1", port), 1):
            return port
        assert process.poll() is None, f"the {name} server ended"
        assert time.monotonic() < end, f"the {name} server gives no answer"
        time.sleep(0.02)


Answer = tuple[int, str, dict[str, str]]
"""A status, the code in the body, further headers."""


@dataclass(frozen=True)
class Request:
    """A request that came to the proxy."""

    method: str
    path: str
    headers: dict[str, str]

    @property
    def range(self) -> str:
        """The bytes that it asks for."""
        return self.headers.get("range", "")


@dataclass
class Faults:
    """The treatment of requests by a proxy.

    Attributes:
        answer: The answer in place of the server's, for a request; None to pass it on.
        cut: Of how many bytes of an answer's body the client gets no more, for a request.
        before: Called ahead of each request.
        without: Headers of requests that are taken away.
    """

    answer: Callable[[Request], Answer | None] = lambda _: None
    cut: Callable[[Request], int | None] = lambda _: None
    before: Callable[[Request], object] = lambda _: None
    without: tuple[str, ...] = ()
    seen: list[Request] = field(default_factory=list)

    def times(self, number: int, status: int, code: str = "Fault", *, method: str = "", **headers: str) -> None:
        """Answer the next `number` requests, of a method where one is given, with a status."""
        left = [number]

        def answer(request: Request) -> Answer | None:
            if left[0] and request.method.startswith(method):
                left[0] -= 1
                return status, code, headers
            return None

        self.answer = answer

    def count(self, method: str, part: str = "") -> int:
        """How many requests of a method came whose path has a part."""
        return sum(one.method == method and part in one.path for one in self.seen)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: Faults
    port: int

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
        self.faults.seen.append(request)
        self.faults.before(request)
        given = self.faults.answer(request)
        if given is not None:
            self._say(given[0], f"<Error><Code>{given[1]}</Code></Error>".encode(), given[2])
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in (*self.faults.without, "connection")}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)) as server:
            server.request(self.command, self.path, body, headers)
            answer = server.getresponse()
            content = answer.read()
            cut = self.faults.cut(request)
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server")}
            self._say(answer.status, content, kept, cut, length=answer.getheader("Content-Length") if self.command == "HEAD" else None)

    def _say(self, status: int, body: bytes, headers: dict[str, str], cut: int | None = None, length: str | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # a client that waits no more
                self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815 - names of the standard library


@contextmanager
def proxied() -> Iterator[tuple[int, Faults]]:
    """The port of a proxy before the server, and its faults."""
    faults = Faults()
    handler = type("Handler", (_Handler,), {"faults": faults, "port": server()})
    with ThreadingHTTPServer(("127.0.0.1", 0), cast("Any", handler)) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield int(proxy.server_address[1]), faults
        finally:
            proxy.shutdown()


@dataclass(frozen=True)
class TestBucket:
    """A bucket of a test, with what a test does beside Errata."""

    __test__ = False
    name: str
    port: int

    @classmethod
    def new(cls, port: int | None = None) -> Self:
        """An empty bucket. `port`: that of a proxy, at which Errata is to look."""
        made = cls(f"bucket-{next(NUMBERS)}", port or server())
        with closing(http.client.HTTPConnection("127.0.0.1", server(), timeout=DEADLINE)) as connection:
            connection.request("PUT", f"/{made.name}")
            assert connection.getresponse().status == 200
        return made

    @property
    def uri(self) -> str:
        """Its URI."""
        return f"s3://{self.name}"

    @property
    def endpoint(self) -> str:
        """Where Errata reaches it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def toml(self) -> str:
        """The `errata.toml` with a connection that covers it."""
        return (
            f'[connections.lake]\nurl = "{self.uri}"\nendpoint = "{self.endpoint}"\nallow_http = true\nregion = "us-east-1"\n'
            'access_key_id = "env:LAKE_KEY"\nsecret_access_key = "env:LAKE_SECRET"\n'
        )

    @property
    def store(self) -> ObjectStore:
        """The bucket itself, whatever proxy is before it."""
        return S3Store.from_url(
            self.uri, endpoint=f"http://127.0.0.1:{server()}", region="us-east-1", access_key_id=KEY, secret_access_key=SECRET, client_options={"allow_http": True}
        )

    def put(self, key: str, text: str | bytes) -> None:
        """Write an object."""
        obstore.put(self.store, key, text.encode() if isinstance(text, str) else text, use_multipart=False)

    def put_in_parts(self, key: str, text: str) -> None:
        """Write an object in parts, which gives it another kind of ETag."""
        obstore.put(self.store, key, text.encode(), use_multipart=True, chunk_size=5 << 20)

    def get(self, key: str) -> bytes:
        """The content of an object."""
        return bytes(obstore.get(self.store, key).bytes())

    def listed(self, prefix: str | None = None) -> list[str]:
        """The keys of all objects, in order."""
        return sorted(one["path"] for page in obstore.list(self.store, prefix=prefix) for one in page)

    def delete(self, *keys: str) -> None:
        """Remove objects."""
        for key in keys:
            obstore.delete(self.store, key)

    def uploads(self) -> bytes:
        """The store's list of uploads that were begun and not completed."""
        with closing(http.client.HTTPConnection("127.0.0.1", server(), timeout=DEADLINE)) as connection:
            connection.request("GET", f"/{self.name}?uploads")
            return connection.getresponse().read()


