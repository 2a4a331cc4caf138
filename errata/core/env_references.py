"""Environment references in YAML files: `${NAME}`, `${NAME:-default}`, `${secret:NAME}`, and `$$` for a dollar sign.

They are replaced inside single values, after the structure of the file is known. So a variable's text is always one value, and
never becomes structure. References in comments are ignored.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from storage.stores.connections import given_environment

MASK = "\ue000"
"""The character that replaces each character of a reference while the structure is read."""

_TOKEN = re.compile(r"\$\$|\$\{([^}\r\n]*)\}")
_BODY = re.compile(r"(?P<secret>secret:)?(?P<name>[A-Z_][A-Z0-9_]*)(:-(?P<default>.*))?")


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: its offsets, and the text between the braces (None for `$$`)."""

    start: int
    end: int
    body: str | None

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown."""
        return self.body is not None and self.body.startswith("secret:")


class BadReference(Exception):
    """A reference without a value: code, message and help of the diagnostic."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help

    @classmethod
    def unset(cls, name: str) -> "BadReference":
        """Return the error of a variable without a value, where the reference has no default."""
        return cls("ENV-001", f"environment variable {name} is not set", f"set {name}, or give a default: ${{{name}:-value}}")

    @classmethod
    def malformed(cls, body: str) -> "BadReference":
        """Return the error of a text between the braces that is no variable's name."""
        return cls(
            "ENV-002", f"'{body}' is not the name of an environment variable", "names are A-Z, 0-9 and _; write $$ for a plain dollar sign"
        )


class Secret(str):
    """A text whose representation is `***`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


_SEEN: ContextVar[set[str] | None] = ContextVar("secrets", default=None)
_SHORTEST_SECRET = 4


@contextmanager
def collected_secrets() -> Iterator[None]:
    """Collect the secrets that files read from the environment, for `redacted`, while this context is open."""
    token = _SEEN.set(set())
    try:
        yield
    finally:
        _SEEN.reset(token)


def note_secret(value: str) -> None:
    """Record a secret for `redacted`. Texts of fewer than four characters are left out: they would hide half of every message."""
    seen = _SEEN.get()
    if seen is not None and len(value) >= _SHORTEST_SECRET:
        seen.add(value)


def redacted(text: str) -> str:
    """Return the text with `***` for each secret, the longest first."""
    for secret in sorted(_SEEN.get() or (), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def process_environment(name: str | None = None) -> dict[str, str]:
    """Return the process's variables, without what connections set. An active environment (`--env`) is added as ERRATA_ENV and CLINKER_ENV."""
    given = {} if name is None else {"ERRATA_ENV": name, "CLINKER_ENV": name}
    return {**given_environment(), **given}


def references(text: str) -> dict[int, Reference]:
    """Return all references of a text by their start."""
    return {match.start(): Reference(match.start(), match.end(), match.group(1)) for match in _TOKEN.finditer(text)}


def masked(text: str, found: Mapping[int, Reference]) -> str:
    """Return the text with mask characters for its references. Every other character keeps its offset."""
    pieces: list[str] = []
    position = 0
    for reference in found.values():
        pieces += [text[position : reference.start], MASK * (reference.end - reference.start)]
        position = reference.end
    return "".join([*pieces, text[position:]])


def expand(reference: Reference, env: Mapping[str, str]) -> str:
    """Return the value of a reference. An empty variable takes the default too. Raises BadReference."""
    if reference.body is None:
        return "$"
    match = _BODY.fullmatch(reference.body)
    if match is None:
        raise BadReference.malformed(reference.body)
    value = env.get(match["name"])
    if value is None or (not value and match["default"] is not None):
        value = match["default"]
    if value is None:
        raise BadReference.unset(match["name"])
    return value
