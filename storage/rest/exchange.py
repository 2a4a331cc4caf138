"""One GET and its answer, within a deadline and a number of bytes.

The deadline holds for the whole exchange: connecting, sending, and each byte of the answer. Once begun, an answer has to bring `LEAST_BYTES`
in every `INTERVAL` seconds. Bytes are counted as they arrive, before and after decompression, which handles at most `PIECE` bytes at a time.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl

LEAST_BYTES, INTERVAL = 1000, 30.0
PIECE = 1 << 20
"""Bytes that are decompressed at a time."""
LONGEST_VALIDATOR = 8192
_VALUE = re.compile(r"([!-~\x80-\xff]([\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_TRANSIENT = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError)


class Broken(Exception):
    """An exchange that failed and may succeed when it is repeated."""


class Unreadable(Exception):
    """An answer that cannot be read, however often it is requested."""


class TooLong(Unreadable):
    """An answer that is larger than the limit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer. Its body is read only where the status is below 300."""

    status: int
    reason: str
    headers: httpx.Headers
    body: bytes

    @property
    def following(self) -> str | None:
        """The URL in the header `Link` with `rel="next"`."""
        return httpx.Response(self.status, headers=self.headers).links.get("next", {}).get("url")

    def validator(self, name: str) -> str | None:
        """An ETag or a time of change, for a later condition; None for one of many kilobytes, which no server would accept."""
        value = self.headers.get(name)
        return value if value and len(value) <= LONGEST_VALIDATOR else None


class Connections:
    """Connections to one service that stay open between exchanges."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._pace = _Pace(clock)
        self._pool = httpcore.ConnectionPool(network_backend=_Network(self._pace), max_connections=1)

    def __enter__(self) -> Self:
        """Hold the connections open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self._pool.close()

    def get(self, url: httpx.URL, address: str, headers: Mapping[str, str], *, deadline: float, most: int) -> Answer:
        """The answer to a GET. Raises Broken and Unreadable.

        Args:
            url: the URL
            address: the address of its host to connect to
            headers: further headers
            deadline: the time by the clock when the exchange has to end
            most: the bytes of the largest body
        """
        self._pace.begin(deadline)
        target = httpcore.URL(scheme=url.raw_scheme, host=address.encode(), port=url.port, target=url.raw_path)
        sent = _sent({"Host": url.netloc.decode(), "Accept": "*/*", "Accept-Encoding": "gzip", **headers})
        try:
            with self._pool.stream("GET", target, headers=sent, extensions={"sni_hostname": url.raw_host.decode()}) as response:
                given = httpx.Headers([(name, value) for name, value in response.headers])
                given.encoding = "latin-1"
                body = b"".join(_plain(_counted(response.iter_stream(), most), given, most)) if response.status < 300 else b""
        except _TRANSIENT as wrong:
            raise Broken(f"{type(wrong).__name__}: {wrong}".rstrip(": ")) from wrong
        return Answer(response.status, response.extensions.get("reason_phrase", b"").decode("ascii", "replace"), given, body)


def _sent(headers: Mapping[str, str]) -> list[tuple[bytes | str, bytes | str]]:
    """The headers of the request. Raises Unreadable for an invalid value, without naming it: it may be secret."""
    wrong = next((name for name, value in headers.items() if not _VALUE.fullmatch(value)), None)
    if wrong is not None:
        raise Unreadable(f"the value for the header {wrong} begins or ends with a blank, or has characters that no header can carry")
    return [(name, value.encode("latin-1")) for name, value in headers.items()]


def _counted(pieces: Iterable[bytes], most: int) -> Iterator[bytes]:
    """The pieces. Raises TooLong when they have more than `most` bytes."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise TooLong(f"more than {most:,} bytes")
        yield piece


def _plain(pieces: Iterable[bytes], headers: httpx.Headers, most: int) -> Iterator[bytes]:
    """The pieces of a body, decoded. Raises Unreadable and Broken."""
    codings = [coding for coding in (part.strip().lower() for part in headers.get("content-encoding", "").split(",")) if coding not in ("", "identity")]
    if not codings:
        return iter(pieces)
    if len(codings) > 1:
        raise Unreadable(f"the answer is encoded {len(codings)} times (Content-Encoding: {', '.join(codings)[:80]}): one content coding is read")
    if codings[0] not in ("gzip", "x-gzip"):
        raise Unreadable(f"the answer has Content-Encoding '{codings[0][:80]}', which was not asked for: the server must send gzip or no coding")
    return _counted(_unzipped(pieces), most)


def _unzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The decompressed pieces, of at most `PIECE` bytes. Raises Unreadable and Broken."""
    zipped: Any = zlib.decompressobj(31)
    try:
        for piece in pieces:
            rest = piece
            while rest:
                if zipped.eof:
                    zipped = zlib.decompressobj(31)
                yield zipped.decompress(rest, PIECE)
                rest = zipped.unused_data if zipped.eof else zipped.unconsumed_tail
        while more := zipped.decompress(b"", PIECE):
            yield more
    except zlib.error as wrong:
        raise Unreadable(f"the answer cannot be decompressed: {wrong}") from None
    if not zipped.eof:
        raise Broken("the compressed answer is cut off")


class _Pace:
    """The time that an exchange has left, and the check that its answer is fast enough."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._deadline = 0.0
        self._since: float | None = None
        self._bytes = 0

    def begin(self, deadline: float) -> None:
        """Begin an exchange that has to end at this time."""
        self._deadline, self._since, self._bytes = deadline, None, 0

    def left(self) -> float:
        """The seconds until the next byte has to come. Raises httpcore.ReadTimeout when there are none."""
        now = self._clock()
        if self._since is not None and now >= self._since + INTERVAL:
            if self._bytes < LEAST_BYTES:
                raise httpcore.ReadTimeout(f"the answer brings fewer than {LEAST_BYTES:,} bytes in {INTERVAL:g} seconds")
            self._since, self._bytes = now, 0
        if now >= self._deadline:
            raise httpcore.ReadTimeout("the answer is not complete in time")
        return self._deadline - now if self._since is None else min(self._deadline, self._since + INTERVAL) - now

    def brought(self, size: int) -> None:
        """Count bytes of the answer. The first bytes begin the first interval."""
        self._since = self._clock() if self._since is None else self._since
        self._bytes += size


class _Network(httpcore.NetworkBackend):
    """Sockets with a pace."""

    def __init__(self, pace: _Pace) -> None:
        self._pace, self._plain = pace, httpcore.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        """Connect within the time that is left."""
        return _Stream(self._plain.connect_tcp(host, port, self._pace.left(), local_address, socket_options), self._pace)


class _Stream(httpcore.NetworkStream):
    """A connection with a pace."""

    def __init__(self, plain: httpcore.NetworkStream, pace: _Pace) -> None:
        self._plain, self._pace = plain, pace

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes: at least one, unless the connection ended."""
        while True:
            wait = self._pace.left()
            try:
                found = self._plain.read(max_bytes, wait)
            except httpcore.ReadTimeout:
                self._pace.left()  # says why
                continue
            self._pace.brought(len(found))
            return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send."""
        self._plain.write(buffer, self._pace.left())

    def start_tls(self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None) -> httpcore.NetworkStream:
        """The connection under TLS."""
        return _Stream(self._plain.start_tls(ssl_context, server_hostname, self._pace.left()), self._pace)

    def close(self) -> None:
        """Close it."""
        self._plain.close()

    def get_extra_info(self, info: str) -> Any:
        """Facts of the connection."""
        return self._plain.get_extra_info(info)
