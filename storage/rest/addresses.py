"""Which hosts a source may be read from (QUALITY.md, "Security"): public addresses only, unless private ones are allowed.

The name is resolved here, once for each request, and the request goes to the address that was looked at: a name that means another address a moment
later is of no use to anybody.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address


class AddressRefused(Exception):
    """A host that may not be asked."""


def address_of(host: str, port: int, *, allow_private: bool) -> str:
    """The address to connect to. Raises AddressRefused where one of the host's is not public or the name is none; OSError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressRefused(f"{host[:80]} is no name of a host") from None
    texts = [str(entry[4][0]) for entry in found]
    for text in () if allow_private else texts:
        if not is_public(text):
            raise AddressRefused(f"{text if text == host else f'{host} is {text}, which'} is no public address; allow_private: true permits it")
    return texts[0]


def is_public(text: str) -> bool:
    """Whether an address can be reached by everybody; what wraps another address is as public as that one."""
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None) or _nat64(address)
        address = inner or address
    return address.is_global and not address.is_multicast


def _nat64(address: IPv6Address) -> IPv4Address | None:
    return IPv4Address(int(address) & 0xFFFFFFFF) if int(address) >> 32 == 0x0064FF9B << 64 else None
