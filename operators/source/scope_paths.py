"""Scopes that paths tell: `sales-{month}.csv` matches the last parts of a path and names the values in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from changelog.keys.encoding import encode_key
from changelog.lazy_imports import pa
from storage.files.errors import InputError
from storage.values.coerce import coerce


@dataclass(frozen=True)
class ScopePattern:
    """A pattern of paths.

    Attributes:
        text: The pattern, with `{name}` for one or more characters without a slash.
        types: The declared types of the columns that it names.
    """

    text: str
    types: Mapping[str, str]

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        pieces = re.split(r"\{([^{}]+)\}", self.text.removeprefix("/"))
        return re.compile("".join(f"(?P<_{at}>[^/]+)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)))

    @cached_property
    def names(self) -> list[str]:
        """The names in the pattern, in order."""
        return re.findall(r"\{([^{}]+)\}", self.text)

    def values(self, path: str) -> dict[str, str] | None:
        """The values that a path tells; None for a path that does not fit."""
        count = self.text.removeprefix("/").count("/") + 1
        parts = path.split("/")
        found = self._expression.fullmatch("/".join(parts[-count:])) if len(parts) >= count else None
        return None if found is None else dict(zip(self.names, found.groups(), strict=True))

    def checked_values(self, path: str) -> dict[str, str]:
        """The values that a path tells. Raises InputError for a path that does not fit, and for a value that is not of its column's type."""
        found = self.values(path)
        if found is None:
            raise InputError(path, f"the path does not fit '{self.text}', which tells the scope of a delivery")
        for name, kind in self.types.items():
            if not _typed(found[name], kind).is_valid:
                raise InputError(path, f"'{found[name]}' in the path is no {kind}, as column '{name}' has it")
        return found

    def typed(self, path: str) -> dict[str, pa.Scalar]:
        """The values of the columns that the pattern names."""
        found = self.checked_values(path)
        return {name: _typed(found[name], kind) for name, kind in self.types.items()}

    def scope(self, path: str) -> bytes | None:
        """The scope of a file; None for a path that does not fit."""
        found = self.values(path)
        return None if found is None else encode_key([found[name] for name in self.names], ["string"] * len(self.names))


def _typed(text: str, kind: str) -> pa.Scalar:
    return coerce(pa.array([text], pa.string()), kind).values[0]
