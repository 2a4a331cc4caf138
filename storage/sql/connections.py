"""Connections of `errata.toml`: addresses of databases by name, with their secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from storage.errors import ConnectionFault
from storage.secrets import Secret, redacted
from storage.sql.errors import DatabaseError, Trouble

FILES: Final = ("sqlite", "duckdb")
"""Kinds whose databases are files."""
WRITABLE: Final = ("postgresql", *FILES)
"""Kinds that outputs may name."""
KINDS: Final = (*WRITABLE, "mysql", "mssql", "oracle")
_ALIASES: Final = {"postgres": "postgresql", "sqlserver": "mssql"}
LIBRARIES: Final[Mapping[str, tuple[str, str]]] = {
    "postgresql": ("adbc_driver_postgresql", "postgresql"), "duckdb": ("duckdb", "duckdb"), **dict.fromkeys(("mysql", "mssql", "oracle"), ("connectorx", "databases")),
}  # fmt: skip
"""The library of each kind, and the extra that installs it."""
CONNECT_TIMEOUT: Final = 10.0
LOCK_TIMEOUT: Final = 30.0
"""Seconds for which a held SQLite or DuckDB file, or a locked table of a server, is waited for."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is.

    Attributes:
        path: The file of a SQLite or DuckDB database; None for a server.
        database: The database of a server.
        options: Further settings of the URL. They may have passwords too.
    """

    kind: str
    path: Path | None = None
    host: str = ""
    port: int | None = None
    database: str = ""
    user: str = ""
    password: Secret | None = None
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def secrets(self) -> Iterator[str]:
        """The passwords of the address."""
        if self.password is not None:
            yield self.password.reveal()
        yield from (value for name, value in self.options if "password" in name.lower())

    @property
    def shown(self) -> str:
        """Host, port and database, or the path, as messages have them."""
        if self.path is not None:
            return str(self.path)
        return f"{self.host}{'' if self.port is None else f':{self.port}'}{'/' + self.database if self.database else ''}"

    @property
    def identity(self) -> tuple[str, ...]:
        """The texts that tell a database from others, without passwords."""
        options = (f"{name}={value}" for name, value in self.options if "password" not in name.lower())
        return (self.kind, self.shown, self.user, *options)

    def url(self, extra: Mapping[str, str] | None = None, *, scheme: str | None = None) -> str:
        """The whole address with its password. It goes to a driver and nowhere else."""
        secret = "" if self.password is None else ":" + quote(self.password.reveal(), safe="")
        user = quote(self.user, safe="") + secret
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = f"{user + '@' if user else ''}{host}{'' if self.port is None else f':{self.port}'}"
        query = urlencode([*self.options, *(extra or {}).items()], quote_via=quote)
        return f"{scheme or self.kind}://{place}/{quote(self.database, safe='')}{'?' + query if query else ''}"


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection by its name. Nothing of it is resolved before it is used.

    Attributes:
        url: The address, or `env:NAME`.
        password: `env:NAME` or `file:PATH`.
        folder: The folder of `errata.toml`, where relative paths start.
        environment: Where `env:` looks.
    """

    name: str
    url: Secret
    password: str | None = None
    read_only: bool = False
    connect_timeout: float | None = None
    statement_timeout: float | None = None
    folder: Path = Path()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def address(self) -> Address:
        """The address with its password. Raises ConnectionFault: E600 for a kind that there is not, E602 for a value that is not there."""
        text = self._url()
        scheme, _, rest = text.partition(":")
        kind = _ALIASES.get(scheme.lower(), scheme.lower())
        if kind not in KINDS:
            raise ConnectionFault("E600", f"connection '{self.name}' is of no kind of database that Errata knows", f"its url begins with one of {', '.join(f'{one}:' for one in KINDS)}")
        if kind in FILES:
            return Address(kind, path=self._file(kind, rest))
        return self._server(kind, text)

    @property
    def kind(self) -> str:
        """The kind of the database. Raises ConnectionFault."""
        return self.address().kind

    def require_library(self) -> None:
        """Raise ConnectionFault (E606) where the library of the kind is not installed."""
        kind = self.kind
        module, extra = LIBRARIES.get(kind, ("", ""))
        if module and find_spec(module) is None:
            raise ConnectionFault("E606", f"connection '{self.name}': databases of kind {kind} need the library {module}, which is not installed", f"pip install 'errata[{extra}]'")

    @property
    def timeout(self) -> float:
        """Seconds for one try to connect; for a file, how long another process is waited for."""
        return self.connect_timeout or (LOCK_TIMEOUT if self.kind in FILES else CONNECT_TIMEOUT)

    def secrets(self) -> Iterator[str]:
        """The texts that no message may have. Values that are not there are left out."""
        try:
            address = self.address()
        except ConnectionFault:
            return
        for secret in address.secrets:
            yield secret
            yield quote(secret, safe="")
        if self.url.reveal().startswith("env:"):
            yield self._url()

    @property
    def has_password_in_url(self) -> bool:
        """Whether `errata.toml` itself has a password in the address (W600)."""
        text = self.url.reveal()
        if text.startswith("env:"):
            return False
        place, _, settings = text.partition("//")[2].partition("?")
        return ":" in place.rpartition("@")[0] or any("password" in name.lower() for name, _ in parse_qsl(settings))

    def failed(self, trouble: Trouble, text: str) -> DatabaseError:
        """The error of a driver's text."""
        try:
            place = self.address().shown
        except ConnectionFault:
            place = ""
        return DatabaseError(self.name, place, trouble, redacted(text, self.secrets()))

    def file(self) -> Path:
        """The database file. Only kinds that have one may ask."""
        path = self.address().path
        assert path is not None
        return path

    def require_file(self) -> None:
        """Raise DatabaseError where the database file is not there."""
        path = self.file()
        if not path.is_file():
            raise self.failed("refused", "it is a folder, and no file" if path.is_dir() else "there is no such file")

    def make_folder(self) -> None:
        """Make the folder of the database file. Raises DatabaseError."""
        try:
            self.file().parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self.failed("refused", f"its folder cannot be made: {error.strerror}") from None

    def _url(self) -> str:
        text = self.url.reveal()
        return self._variable(text) if text.startswith("env:") else text

    def _variable(self, reference: str) -> str:
        name = reference.removeprefix("env:")
        if name not in self.environment:
            raise ConnectionFault("E602", f"connection '{self.name}' takes a value from the environment variable {name}, which is not set", f"set {name}")
        return self.environment[name]

    def _password(self) -> Secret | None:
        password = self.password
        if password is None:
            return None
        if password.startswith("env:"):
            return Secret(self._variable(password))
        path = self.folder / password.removeprefix("file:")
        try:
            return Secret(path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise ConnectionFault("E602", f"connection '{self.name}' takes its password from the file {path}, which cannot be read: {reason}") from None

    def _file(self, kind: str, rest: str) -> Path:
        path = rest.removeprefix("//") if not rest.startswith("///") else rest[2:]
        path = path.partition("?")[0]
        if path in ("", ":memory:"):
            raise ConnectionFault("E600", f"connection '{self.name}' names no file: what is only in memory is gone after the run", f"name one: {kind}:data/shop.db")
        return self.folder / unquote(path)

    def _server(self, kind: str, text: str) -> Address:
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ConnectionFault("E600", f"the url of connection '{self.name}' cannot be read", f"write {kind}://user@host:port/database") from None
        if _cut_short(parts):
            message = f"the url of connection '{self.name}' has a '/', '?' or '#' in its user or password"
            raise ConnectionFault("E600", message, "write %2F, %3F or %23 for it, or name the password by password: env:NAME")
        info = parts.netloc.rpartition("@")[0]
        user, colon, inside = info.partition(":")
        password = self._password() or (Secret(unquote(inside)) if colon else None)
        host = parts.hostname or ""
        return Address(kind, None, host, port, unquote(parts.path.lstrip("/")), unquote(user), password, tuple(parse_qsl(parts.query, keep_blank_values=True)))


def _cut_short(parts: SplitResult) -> bool:
    """Whether a character of a password was read as the end of the host, so that the rest of it counts as a name of a database."""
    if parts.fragment:
        return True
    if "@" in parts.netloc:
        return False
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return "@" in "".join([parts.path, *names]) or (not parts.path.strip("/") and "@" in parts.query)
