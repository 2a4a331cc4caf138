"""The workspace of a pipeline: the nearest folder at or above it with `errata.toml` or `clinker.toml`, and its settings.

Unknown tables are ignored. Unknown keys in known tables are errors.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, ValidationInfo, field_validator

from errata.core.diagnostics import Diagnostic, PipelineErrors, raise_errors
from errata.core.files import filesystem
from errata.project.validation import model_problems
from errata.yaml import SourceText
from errata.yaml.document import Document
from errata.yaml.nodes import Key, Node, Scalar
from errata.yaml.nodes import Mapping as MapNode
from operators.core.config import microseconds
from storage.files.discovery import PathRefused, path_matcher
from storage.secrets import Secret
from storage.sql.connections import Connection
from storage.stores.connections import SECRET_KEYS, STORE_KEYS, StoreConnection, Stores, takes
from storage.uris import is_object

FILES = ("errata.toml", "clinker.toml")

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)B?", re.IGNORECASE)
_SIGN = re.compile(r"\s*=\s*")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def _decimal_size(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"'{value}' is not a size such as 500MB or 50GB")
    return int(float(match[1]) * 1000 ** _POWERS[match[2].upper()])


Size = Annotated[int, BeforeValidator(_decimal_size), Field(ge=0)]
"""Bytes, or a decimal size such as "10GB"."""


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Spill(_Strict):
    """`[storage.spill]`: the folder for data that exceeds memory. The cap and compression are hints."""

    dir: str | None = Field(default=None, description="The folder for data that exceeds memory; by default the system's folder for temporary files (E330, E331).")
    disk_cap_bytes: Size | None = Field(default=None, description="The most bytes that are spilled, as a number or a decimal size such as 50GB; Sail keeps to it, Spark does not (E320).", examples=[10_000_000_000])
    compress: Literal["auto", "on", "off"] = Field(default="auto", description="A hint for the compression of spilled data.")


class Staging(_Strict):
    """`[storage.staging]`: local copies of inputs on slow shares."""

    enabled: bool = Field(default=False, description="Whether input files that match a pattern are copied to a local folder before they are read.")
    dir: str | None = Field(default=None, description="The folder of the copies; not on a network share, and another volume than the sources (E332, E333, E334).")
    disk_cap_bytes: Size | None = Field(default=None, description="The most bytes of copies, as a number or a decimal size such as 10GB (E336).", examples=[10_000_000_000])
    verify: Literal["blake3", "none"] = Field(default="blake3", description="Whether each copy is compared with its source by a BLAKE3 hash (E335).")
    on_existing: Literal["overwrite", "reuse", "error"] = Field(
        default="overwrite", description="What happens to a copy of an earlier run: overwrite makes it anew, reuse takes it if it is fresh, error ends the run (E337)."
    )
    cleanup: Literal["on_success", "always", "never"] = Field(default="on_success", description="When the copies are removed after a run.")
    patterns: list[str] = Field(default_factory=list, description="Patterns of absolute paths of the files to copy, such as /mnt/nfs/data/**.")


class Storage(_Strict):
    """`[storage]`."""

    spill: Spill = Field(default=Spill(), description="Where data goes that exceeds memory.")
    staging: Staging = Field(default=Staging(), description="Local copies of inputs on slow shares.")


class State(_Strict):
    """`[state]`: the place of the state instead of `.errata`. A folder relative to the workspace, or a URI."""

    path: str | None = Field(default=None, description="The place of the state in place of .errata: a folder relative to the workspace, or a URI of an object store.")


class Changelog(_Strict):
    """`[changelog]`: which changelogs are stored where a pipeline has no such block."""

    persist: Literal["all", "boundaries"] | None = Field(default=None, description="Which changelogs are kept by pipelines that do not say so themselves: all, or boundaries.")


class Engine(_Strict):
    """`[engine]`: the engine and the cluster, where neither an option nor an environment variable names them.

    Args:
        shared_host: Whether other users of this machine may use the engine, where the system cannot prevent it.
    """

    name: Literal["auto", "spark", "sail"] = Field(default="auto", description="The engine; auto takes Sail for small work, Spark for large work, and none where nothing is to do.")
    master: str | None = Field(default=None, description="The master URL of the cluster on which Spark runs.")
    remote: str | None = Field(default=None, description="The address of a Spark Connect server, such as sc://host:15002; it excludes master.", examples=["sc://spark.example:15002"])
    shared_host: bool = Field(default=False, description="Whether other users of this machine may use the engine, where the system cannot prevent it.")

    @field_validator("remote")
    @classmethod
    def _one_cluster(cls, remote: str | None, info: ValidationInfo) -> str | None:
        if remote and info.data.get("master"):
            raise ValueError("master and remote exclude each other")
        return remote


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return microseconds(value) / 1e6


class ConnectionTable(_Strict):
    """`[connections.NAME]`: a database that sources and outputs name, or an object store that their URIs lie in.

    Args:
        url: Its address, such as `postgresql://app@db.example/shop`, `sqlite:data/shop.db` or `s3://bucket`; or `env:NAME`.
        password: `env:NAME`, or `file:PATH` for the text of a file.
        read_only: Whether outputs may not name it.
        connect_timeout: How long one try to connect takes at most, such as `10s`; how long outputs wait for what others have locked.
        statement_timeout: How long one statement takes at most, such as `10m`; by default as long as it needs.
    """

    url: SecretStr = Field(min_length=1, description="The address, such as postgresql://app@db.example/shop, sqlite:data/shop.db or s3://bucket, or env:NAME (E601, W600).")
    password: SecretStr | None = Field(default=None, description="The password: env:NAME, or file:PATH for the text of a file (CFG-004, E602).")
    read_only: bool = Field(default=False, description="Whether outputs are refused to name the connection (E607).")
    connect_timeout: Annotated[float | None, BeforeValidator(_seconds, json_schema_input_type=str | float), Field(gt=0)] = Field(
        default=None, description="How long one try to connect takes at most: seconds, or a duration such as 10s. Outputs wait as long for what others have locked.", examples=["10s"]
    )
    statement_timeout: Annotated[float | None, BeforeValidator(_seconds, json_schema_input_type=str | float), Field(gt=0)] = Field(
        default=None, description="How long one statement takes at most: seconds, or a duration such as 10m; by default as long as it needs.", examples=["5m"]
    )
    endpoint: str | None = Field(default=None, min_length=1, description="The address of an object store that is not its maker's own, such as https://minio.example:9000.", examples=["https://s3.example"])
    region: str | None = Field(default=None, min_length=1, description="The region of an S3 bucket.")
    allow_http: bool = Field(default=False, description="Whether an object store may be reached without encryption.")
    access_key_id: str | None = Field(default=None, min_length=1, description="The name of the key of an S3 bucket, or env:NAME, or file:PATH.")
    secret_access_key: SecretStr | None = Field(default=None, description="The secret of the key of an S3 bucket: env:NAME, or file:PATH (CFG-004, E602).")
    session_token: SecretStr | None = Field(default=None, description="The token of a session of an S3 bucket: env:NAME, or file:PATH (CFG-004, E602).", examples=["env:AWS_SESSION_TOKEN"])
    account_name: str | None = Field(default=None, min_length=1, description="The account of an Azure container, or env:NAME, or file:PATH.", examples=["shopfiles"])
    account_key: SecretStr | None = Field(default=None, description="The key of the account of an Azure container: env:NAME, or file:PATH (CFG-004, E602).", examples=["env:AZURE_KEY"])
    service_account: SecretStr | None = Field(default=None, description="The JSON document of a Google service account: env:NAME, or file:PATH (CFG-004, E602).", examples=["env:GOOGLE_KEY"])
    skip_signature: bool = Field(default=False, description="Whether an object store is asked without credentials, as a public bucket allows.")

    @property
    def stores(self) -> Mapping[str, Any]:
        """The settings that only object stores have, as they are written."""
        return {key: value for key in STORE_KEYS if (value := getattr(self, key))}


class Settings(BaseModel):
    """The tables that Errata reads."""

    model_config = ConfigDict(defer_build=True, extra="ignore", frozen=True)

    storage: Storage = Field(default=Storage(), description="Folders for spilled data and for local copies.", examples=[{"staging": {"disk_cap_bytes": 10_000_000_000}}])
    state: State = Field(default=State(), description="The place of the state.")
    changelog: Changelog = Field(default=Changelog(), description="Which changelogs are kept.")
    engine: Engine = Field(default=Engine(), description="The engine, where neither an option nor an environment variable names one.")
    connections: dict[str, ConnectionTable] = Field(default_factory=dict, description="Databases by name, which sources and outputs refer to, and object stores, in which their URIs lie (E600, E640).")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace: its folder, its file if there is one, the settings, and warnings about them."""

    folder: Path
    file: Path | None = None
    settings: Settings = field(default_factory=Settings)
    warnings: tuple[Diagnostic, ...] = ()

    def stores(self, environment: Mapping[str, str]) -> Stores:
        """The object stores. Nothing of them is looked up before it is used, but an address that the environment has."""
        return Stores(tuple(_store(name, one, self.folder, environment) for name, one in self.settings.connections.items() if _is_store(one, environment)))

    def connections(self, environment: Mapping[str, str]) -> dict[str, Connection]:
        """The databases by name. Nothing of them is looked up before it is used, but an address that the environment has."""
        return {
            name: Connection(
                name, Secret(one.url.get_secret_value()), one.password.get_secret_value() if one.password else None, one.read_only, one.connect_timeout, one.statement_timeout, self.folder, environment,
            )
            for name, one in self.settings.connections.items()
            if not _is_store(one, environment)
        }  # fmt: skip


def _is_store(one: ConnectionTable, environment: Mapping[str, str]) -> bool:
    """Whether a connection is an object store: by its address, else by its settings."""
    text = one.url.get_secret_value()
    address = environment.get(text.removeprefix("env:"), "") if text.startswith("env:") else text
    return is_object(address) or (not address and bool(one.stores))


def _store(name: str, one: ConnectionTable, folder: Path, environment: Mapping[str, str]) -> StoreConnection:
    texts = {key: value.get_secret_value() if isinstance(value, SecretStr) else value for key, value in one.stores.items() if not isinstance(value, bool)}
    return StoreConnection(
        name, one.url.get_secret_value(), tuple(texts.items()), one.allow_http, one.skip_signature, one.read_only, one.connect_timeout, folder, environment,
    )  # fmt: skip


def find_workspace(pipeline: Path) -> Workspace:
    """Return the workspace of a pipeline file; the pipeline's own folder where no workspace file exists. Raises PipelineErrors."""
    folder = pipeline.resolve().parent
    for place in (folder, *folder.parents):
        for name in FILES:
            if (place / name).is_file():
                return read_workspace(place / name)
    return Workspace(folder)


def read_workspace(file: Path) -> Workspace:
    """Read a workspace file. Raises PipelineErrors: no TOML, unknown keys, unsuitable spill and staging folders (E330 to E334)."""
    document = _document(file)
    try:
        settings = Settings.model_validate(document.value)
    except ValidationError as error:
        problems = model_problems(error, document, (), Settings)
        if any(one["loc"][:1] == ("connections",) for one in error.errors(include_input=False)):  # a line may have a secret
            problems = tuple(replace(one, lines=None) for one in problems)
        raise PipelineErrors(problems) from None
    raise_errors([*_unfit(settings.storage, document, file.parent), *_plain_passwords(settings, document)])
    found = Workspace(file.parent, file, settings)
    return replace(found, warnings=tuple(_passwords(found, document)))


def _passwords(workspace: Workspace, document: Document) -> Iterator[Diagnostic]:
    """W600 for each address with a password."""
    for name, one in workspace.connections({}).items():
        if one.has_password_in_url:
            help_text = f'write password = "env:{name.upper()}_PASSWORD", or "file:/run/secrets/{name}"'
            found = document.warning(("connections", name, "url"), "W600", f"the url of connection '{name}' has a password in it", help=help_text)
            yield replace(found, lines=None)  # the line has the password


def _plain_passwords(settings: Settings, document: Document) -> Iterator[Diagnostic]:
    """CFG-004 for each secret that is written out, and for settings that the kind of a connection does not have."""
    for name, one in settings.connections.items():
        for key in ("password", *SECRET_KEYS):
            value: SecretStr | None = getattr(one, key)
            if value is not None and not value.get_secret_value().startswith(("env:", "file:")):
                message = f"'{key}' of connection '{name}' must be env:NAME or file:PATH; a secret is named, never written"
                yield replace(document.error(("connections", name, key), "CFG-004", message), lines=None)
        for key in _misplaced(one):
            yield replace(document.error(("connections", name, key), "CFG-004", f"connection '{name}' has no '{key}': its kind does not take one"), lines=None)


def _misplaced(one: ConnectionTable) -> Iterator[str]:
    """The settings that the kind of a connection does not have, as far as its address is known."""
    address = one.url.get_secret_value()
    if address.startswith("env:"):
        return
    if not is_object(address):
        yield from one.stores
        return
    yield from (key for key in ("password", "statement_timeout") if getattr(one, key) is not None)
    yield from (key for key in one.stores if not takes(address, key))


def _document(file: Path) -> Document:
    """The tables of the file with the places of their keys. Raises PipelineErrors."""
    import tomllib

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineErrors([Diagnostic("FILE-001", f"cannot read {file}: {error}", file=str(file))]) from None
    source = SourceText(text, str(file))
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PipelineErrors([_syntax(source, str(error))]) from None
    return Document(source, text, _tree(tables, text, 0))


def _syntax(source: SourceText, message: str) -> Diagnostic:
    place = re.search(r"\(at line (\d+), column (\d+)\)", message)
    line, column = (int(place[1]), int(place[2])) if place else (source.line_count, 1)
    start = source.line_bounds(line)[0] + column - 1
    shown = message.partition(" (at ")[0]
    return Diagnostic.at(source.span(start, start + 1), "TOML-001", f"{shown[:1].lower()}{shown[1:]}", lines=source)


def _tree(value: Any, text: str, start: int) -> Node:
    """The value as a tree. The place of a key is the first after the header of its table where its name occurs."""
    if not isinstance(value, dict):
        sign = _SIGN.match(text, start)
        start = sign.end() if sign else start
        end = text.find("\n", start)
        plain = value if isinstance(value, (list, str, int, float, bool)) else str(value)
        return Scalar(start, end if end >= 0 else len(text), plain, plain, "", "")
    node = MapNode(start, len(text))
    for name, inner in value.items():
        match = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])").search(text, start)
        begin, end = match.span() if match else (start, start)
        node.entries[name] = (Key(name, begin, end), _tree(inner, text, end))
    return node


def _unfit(storage: Storage, document: Document, folder: Path) -> Iterator[Diagnostic]:
    """Report folders that do not exist, or that lie on the wrong kind of file system."""
    spill, staging = (_folder(part.dir, folder) for part in (storage.spill, storage.staging))
    if spill is not None:
        yield from _unfit_spill(spill, document)
    if storage.staging.enabled:
        yield from _unfit_staging(storage.staging, staging, document)
    if spill is not None and spill == staging:
        yield document.error(("storage", "staging", "dir"), "E334", "storage.spill.dir and storage.staging.dir are one folder", help="name another folder for the copies of staging")


def _unfit_staging(given: Staging, folder: Path | None, document: Document) -> Iterator[Diagnostic]:
    path = ("storage", "staging", "dir")
    if folder is None:
        yield document.error(("storage", "staging"), "E332", "staging is enabled, and no folder is named for its copies", key=True, help='name a local folder: dir = "/var/tmp/staged", or set enabled = false')
    elif not folder.is_dir() or not os.access(folder, os.W_OK):
        wrong = "cannot be written" if folder.is_dir() else "is no folder" if folder.exists() else "does not exist"
        yield document.error(path, "FILE-001", f"storage.staging.dir {folder} {wrong}", help="create it or point at an existing local folder")
    elif filesystem(folder) == "network":
        yield document.error(path, "E332", f"storage.staging.dir {folder} is on a network filesystem, which staging is to read once", help="name a folder on a disk of this machine")
    for index, pattern in enumerate(given.patterns):
        try:
            path_matcher([pattern])
        except PathRefused as error:
            yield document.error(("storage", "staging", "patterns", index), "FILE-001", f"storage.staging.patterns: {error}")


def _unfit_spill(folder: Path, document: Document) -> Iterator[Diagnostic]:
    path = ("storage", "spill", "dir")
    if not folder.is_dir():
        wrong = "is no folder" if folder.exists() else "does not exist"
        yield document.error(path, "FILE-001", f"storage.spill.dir {folder} {wrong}; create it or point at an existing volume")
    elif not os.access(folder, os.W_OK):
        yield document.error(path, "FILE-001", f"storage.spill.dir {folder} cannot be written", help="grant the right to write or use another")
    elif filesystem(folder) == "memory":
        yield document.error(
            path, "E330", f"storage.spill.dir {folder} is on an in-memory filesystem", help="spilling there frees no memory"
        )
    elif filesystem(folder) == "network":
        yield document.error(path, "E331", f"storage.spill.dir {folder} is on a network filesystem", help="use a local volume")


def _folder(given: str | None, folder: Path) -> Path | None:
    return (folder / given).resolve() if given else None
