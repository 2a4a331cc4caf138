"""A small HTTP server for tests: what it answers is a function of the request; what it was asked is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request: path, query, headers in lower case, body."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    """An answer of the service. `cut`: the connection closes before the body is complete."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass
class Service:
    """A running server: its address and the requests so far."""

    url: str
    asked: list[Asked]


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[Service]:
    """A server on a free port of this machine."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Asked(parts.path, dict(parse_qsl(parts.query)), {name.lower(): value for name, value in self.headers.items()}, body)
            asked.append(request)
            given = answer(request)
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(given.body) + (10 if given.cut else 0)))
            self.end_headers()
            self.wfile.write(given.body)
            self.close_connection = given.cut

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            """Tests are silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Service(f"http://127.0.0.1:{server.server_port}", asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
