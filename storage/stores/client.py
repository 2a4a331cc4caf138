"""The requests that Errata makes of an object store, each tried again where another try may succeed.

A bucket is asked by `Bucket`: listings, ranges, conditional puts. The library itself tries nothing again, so the number of tries is ours.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from storage import durable
from storage.errors import ConnectionFault, StorageError
from storage.lazy_obstore import obstore
from storage.stores.connections import StoreConnection, reading_for

__all__ = ["PART_BYTES", "Bucket", "Changed", "Facts", "Occupied", "StoreFailed", "Unconditional", "bucket_of"]

PART_BYTES: Final = 8 << 20
"""Bytes of a range that is read at once, and of a part of a large object that is written."""
TRIES: Final = 5
PAUSE = 0.2
"""Seconds before the second try. Each further pause is twice as long."""
TIMEOUT = 60.0
"""Seconds that one request may take."""
CONNECT_TIMEOUT = 10.0
CONTENT: Final = "erratacontent"
"""The name of the metadata with the hash of an object's content. Azure takes no hyphen in it, and some proxies drop headers with an underscore."""
T = TypeVar("T")
Trouble = Literal["missing", "changed", "expired", "again", "other"]
_STATUS = re.compile(r"status code: (\d{3})([A-Za-z -]*)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_NO_BUCKET: Final = {"NoSuchBucket": "there is no such bucket", "ContainerNotFound": "there is no such container"}
_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "RequestExpired", "InvalidToken")


class StoreFailed(StorageError):
    """A store refused a request or gave no answer (E641). `again`: the same run can succeed unchanged."""

    def __init__(self, place: str, reason: str, *, again: bool = False) -> None:
        self.again = again
        super().__init__(place, f"E641: {reason}")


class Occupied(StoreFailed):
    """Somebody else's object is where there was none. `identity`: that of the object (`Facts.identity`)."""

    def __init__(self, place: str, identity: str) -> None:
        self.identity = identity
        super().__init__(place, "it is there since this run began, and was not written by this pipeline")


class Changed(StorageError):
    """An object is not in the version that was asked for, or is there where none may be."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "E641: it was changed by somebody else")


class Unconditional(StorageError):
    """A store that writes although a condition does not hold (E642)."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "E642: the store does not honour If-None-Match and If-Match, so two runs could write one state; name another place with --state")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a listing about an object. `tag`: its ETag, in quotation marks; `version`: where the store counts them; `modified`: seconds since 1970, by the store's clock."""

    key: str
    size: int
    tag: str
    modified: float
    version: str = ""

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Facts:
        """The facts in an answer of the library."""
        return cls(meta["path"], meta["size"], _quoted(meta["e_tag"]), meta["last_modified"].timestamp(), meta["version"] or "")

    @property
    def identity(self) -> str:
        """The mark of an object's content: ETag and version."""
        return f"{self.tag} {self.version}".rstrip()


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket as a connection reaches it. `root` is its URI, such as `s3://bucket`. Every method raises StoreFailed."""

    root: str
    connection: StoreConnection

    def list(self, prefix: str) -> Iterator[Facts]:
        """The objects whose keys begin with a prefix, by their names."""

        def pages(client: Any) -> list[Facts]:
            # The library lists whole steps of a path: the last step is looked for in its folder.
            folder = prefix.rpartition("/")[0]
            return [Facts.of(meta) for page in obstore.list(client, prefix=folder or None) for meta in page if meta["path"].startswith(prefix)]

        yield from sorted(self._asked(prefix, pages), key=lambda one: one.key)

    def facts(self, key: str) -> Facts | None:
        """The store's facts of an object; None where there is none."""
        meta = self._found(key, lambda client: obstore.head(client, key))
        return None if meta is None else Facts.of(meta)

    def content(self, key: str) -> tuple[Facts, str] | None:
        """An object with the hash of its content that its writer noted, empty where it noted none; None where there is no object."""
        found = self._found(key, lambda client: obstore.get(client, key, options={"head": True}))
        return None if found is None else (Facts.of(found.meta), str(found.attributes.get(CONTENT, "")))

    def read(self, key: str, start: int, end: int, tag: str) -> bytes:
        """Bytes `start` to `end` of the version with an ETag. Raises Changed where the object has another one."""

        def read(client: Any) -> bytes:
            found = bytes(obstore.get(client, key, options={"range": (start, end), **({"if_match": tag} if tag else {})}).bytes())
            if len(found) != end - start:
                raise obstore.exceptions.GenericError(f"{len(found)} bytes came instead of {end - start}")
            return found

        return self._asked(key, read) if end > start else b""

    def small(self, key: str, most: int | None = None) -> tuple[bytes, Facts] | None:
        """The content of a small object and its facts; None where there is none. Of an object with more than `most` bytes none is read."""

        def read(client: Any) -> tuple[bytes, Facts]:
            found = obstore.get(client, key)
            facts = Facts.of(found.meta)
            return bytes(found.bytes()) if most is None or facts.size <= most else b"", facts

        return self._found(key, read)

    def put(self, key: str, body: bytes, *, absent: bool = False, over: str = "") -> str:
        """Write an object, and return its identity (`Facts.identity`).

        Args:
            key: Its key.
            body: Its content.
            absent: Whether there may be no object.
            over: The identity that the object must have. Google compares the version, others the ETag.

        Raises:
            Changed: The condition does not hold. Where an answer was lost, the object may be the one that was written.
        """
        tag, _, version = over.partition(" ")
        mode: Any = "create" if absent else {"e_tag": tag} | ({"version": version} if version else {}) if over else "overwrite"
        try:
            made = self._asked(key, lambda client: obstore.put(client, key, body, mode=mode, use_multipart=False))
        except FileNotFoundError:
            raise StoreFailed(self._place(key), "there is no such bucket") from None
        return Facts(key, len(body), _quoted(made["e_tag"]), 0.0, made["version"] or "").identity

    def upload(self, key: str, file: Path, content: str, *, absent: bool) -> None:
        """Write a file as an object, in parts where it is large. Raises Changed where there may be no object and is one."""
        size, attributes = file.stat().st_size, {CONTENT: content}
        whole = size < PART_BYTES or absent

        def put(client: Any) -> None:
            if whole:
                obstore.put(client, key, file, attributes=attributes, mode="create" if absent else "overwrite", use_multipart=False)
            else:
                obstore.put(client, key, file, attributes=attributes, use_multipart=True, chunk_size=PART_BYTES)

        durable.step(f"object:{'put' if whole else 'complete'}", lambda: self._asked(key, put))

    def delete(self, key: str) -> None:
        """Remove an object if it is there."""
        self._found(key, lambda client: obstore.delete(client, key))

    def now(self, key: str) -> float:
        """The store's own clock, in seconds since 1970: the time that it gives to an object which is written for this."""
        self.put(key, b"")
        found = self.facts(key)
        if found is None:
            raise StoreFailed(self._place(key), "it was removed while it was written", again=True)
        return found.modified

    def require_conditions(self, key: str) -> None:
        """Raise Unconditional where the store writes although a condition does not hold. `key` is written for this, and removed."""
        made = self._first_put(key, b"1")
        try:
            for condition in ({"absent": True}, {"over": _other(made)}):
                try:
                    self.put(key, b"2", **condition)
                except Changed:
                    continue
                raise Unconditional(self.root)
            self.put(key, b"3", over=made)
        finally:
            self.delete(key)

    def _first_put(self, key: str, body: bytes) -> str:
        """Write an object where there is none, and return its identity, also where the answer to the put that wrote it was lost. Raises Changed where another one is there."""
        try:
            return self.put(key, body, absent=True)
        except Changed:
            found = self.small(key)
            if found is None or found[0] != body:
                raise
            return found[1].identity

    def _place(self, key: str) -> str:
        return f"{self.root}/{key}" if key else self.root

    def _found(self, key: str, action: Callable[[Any], T]) -> T | None:
        """The answer; None where there is no such object."""
        try:
            return self._asked(key, action)
        except FileNotFoundError:
            return None

    def _asked(self, key: str, action: Callable[[Any], T]) -> T:
        """The answer to a request. Raises FileNotFoundError where the object is not there."""
        tries, renewed = 1, False
        while True:
            try:
                return action(self._client(fresh=renewed))
            except (obstore.exceptions.BaseError, OSError) as error:
                trouble, reason = _understood(error)
            if trouble == "expired" and not renewed:
                renewed = True
                continue
            if trouble != "again" or tries == TRIES:
                raise self._failure(key, trouble, f"{reason}, {tries} tries" if trouble == "again" else reason)
            time.sleep(PAUSE * 2 ** (tries - 1))
            tries += 1

    def _failure(self, key: str, trouble: Trouble, reason: str) -> Exception:
        """The error of a request that is not made again."""
        place = self._place(key)
        if trouble == "missing":
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
        return Changed(place) if trouble == "changed" else StoreFailed(place, reason, again=trouble == "again")

    def _client(self, *, fresh: bool) -> Any:
        """The library's client, by the present values of the connection. Raises StoreFailed where one is not there."""
        try:
            config = self.connection.config()
        except ConnectionFault as fault:
            raise StoreFailed(self.root, str(fault)) from None
        if str(config.get("endpoint", "")).startswith("http://") and not self.connection.plain_http:
            message = f"the endpoint {config['endpoint']} of connection '{self.connection.name}' is without encryption, which has to be allowed: allow_http = true"
            raise StoreFailed(self.root, message)
        return _client(self, tuple(sorted(config.items())), fresh=fresh)


def bucket_of(uri: str, connection: StoreConnection) -> tuple[Bucket, str]:
    """The bucket of a URI, and the key in it."""
    scheme, _, rest = uri.partition("://")
    name, _, key = rest.partition("/")
    return Bucket(f"{scheme}://{name}", connection), key


_clients: dict[tuple[Bucket, tuple[tuple[str, Any], ...]], Any] = {}
_lock = threading.Lock()


def _client(bucket: Bucket, config: tuple[tuple[str, Any], ...], *, fresh: bool) -> Any:
    key = (bucket, config)
    with _lock:
        if fresh:
            _clients.pop(key, None)
        if key not in _clients:
            connection = bucket.connection
            options: Any = {"timeout": f"{TIMEOUT:g}s", "connect_timeout": f"{connection.connect_timeout or CONNECT_TIMEOUT:g}s"}
            if connection.plain_http:
                options["allow_http"] = True
            retries: Any = {"max_retries": 0}
            settings: Any = dict(config)
            # Credentials go by a provider: as settings they would be joined with a session's token of the environment.
            given = {key: settings.pop(key, None) for key in ("access_key_id", "secret_access_key", "session_token")}
            provider: Any = _provider(given) if given["access_key_id"] else None
            root = f"s3://{bucket.root.partition('://')[2]}" if bucket.root.startswith("s3a://") else bucket.root
            with reading_for(connection):
                _clients[key] = obstore.store.from_url(root, config=settings, client_options=options, retry_config=retries, **({"credential_provider": provider} if provider else {}))
        return _clients[key]


def _provider(given: Mapping[str, str | None]) -> Callable[[], dict[str, Any]]:
    """The object that the library asks for the credentials of a connection."""
    found = {"access_key_id": given["access_key_id"], "secret_access_key": given["secret_access_key"] or "", "token": given["session_token"], "expires_at": None}
    return lambda: found


def _understood(error: Exception) -> tuple[Trouble, str]:
    """The meaning of an error of the library, in words without addresses, which may have signatures."""
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    said = f"{status[1]}{status[2].rstrip()}{f' ({code[1]})' if code else ''}" if status else "so"
    if any(word in text for word in _EXPIRED):
        return "expired", f"the credentials have expired: the store says {said}"
    if code is not None and code[1] in _NO_BUCKET:
        return "other", _NO_BUCKET[code[1]]
    kinds = obstore.exceptions
    if isinstance(error, FileNotFoundError):
        return "missing", ""
    if isinstance(error, (kinds.AlreadyExistsError, kinds.PreconditionError, kinds.NotModifiedError)):
        return "changed", ""
    if isinstance(error, (kinds.PermissionDeniedError, kinds.UnauthenticatedError)):
        return "other", f"the store refuses these credentials: {said}"
    return _unanswered(text) if status is None else _refused(status[1], said)


def _refused(status: str, said: str) -> tuple[Trouble, str]:
    """The meaning of a status that the library has no exception for."""
    if status in ("401", "403"):
        return "other", f"the store refuses these credentials: {said}"
    return ("again" if status[0] == "5" or status in ("408", "429") else "other"), f"the store says {said}"


def _unanswered(text: str) -> tuple[Trouble, str]:
    """The meaning of a failure without a status."""
    if "credentials" in text or "Missing" in text or "builder error" in text:
        return "other", _plain(text)
    if "timed out" in text or "timeout" in text.lower():
        return "again", "no answer in time"
    return "again", "no whole answer: the connection was refused or lost"


def _plain(text: str) -> str:
    """The first line of a message without addresses."""
    return re.sub(r"https?://\S+", "the store", text.splitlines()[0] if text else "no reason given")


def _quoted(tag: str | None) -> str:
    """An ETag as a header has it. Azure leaves the quotation marks out in listings."""
    return f'"{tag}"' if tag and not tag.endswith('"') else tag or ""


def _other(identity: str) -> str:
    """An identity that no object has."""
    tag, _, version = identity.partition(" ")
    return f'"{"0" * max(len(tag) - 2, 8)}" {"1" if version else ""}'.rstrip()
