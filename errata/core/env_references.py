"""Environment references in the text of YAML files: `${NAME}`, `${NAME:-default}`, `${secret:NAME}`, and `$$` for one dollar sign.

They are replaced inside single values after the file's structure is known, so a variable's text is always one value
and never becomes structure; references in comments are not looked at. (Reference, section 2; SPEC-DECISIONS, Pipeline 27.)
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

MASK = "\ue000"
"""The character that stands for each character of a reference while the structure is read."""

_TOKEN = re.compile(r"\$\$|\$\{([^}\r\n]*)\}")
_BODY = re.compile(r"(?P<secret>secret:)?(?P<name>[A-Z_][A-Z0-9_]*)(:-(?P<default>.*))?")


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: its offsets, the text between the braces (None for `$$`)."""

    start: int
    end: int
    body: str | None

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown."""
        return self.body is not None and self.body.startswith("secret:")


class BadReference(Exception):
    """A reference that gives no value: code and message of the diagnostic, and help."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help

    @classmethod
    def unset(cls, name: str) -> "BadReference":
        """The variable has no value and the reference no default."""
        return cls("ENV-001", f"environment variable {name} is not set", f"set {name}, or give a default: ${{{name}:-value}}")

    @classmethod
    def malformed(cls, body: str) -> "BadReference":
        """What stands between the braces is no variable's name."""
        return cls(
            "ENV-002", f"'{body}' is not the name of an environment variable", "names are A-Z, 0-9 and _; write $$ for a plain dollar sign"
        )


class Secret(str):
    """A text that shows itself as `***` wherever it is printed by its representation."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


_SEEN: ContextVar[set[str] | None] = ContextVar("secrets", default=None)
_SHORTEST_SECRET = 4


@contextmanager
def secrets_kept() -> Iterator[None]:
    """While this lasts, `redacted` knows every secret that a file took from the environment."""
    token = _SEEN.set(set())
    try:
        yield
    finally:
        _SEEN.reset(token)


def note_secret(value: str) -> None:
    """Remember a secret for `redacted`. Texts of fewer than four characters would blank out half of every message."""
    seen = _SEEN.get()
    if seen is not None and len(value) >= _SHORTEST_SECRET:
        seen.add(value)


def redacted(text: str) -> str:
    """The text with `***` for each secret, the longest first."""
    for secret in sorted(_SEEN.get() or (), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def process_environment(name: str | None = None) -> dict[str, str]:
    """The process's variables; with an active environment (`--env`) also ERRATA_ENV and CLINKER_ENV, which name it."""
    given = {} if name is None else {"ERRATA_ENV": name, "CLINKER_ENV": name}
    return {**os.environ, **given}


def references(text: str) -> dict[int, Reference]:
    """All references of a text by their start."""
    return {match.start(): Reference(match.start(), match.end(), match.group(1)) for match in _TOKEN.finditer(text)}


def masked(text: str, found: Mapping[int, Reference]) -> str:
    """The text with each reference as so many mask characters: every other character keeps its offset."""
    pieces: list[str] = []
    position = 0
    for reference in found.values():
        pieces += [text[position : reference.start], MASK * (reference.end - reference.start)]
        position = reference.end
    return "".join([*pieces, text[position:]])


def expand(reference: Reference, env: Mapping[str, str]) -> str:
    """The text that a reference stands for. An empty variable takes the default too. Raises BadReference."""
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
