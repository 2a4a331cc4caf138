"""A container of Azure that is not there: every request says so, also one that writes."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from storage.stores.client import Bucket, StoreFailed, bucket_of
from storage.stores.connections import StoreConnection

BODY = b'<?xml version="1.0"?><Error><Code>ContainerNotFound</Code><Message>The specified container does not exist.</Message></Error>'


class _NoContainer(BaseHTTPRequestHandler):
    """Answers every request as Azure does where the container is missing."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(404)
        self.send_header("x-ms-error-code", "ContainerNotFound")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    do_GET = do_PUT = _answer  # noqa: N815 - the server calls these names

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setenv("AZURE_KEY", base64.b64encode(b"0" * 32).decode())
    server = ThreadingHTTPServer(("127.0.0.1", 0), _NoContainer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = (("endpoint", f"http://127.0.0.1:{server.server_port}/acc"), ("account_name", "acc"), ("account_key", "env:AZURE_KEY"))
    yield bucket_of("az://gone/x", StoreConnection("lake", "az://gone", settings, allow_http=True))[0]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "ask",
    [lambda bucket: list(bucket.list("in/")), lambda bucket: bucket.small("key"), lambda bucket: bucket.put("key", b"1", absent=True), lambda bucket: bucket.put("key", b"1")],
    ids=["list", "small", "create", "put"],
)
def test_a_missing_container_is_named(bucket: Bucket, ask: Callable[[Bucket], object]) -> None:
    with pytest.raises(StoreFailed, match=r"az://gone.*E641: there is no such container"):
        ask(bucket)
