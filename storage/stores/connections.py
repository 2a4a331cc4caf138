"""Connections of `errata.toml` that are object stores: which one covers a URI, and what the store needs to be reached."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from storage.errors import ConnectionFault
from storage.uris import SCHEMES, is_object

__all__ = ["SECRET_KEYS", "STORE_KEYS", "StoreConnection", "Stores", "given_environment", "of_environment", "reach_by_environment", "reading_for", "takes"]

SECRET_KEYS: Final = ("secret_access_key", "session_token", "account_key", "service_account")
"""Settings that are named (`env:`, `file:`), never written."""
STORE_KEYS: Final = ("endpoint", "region", "allow_http", "access_key_id", "account_name", "skip_signature", *SECRET_KEYS)
"""Settings that only connections of object stores have."""
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "s3": {one: one for one in ("endpoint", "region", "access_key_id", "secret_access_key", "session_token")},
    "gs": {"endpoint": "base_url", "service_account": "service_account_key"},
    "az": {one: one for one in ("endpoint", "account_name", "account_key")},
}
"""The settings of each kind, with the names that the library has for them."""
_VARIABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "s3": {
        "endpoint": "AWS_ENDPOINT_URL", "region": "AWS_REGION",
        "access_key_id": "AWS_ACCESS_KEY_ID", "secret_access_key": "AWS_SECRET_ACCESS_KEY", "session_token": "AWS_SESSION_TOKEN",
    },
    "gs": {"endpoint": "GOOGLE_BASE_URL", "service_account": "GOOGLE_SERVICE_ACCOUNT_KEY"},
    "az": {"endpoint": "AZURE_STORAGE_ENDPOINT", "account_name": "AZURE_STORAGE_ACCOUNT_NAME", "account_key": "AZURE_STORAGE_ACCOUNT_KEY"},
}  # fmt: skip
"""The settings of each kind, with the environment variables of delta-rs and engines for them."""
_RIVALS: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS_ACCESS_KEY_ID": ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    "GOOGLE_SERVICE_ACCOUNT_KEY": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
    "AZURE_STORAGE_ACCOUNT_KEY": ("AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY", "AZURE_STORAGE_TOKEN"),
}
"""Variables with credentials that libraries would join with a connection's own, or take in their place."""
_PREFIXES: Final[Mapping[str, str]] = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
_LITERAL = re.compile(r"[^*?\[{]*")


@dataclass(frozen=True, slots=True)
class StoreConnection:
    """An object store by its name. Nothing of it is resolved before it is used, and a pickled one has no secret.

    Attributes:
        url: `s3://bucket`, `gs://bucket`, `az://container`, a prefix of one, or `env:NAME`.
        settings: Further settings as `errata.toml` has them: texts, `env:NAME`, `file:PATH`.
        folder: The folder of `errata.toml`, where relative paths start.
        environment: Where `env:` looks; a process that unpickles the connection has its own.
    """

    name: str
    url: str = field(repr=False)
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    allow_http: bool = False
    skip_signature: bool = False
    read_only: bool = False
    connect_timeout: float | None = None
    folder: Path = Path()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreConnection, tuple(getattr(self, one.name) for one in fields(self) if one.name != "environment")

    @property
    def place(self) -> str:
        """The URI below which it covers everything. Raises ConnectionFault (E600, E602)."""
        text = self._value("url", self.url).rstrip("/")
        if not is_object(text) or "@" in text or "?" in text:
            raise ConnectionFault("E600", f"the url of connection '{self.name}' is no address of an object store", f"write one of {', '.join(f'{one}://bucket' for one in SCHEMES)}")
        return text

    def covers(self, uri: str) -> bool:
        """Whether a URI, or a pattern of URIs, lies at or below its place."""
        try:
            place = self.place
        except ConnectionFault:
            return False
        literal = _LITERAL.match(uri)
        return uri == place or (literal is not None and literal[0].startswith(f"{place}/"))

    def config(self) -> dict[str, Any]:
        """The settings with their values, by the library's names. They go to the library and nowhere else. Raises ConnectionFault (E602)."""
        names = _NAMES.get(self._kind, {})
        found: dict[str, Any] = {names[key]: self._value(key, text) for key, text in self.settings if key in names}
        return found | ({"skip_signature": True} if self.skip_signature else {})

    @property
    def plain_http(self) -> bool:
        """Whether the store may be reached without encryption: as the connection says, or, where the environment has the endpoint, as that says."""
        by_environment = not any(key == "endpoint" for key, _ in self.settings)
        variable = f"{_PREFIXES.get(self._kind, 'AWS')}_ALLOW_HTTP"
        return self.allow_http or (by_environment and self.environment.get(variable, "").lower() in ("1", "true", "yes"))

    def variables(self) -> dict[str, str | None]:
        """The environment variables by which delta-rs and engines reach the store; None for one that must not be set.

        What the connection leaves to the environment is not among them. Raises ConnectionFault (E602).
        """
        names, given = _VARIABLES.get(self._kind, {}), dict(self.settings)
        found: dict[str, str | None] = {variable: self._value(key, given[key]) for key, variable in names.items() if key in given}
        found = {**{rival: None for one in found for rival in _RIVALS.get(one, ())}, **found}
        for key, asked, settled in (("ALLOW_HTTP", self.allow_http, "endpoint" in given), ("SKIP_SIGNATURE", self.skip_signature, bool(given.keys() & {*SECRET_KEYS}))):
            if asked or settled:
                found[f"{_PREFIXES.get(self._kind, 'AWS')}_{key}"] = "true" if asked else None
        return found

    @property
    def _kind(self) -> str:
        return self._value("url", self.url).partition("://")[0]

    def secrets(self) -> Iterator[str]:
        """The texts that no message may have. Values that are not there are left out."""
        for key, text in self.settings:
            if key in (*SECRET_KEYS, "access_key_id") and text.startswith(("env:", "file:")):
                try:
                    yield self._value(key, text)
                except ConnectionFault:
                    continue

    def require_library(self) -> None:
        """Raise ConnectionFault (E606) where the library is not installed."""
        if find_spec("obstore") is None:
            raise ConnectionFault("E606", f"connection '{self.name}': object stores need the library obstore, which is not installed", "pip install 'errata[objects]'")

    def _value(self, key: str, text: str) -> str:
        if text.startswith("env:"):
            name = text.removeprefix("env:")
            if name not in self.environment:
                raise ConnectionFault("E602", f"connection '{self.name}' takes '{key}' from the environment variable {name}, which is not set", f"set {name}")
            return self.environment[name]
        if text.startswith("file:"):
            path = self.folder / text.removeprefix("file:")
            try:
                return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is no text"
                raise ConnectionFault("E602", f"connection '{self.name}' takes '{key}' from the file {path}, which cannot be read: {reason}") from None
        return text


def takes(address: str, key: str) -> bool:
    """Whether the kind of store of an address has a setting."""
    return key in ("allow_http", "skip_signature") or key in _NAMES[address.partition("://")[0]]


def of_environment(uri: str) -> StoreConnection:
    """The connection of a state or table that no connection covers: the environment has its settings."""
    return StoreConnection("of the environment", "/".join(uri.split("/")[:3]))


_changed: dict[str, tuple[str | None, str | None]] = {}
"""The variables that connections changed: what each was before, and what it was set to."""
_changing = threading.Lock()


def given_environment() -> dict[str, str]:
    """The environment as the process has it from outside, without what connections set in it."""
    found = dict(os.environ)
    for name, (before, after) in tuple(_changed.items()):
        if found.get(name) == after:  # else somebody else has changed it since
            found.pop(name, None)
            found |= {} if before is None else {name: before}
    return found


def reach_by_environment(connections: Iterable[StoreConnection]) -> None:
    """Set the variables by which delta-rs and engines, also in processes that this one starts, reach stores as connections do, of each kind the last one.

    Variables that were set for other connections get back what they were before. Raises ConnectionFault (E602); then they are all as before.
    """
    with _changing:
        given, wanted = given_environment(), dict[str, str | None]()
        try:
            for connection in {one.place.partition("://")[0]: one for one in connections}.values():
                wanted |= connection.variables()
        except ConnectionFault:
            wanted = {}
            raise
        finally:
            for name, value in ({name: given.get(name) for name in _changed} | wanted).items():
                _set(name, value)
            _changed.clear()
            _changed.update({name: (given.get(name), value) for name, value in wanted.items()})


@contextmanager
def reading_for(connection: StoreConnection) -> Iterator[None]:
    """While a library reads from the environment what a connection leaves to it, take away what other connections set there, and credentials beside its own."""
    with _changing:
        given, now, own = given_environment(), dict(os.environ), connection.variables()
        wanted = {name: given.get(name) for name in _changed.keys() - own.keys()} | {name: None for name, value in own.items() if value is None}
        try:
            for name, value in wanted.items():
                _set(name, value)
            yield
        finally:
            for name in wanted:
                _set(name, now.get(name))


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


@dataclass(frozen=True, slots=True)
class Stores:
    """The object stores of a workspace."""

    connections: tuple[StoreConnection, ...] = ()

    def covering(self, uri: str) -> StoreConnection | None:
        """The connection with the longest place that covers a URI or a pattern; None where none does."""
        return max((one for one in self.connections if one.covers(uri)), key=lambda one: len(one.place), default=None)

    def require(self, uri: str) -> StoreConnection:
        """The connection that covers a URI. Raises ConnectionFault (E640)."""
        found = self.covering(uri)
        if found is None:
            raise self.uncovered(uri)
        return found

    def uncovered(self, uri: str) -> ConnectionFault:
        """The fault of a URI that no connection covers (E640; E602 where the address of one is not known)."""
        for one in self.connections:
            try:
                _ = one.place
            except ConnectionFault as fault:
                return fault
        bucket = "/".join(uri.split("/")[:3])
        return ConnectionFault("E640", f"no connection covers '{uri}'", f'add one to errata.toml: [connections.lake] url = "{bucket}"')


