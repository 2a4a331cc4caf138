"""Tokens in output paths.

The tokens are `{source_name}` or `{source_name:NODE}`, `{batch_id}`, `{execution_id}`, `{timestamp}` (UTC, `%Y-%m-%dT%H-%M-%SZ`), `{pipeline_hash}`
(8 digits; `:N`, `:full`), `{channel}`, `{source_file}`, and `{epoch}` (`:N` for at least N digits, padded with zeros). The prefix and suffix of
`{name:prefix:suffix}` and `{name:argument:prefix:suffix}` are written only where the value is not empty. `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from storage.files.errors import FormatError

NAMES = ("source_name", "batch_id", "execution_id", "timestamp", "pipeline_hash", "channel", "source_file", "source_path", "epoch", "n")
STEADY = ("source_name", "channel")
"""Tokens that have the same value in every run of a pipeline under one channel."""
_OF_FILES = ("source_file", "source_path")

_PART = re.compile(r"\{\{|\}\}|\{(?P<token>[^{}]*)\}|(?P<text>[^{}]+)|(?P<stray>[{}])")
_WITH_ARGUMENT = ("source_name", "pipeline_hash", "epoch")


class TokenError(FormatError):
    """A path with an invalid token (exit 1)."""


@dataclass(frozen=True, slots=True)
class TokenValues:
    """The values of the tokens. `source_names` has the stem of each source's path by node; `{source_name}` without a node needs exactly one."""

    source_names: Mapping[str, str] = field(default_factory=dict)
    batch_id: str = ""
    execution_id: str = ""
    started: datetime | None = None
    pipeline_hash: str = ""
    channel: str | None = None
    source_file: str | None = None
    source_path: str | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its name, its argument, and the prefix and suffix of a value that is not empty."""

    name: str
    argument: str | None = None
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """A parsed path with tokens."""

    parts: tuple[str | Token, ...]

    @classmethod
    def parse(cls, text: str) -> PathTemplate:
        """Parse a path. Raises TokenError for an unknown token, a stray brace, too many colons, and an argument that the token does not take."""
        return cls(tuple(_part(found, text) for found in _PART.finditer(text)))

    @property
    def steady(self) -> bool:
        """Whether every run of a pipeline under one channel writes the same path."""
        return all(isinstance(part, str) or part.name in STEADY for part in self.parts)

    @property
    def by_file(self) -> bool:
        """Whether an output is written as one file for each source file."""
        return any(isinstance(part, Token) and part.name in _OF_FILES for part in self.parts)

    @property
    def steady_but_for_files(self) -> bool:
        """Whether every run writes the same path for the same source file."""
        return all(isinstance(part, str) or part.name in (*STEADY, *_OF_FILES) for part in self.parts)

    def render(self, values: TokenValues) -> str:
        """The path with values for tokens. Raises TokenError where `{source_name}` fits several sources, or its node is no source."""
        return "".join(part if isinstance(part, str) else _rendered(part, values) for part in self.parts)


def _part(found: re.Match[str], text: str) -> str | Token:
    if found["stray"]:
        raise TokenError(f"path '{text}' has a single '{found['stray']}': write it twice for a brace in the name")
    if found["token"] is None:
        return found["text"] or found[0][0]
    name, *rest = found["token"].split(":")
    if name not in NAMES:
        raise TokenError(f"path '{text}' has the unknown token '{{{name}}}'; there are {', '.join(NAMES[:-2])}")
    return _token(name, rest, f"path '{text}': '{{{found['token']}}}'")


def _token(name: str, rest: list[str], shown: str) -> Token:
    if len(rest) > 3 or (len(rest) % 2 and name not in _WITH_ARGUMENT):
        raise TokenError(f"{shown} has more parts than '{{{name}:prefix:suffix}}'")
    argument = rest.pop(0) if len(rest) % 2 else None
    if name == "pipeline_hash" and argument != "full" and not _is_length(argument, 64):
        raise TokenError(f"{shown} takes 'full' or a number of digits from 1 to 64")
    if name == "epoch" and not _is_length(argument, 18):
        raise TokenError(f"{shown} takes a number of digits from 1 to 18")
    return Token(name, argument, *rest)


def _is_length(argument: str | None, most: int) -> bool:
    return argument is None or (argument.isdecimal() and 1 <= int(argument) <= most)


def _rendered(token: Token, values: TokenValues) -> str:
    value = _value(token, values)
    return f"{token.prefix}{value}{token.suffix}" if value else ""


def _value(token: Token, values: TokenValues) -> str:
    if token.name == "source_name":
        return _source_name(token.argument, values.source_names)
    if token.name == "pipeline_hash":
        return values.pipeline_hash[: None if token.argument == "full" else int(token.argument or 8)]
    if token.name == "timestamp":
        return (values.started or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    if token.name == "epoch" and values.epoch is not None:
        return str(values.epoch).zfill(int(token.argument or 1))
    value = getattr(values, token.name, None)  # {n} has none
    return "" if value is None else str(value)


def _source_name(node: str | None, names: Mapping[str, str]) -> str:
    if node is not None:
        if node not in names:
            raise TokenError(f"'{{source_name:{node}}}': no source of that name is upstream; there are {', '.join(names) or 'none'}")
        return names[node]
    if len(names) > 1:
        raise TokenError(f"'{{source_name}}' could be any of {', '.join(names)}: write '{{source_name:{next(iter(names))}}}'")
    return next(iter(names.values()), "")
