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
        swallow: Bytes of the client behind which the connection is cut; `answered` says whether the server gets them.
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
        back = threading.Thread(target=self._back, args=(server, client), daemon=True)
        back.start()
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self.swallow is not None and self.swallow in data and self.times > 0:
                    self.times -= 1
                    if self.passes:
                        client.shutdown(socket.SHUT_RD)
                        client.close()
                        server.sendall(data)
                        server.recv(1 << 16)  # the server has done it
                    break
                server.sendall(data)
        for end in (client, server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        left = self.cut_after if self.times > 0 else None
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if left is not None and len(data) > left:
                    self.times -= 1
                    for end in (client, server):
                        end.shutdown(socket.SHUT_RDWR)
                    return
                left = None if left is None else left - len(data)
                client.sendall(data)


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    """A proxy for the body of a `with`."""
    proxy = Proxy(host, port)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.listener.close()
