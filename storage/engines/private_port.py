"""A listening port to which only this process can connect. Sail's server asks for no token, so other users of the machine must be kept out.

Linux can filter what reaches a socket (`SO_ATTACH_FILTER`, open to every user). The listening socket drops segments with data, and every connection
inherits that filter. So anybody may connect, but the server hears nobody. This process then finds the server's end of its own connection among its open
files, and removes that filter. From then on the listening socket drops everything, so nobody can connect.

A tenth of a millisecond lies between the server's `listen` and the first filter. The server does not accept connections yet. A connection made in this
time is found, because it waits to be accepted or has no filter. Then the engine does not start.
"""

import os
import socket
import struct
import threading
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, run
from typing import TYPE_CHECKING

from storage.durable import undoing
from storage.errors import EngineUnavailable

if TYPE_CHECKING:
    import grpc

__all__ = ["PrivatePort", "files_to_come", "filters_work", "others_logged_on"]

Address = tuple[str, int]
Program = tuple[tuple[int, int, int, int], ...]

ATTACH, DETACH = 26, 27  # SO_ATTACH_FILTER, SO_DETACH_FILTER; the first is also SO_GET_FILTER
INSTRUCTION = struct.Struct("HBBI")
NO_DATA: Program = (
    (0x80, 0, 0, 0),  # A = length of the segment
    (0x02, 0, 0, 0),  # M[0] = A
    (0x30, 0, 0, 12),  # A = byte 12, whose upper half is the length of the TCP header in words
    (0x54, 0, 0, 0xF0),  # A &= 0xf0
    (0x74, 0, 0, 2),  # A >>= 2: in bytes
    (0x07, 0, 0, 0),  # X = A
    (0x60, 0, 0, 0),  # A = M[0]
    (0x1C, 0, 0, 0),  # A -= X
    (0x15, 0, 1, 0),  # if A == 0:
    (0x06, 0, 0, 0xFFFFFFFF),  # let it pass
    (0x06, 0, 0, 0),  # else drop it
)
"""Filter that passes segments without data, in classic BPF (operation, two jumps, operand)."""
NOTHING: Program = ((0x06, 0, 0, 0),)
"""Filter that passes nothing."""
INFO_BYTES, BACKLOG = 104, 24
"""Size of `struct tcp_info`, and the offset of the number of waiting connections of a listening socket."""
ROOM = 16
"""Number of files that other threads may open while the server starts."""
LOOK_SECONDS = 0.005
LOOKS = 24_000
"""How often the server's end of a connection is looked for: two minutes. A clock would also count the time that a machine was paused."""
LOOKS_OF_A_TRY = 200
"""After how many looks a channel is asked to connect again: one second. A channel that lost its connection waits until it is asked."""


@dataclass(frozen=True, slots=True)
class _End:
    """An end of a TCP connection in this process: its file, both addresses, and whether it has a filter."""

    file: int
    here: Address
    there: Address
    filtered: bool


class PrivatePort:
    """The listening port of a server in this process, closed to all others."""

    def __init__(self, address: Address, files: Iterable[int]) -> None:
        """Close the port.

        Args:
            address: Address of the port.
            files: File numbers where the socket is looked for first, before all others.

        Raises:
            OSError: The system cannot close the port.
            EngineUnavailable: Somebody has connected already.
        """
        self._address = address
        self._lock = threading.Lock()
        self._listener = _listener(address, files)
        with undoing(self._listener.close):
            _filter(self._listener, NO_DATA)
            if self._waiting() or any(not end.filtered for end in self._accepted()):
                raise EngineUnavailable.stranger()

    def connect(self, channel: "grpc.Channel") -> None:
        """Connect a channel of this process. Raises EngineUnavailable where that takes too long, or where somebody else connected."""
        from grpc import ChannelConnectivity

        changed = threading.Event()

        def ready(state: ChannelConnectivity) -> None:
            if state is ChannelConnectivity.READY:
                changed.set()

        with self._lock:
            _filter(self._listener, NO_DATA)
            try:
                for look in range(LOOKS):
                    if look % LOOKS_OF_A_TRY == 0:
                        channel.unsubscribe(ready)
                        channel.subscribe(ready, try_to_connect=True)
                    if self._admitted():
                        return
                    if changed.wait(LOOK_SECONDS):
                        changed.clear()
                raise EngineUnavailable.silent()
            finally:
                channel.unsubscribe(ready)
                _filter(self._listener, NOTHING)

    def close(self) -> None:
        """Close all connections, because a server that ends waits for them. The sessions have ended by now."""
        for end in self._accepted():
            _hang_up(end)
        self._listener.close()

    def _admitted(self) -> bool:
        """Admit connections of this process, and return whether there was one. Closes all others. Raises EngineUnavailable where one of them was heard."""
        accepted = self._accepted()
        ours = {end.here for end in _ends() if end.there == self._address} if accepted else set()  # looked for last: it was connected before it was accepted
        for stranger in [end for end in accepted if end.there not in ours]:
            _hang_up(stranger)
            if not stranger.filtered:
                raise EngineUnavailable.stranger()
        admitted = [end for end in accepted if end.there in ours and end.filtered]
        for end in admitted:
            with _lent(end.file) as one:
                one.setsockopt(socket.SOL_SOCKET, DETACH, 0)
        return bool(admitted)

    def _accepted(self) -> list[_End]:
        """Return the server's ends of all connections that it has accepted."""
        return [end for end in _ends() if end.here == self._address]

    def _waiting(self) -> int:
        """Return the number of connections that the server has not accepted yet."""
        info = self._listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        return int(struct.unpack_from("I", info, BACKLOG)[0])


def files_to_come() -> range:
    """Return the numbers that the next files of this process may have. Empty where the system lists no files."""
    with suppress(OSError):
        return range(max(_files()) + 1 + ROOM)
    return range(0)


def filters_work() -> bool:
    """Return whether this system can filter sockets."""
    with socket.socket() as probe:
        try:
            _filter(probe, NO_DATA)
        except OSError:
            return False
    return True


def others_logged_on() -> tuple[str, ...]:
    """Return the names of other users who are logged on to this machine, by the command `who`."""
    import getpass

    with suppress(OSError):
        listed = run(["who"], stdout=PIPE, stderr=DEVNULL, text=True, check=False).stdout
        return tuple(sorted({line.split()[0] for line in listed.splitlines() if line.strip()} - {getpass.getuser()}))
    return ()


def _filter(one: socket.socket, program: Program) -> None:
    """Put a filter on a socket. Raises OSError where the system has no filters, or drops this one."""
    code = array("B", b"".join(INSTRUCTION.pack(*step) for step in program))
    one.setsockopt(socket.SOL_SOCKET, ATTACH, struct.pack("HP", len(program), code.buffer_info()[0]))
    if not _filtered(one):
        raise OSError("this system does not filter what reaches a socket")


def _filtered(one: socket.socket) -> bool:
    """Return whether a socket has a filter. The kernel answers with one entry per instruction."""
    return bool(one.getsockopt(socket.SOL_SOCKET, ATTACH, INSTRUCTION.size * len(NO_DATA)))


def _listener(address: Address, files: Iterable[int]) -> socket.socket:
    """Return the listening socket of an address, as a new file. Raises OSError where this process has none."""
    for numbers in (files, _files()):
        for number in numbers:
            with suppress(OSError), _lent(number) as one:
                if one.family == socket.AF_INET and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and one.getsockname() == address:
                    return socket.socket(fileno=os.dup(number))  # `socket.dup` would make the server's own accept wait
    raise OSError("the server's socket is not among the files of this process")


def _ends() -> Iterator[_End]:
    """Yield the ends of connections in this process."""
    for number in _files():
        with suppress(OSError), _lent(number) as one:  # no socket, not connected, or closed by now
            if one.family in (socket.AF_INET, socket.AF_INET6):
                yield _End(number, _plain(one.getsockname()), _plain(one.getpeername()), _filtered(one))


def _hang_up(end: _End) -> None:
    with suppress(OSError), _lent(end.file) as one:
        one.shutdown(socket.SHUT_RDWR)


def _files() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


@contextmanager
def _lent(number: int) -> Iterator[socket.socket]:
    """Use a file of this process as a socket, which stays open afterwards. Raises OSError where it is no socket."""
    one = socket.socket(fileno=number)
    try:
        yield one
    finally:
        one.detach()


def _plain(name: tuple[str, int]) -> Address:
    """Return an IPv4 address, also from its IPv6 form."""
    return name[0].removeprefix("::ffff:"), name[1]
