"""The server behind `errata ui`: on the loopback interface alone, until it is interrupted."""

from __future__ import annotations

import contextvars
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from errata.core.failures import StorageFailed
from errata.core.options import EngineOptions
from errata.ui.guard import Access
from errata.ui.jobs import Jobs
from errata.ui.reader import Reader
from errata.ui.routes import Site, application

LOOPBACK = "127.0.0.1"


class _Server(uvicorn.Server):
    """Ends at a signal and returns; uvicorn itself would raise the signal once more."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the server runs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def listen(port: int) -> socket.socket:
    """Return a socket on the loopback interface; port 0 takes a free one. Raises StorageFailed where the port is taken."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
    except OSError as problem:
        found.close()
        raise StorageFailed(f"port {port} cannot be used: {problem.strerror}", help="name another with --port") from problem
    return found


def serve(reader: Reader, *, file: str, port: int, writes: bool, engine: EngineOptions, announce: Callable[[str], None]) -> None:
    """Serve the pages until a signal comes, then wait for a change that is being computed.

    Args:
        reader: The pipeline and its state.
        file: The pipeline file as the user named it.
        port: The port; 0 takes a free one.
        writes: Whether corrections and retries are taken.
        engine: The engine of such a change.
        announce: Is given the address once the port is open.
    """
    with listen(port) as open_socket:
        access = Access(open_socket.getsockname()[1])
        site = Site(reader, access, writes, engine, file, Jobs(reader.work))
        config = uvicorn.Config(application(site), log_level="error", access_log=False, lifespan="off", server_header=False, ws="none", timeout_graceful_shutdown=2)
        open_socket.listen(128)
        announce(access.address)
        threading.Thread(target=contextvars.copy_context().run, args=(site.warm_up,), daemon=True).start()
        _Server(config).run(sockets=[open_socket])
        site.jobs.close()
