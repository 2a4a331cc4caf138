"""A listening port to which only this process connects: how Sail's server, which asks nobody for a token, is kept from other users of the machine.

Linux filters what reaches a socket (`SO_ATTACH_FILTER`, for which any user may ask). The listening socket drops each segment that carries data, and every
connection inherits that: anybody may connect, and nobody is heard. This process then finds the server's end of its own connection among its open files and
takes the filter off that one. From then on the listening socket drops everything, so nobody connects at all.

Between the server's `listen` and the first filter lies a tenth of a millisecond, in which the server does not accept connections yet. One that came in this
time is found, since it waits to be accepted or has no filter, and the engine does not start.
"""

import os
import socket
import struct
import threading
import time
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
"""Lets segments without data pass, in the kernel's language (classic BPF: operation, two jumps, operand)."""
NOTHING: Program = ((0x06, 0, 0, 0),)
"""Lets nothing pass."""
INFO_BYTES, BACKLOG = 104, 24
"""The size of `struct tcp_info`, and where a listening socket has the number of connections that wait to be accepted."""
ROOM = 16
"""How many files other threads may open while the server starts."""
LOOK_SECONDS = 0.005
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _End:
    """A TCP connection's end in this process: its file, both addresses, whether it has a filter."""

    file: int
    here: Address
    there: Address
    filtered: bool


class PrivatePort:
    """The listening port of a server in this process, closed to everybody else."""

    def __init__(self, address: Address, files: Iterable[int]) -> None:
        """Close the port. `files` are the numbers that its socket is looked for at first; it is looked for everywhere where none of them is it.

        Raises OSError where the system cannot close it, EngineUnavailable where somebody is in already.
        """
        self._address = address
        self._lock = threading.Lock()
        self._listener = _listener(address, files)
        with undoing(self._listener.close):
            _filter(self._listener, NO_DATA)
            if self._waiting() or any(not end.filtered for end in self._accepted()):
                raise EngineUnavailable.stranger()

    def connect(self, channel: "grpc.Channel") -> None:
        """Have a channel of this process connect. Raises EngineUnavailable where that takes too long, or where somebody else got in."""
        from grpc import ChannelConnectivity

        ready = threading.Event()

        def told(state: ChannelConnectivity) -> None:
            if state is ChannelConnectivity.READY:
                ready.set()

        with self._lock:
            _filter(self._listener, NO_DATA)
            channel.subscribe(told, try_to_connect=True)
            last = time.monotonic() + PATIENCE_SECONDS
            try:
                while not self._admitted():
                    if time.monotonic() > last:
                        raise EngineUnavailable.silent()
                    ready.wait(LOOK_SECONDS)
            finally:
                channel.unsubscribe(told)
                _filter(self._listener, NOTHING)

    def close(self) -> None:
        """Hang up on everybody, since a server that ends waits for its connections. The sessions have ended by now."""
        for end in self._accepted():
            _hang_up(end)
        self._listener.close()

    def _admitted(self) -> bool:
        """Whether a connection of this process was admitted just now. Hangs up on all others; raises EngineUnavailable where one of them was heard."""
        ends = list(_ends())
        ours = {end.here for end in ends if end.there == self._address}
        accepted = [end for end in ends if end.here == self._address]
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
        """The server's ends of all connections."""
        return [end for end in _ends() if end.here == self._address]

    def _waiting(self) -> int:
        """The number of connections that the server has not accepted yet."""
        told = self._listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        return int(struct.unpack_from("I", told, BACKLOG)[0])


def files_to_come() -> range:
    """The numbers that the next files of this process may have; none where the system has no list of files."""
    with suppress(OSError):
        return range(max(_files()) + 1 + ROOM)
    return range(0)


def filters_work() -> bool:
    """Whether this system has filters of sockets."""
    with socket.socket() as probe:
        try:
            _filter(probe, NO_DATA)
        except OSError:
            return False
    return True


def others_logged_on() -> tuple[str, ...]:
    """The names of other users who are logged on to this machine, as far as `who` tells."""
    import getpass

    with suppress(OSError):
        told = run(["who"], stdout=PIPE, stderr=DEVNULL, text=True, check=False).stdout
        return tuple(sorted({line.split()[0] for line in told.splitlines() if line.strip()} - {getpass.getuser()}))
    return ()


def _filter(one: socket.socket, program: Program) -> None:
    """Put a filter on a socket. Raises OSError where the system has none, or takes it without keeping it."""
    code = array("B", b"".join(INSTRUCTION.pack(*step) for step in program))
    one.setsockopt(socket.SOL_SOCKET, ATTACH, struct.pack("HP", len(program), code.buffer_info()[0]))
    if not _filtered(one):
        raise OSError("this system does not filter what reaches a socket")


def _filtered(one: socket.socket) -> bool:
    """Whether a socket has a filter. The kernel answers with as many bytes as the filter has instructions."""
    return bool(one.getsockopt(socket.SOL_SOCKET, ATTACH, INSTRUCTION.size * len(NO_DATA)))


def _listener(address: Address, files: Iterable[int]) -> socket.socket:
    """The listening socket of an address, as a file of its own. Raises OSError where this process has none."""
    for numbers in (files, _files()):
        for number in numbers:
            with suppress(OSError), _lent(number) as one:
                if one.family == socket.AF_INET and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and one.getsockname() == address:
                    return socket.socket(fileno=os.dup(number))  # `socket.dup` would have the server's own accept wait
    raise OSError("the server's socket is not among the files of this process")


def _ends() -> Iterator[_End]:
    """The ends of connections that this process holds, one by one."""
    for number in _files():
        with suppress(OSError), _lent(number) as one:  # no socket, one that is not connected, or closed by now
            if one.family in (socket.AF_INET, socket.AF_INET6):
                yield _End(number, _plain(one.getsockname()), _plain(one.getpeername()), _filtered(one))


def _hang_up(end: _End) -> None:
    with suppress(OSError), _lent(end.file) as one:
        one.shutdown(socket.SHUT_RDWR)


def _files() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


@contextmanager
def _lent(number: int) -> Iterator[socket.socket]:
    """A file of this process as a socket, which stays open behind the `with`. Raises OSError where it is none."""
    one = socket.socket(fileno=number)
    try:
        yield one
    finally:
        one.detach()


def _plain(name: tuple[str, int]) -> Address:
    """An address of IPv4, which a socket of IPv6 has in a form of its own."""
    return name[0].removeprefix("::ffff:"), name[1]
