"""A server of one socket: what it sends is bytes, well-formed or not, at once or a byte at a time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def sending(answer: Callable[[bytes], bytes], every: float = 0.0) -> Iterator[str]:
    """The URL of a server that answers each request with `answer` of its head, and closes. `every`: the seconds between two bytes; 0 sends all at once."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                text = answer(_head(connection))
                for piece in [text] if not every else [text[at : at + 1] for at in range(len(text))]:
                    connection.sendall(piece)
                    if every and ended.wait(every):
                        return
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
            except OSError:
                return

    def accept() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(10)
            threads.append(threading.Thread(target=serve, args=(connection,), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in [accepting, *threads]:
            thread.join(10)


def _head(connection: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found and (more := connection.recv(1 << 16)):
        found += more
    return found


def answer_of(body: bytes = b"", headers: str = "", status: str = "200 OK") -> bytes:
    """An answer whose connection ends behind it."""
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode("latin-1") + body
