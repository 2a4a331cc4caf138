"""The hosts that a source may read: only ones with public addresses, unless private ones are allowed.

Each request resolves the name once and goes to the address that was checked. So a name that changes its address between check and request gains nothing.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address


class AddressRefused(Exception):
    """A host that must not be read."""


def address_of(host: str, port: int, *, allow_private: bool) -> str:
    """The address to connect to. Raises OSError, and AddressRefused where the name is invalid or one of its addresses is not public."""
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
    """Whether an address is public. An IPv6 address that contains an IPv4 address is as public as that one."""
    address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None) or _nat64(address)
        address = inner or address
    return address.is_global and not address.is_multicast


def _nat64(address: IPv6Address) -> IPv4Address | None:
    return IPv4Address(int(address) & 0xFFFFFFFF) if int(address) >> 32 == 0x0064FF9B << 64 else None
