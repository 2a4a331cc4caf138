"""A TCP proxy that can cut connections: after a number of bytes from the server, or right behind some bytes of the client."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """A proxy before a server.

    Attributes:
        cut_after: Bytes from the server after which the next connection is cut; None for no cut.
        times: How many connections are cut.
        swallow: Bytes of the client behind which the connection is cut.
        passes: Whether the server gets these bytes. The connection is then cut when it has answered.
    """

    host: str
    port: int
    cut_after: int | None = None
    times: int = 0
    swallow: bytes | None = None
    passes: bool = True
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def place(self) -> int:
        """The port that it listens at."""
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        """Take connections until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        server = socket.create_connection((self.host, self.port))
        last = threading.Event()
        threading.Thread(target=self._back, args=(server, client, last), daemon=True).start()
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self.swallow is not None and self.swallow in data and self.times > 0:
                    self.times -= 1
                    if not self.passes:
                        break
                    last.set()
                server.sendall(data)
        _end(client, server)

    def _back(self, server: socket.socket, client: socket.socket, last: threading.Event) -> None:
        """Bring the server's answers to the client. Nobody else reads them, or the cut would depend on who is first."""
        left = self.cut_after if self.times > 0 else None
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if last.is_set():
                    break
                if left is not None and len(data) > left:
                    self.times -= 1
                    break
                left = None if left is None else left - len(data)
                client.sendall(data)
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    """Cut both sides; the thread that reads the other one wakes."""
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    """A proxy for the body of a `with`."""
    proxy = Proxy(host, port)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.listener.close()
