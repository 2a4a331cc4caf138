"""Checks of the connection that a node names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from operators.core.binding import Binding
from storage.errors import ConnectionFault
from storage.sql.connections import WRITABLE, Connection

PLACE = ("config", "connection")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|.*//|.*@")


def connection_of(name: str | None, report: Callable[..., Any], binding: Binding, *, writes: bool = False) -> Connection | None:
    """The connection of a name; None where what is wrong with it was reported. Nothing is opened.

    Args:
        name: What the node says.
        report: Takes code, message, place and help.
        binding: Knows the connections.
        writes: Whether the node writes to it: some connections take no output, whatever library is installed.
    """
    if name is None:
        report("E600", "a node of type sql needs the name of a connection", ("config",), "connection: NAME, of a table [connections.NAME] in errata.toml")
        return None
    known = binding.settings.connections
    if name not in known:
        if _ADDRESS.match(name):
            report("E601", "'connection' is the name of a connection, not an address", PLACE, "write the address into errata.toml, as [connections.NAME] url = ..., and name it here")
        else:
            help_text = binding.problems.similar(name, list(known)) or f"errata.toml has {', '.join(known) if known else 'no connections'}"
            report("E600", f"there is no connection '{name}'", PLACE, help_text)
        return None
    found = known[name]
    try:
        if writes and (found.read_only or found.kind not in WRITABLE):
            why = "errata.toml says that it is read only" if found.read_only else f"databases of kind {found.kind} are only read"
            report("E607", f"an output cannot write to connection '{name}': {why}", PLACE, "name a connection that may be written" + (", or remove read_only in errata.toml" if found.read_only else ""))
            return None
        found.require_library()
    except ConnectionFault as fault:
        report(fault.code, fault.message, PLACE, fault.help)
        return None
    return found
