"""Values that the planner hands to a node: its place in the pipeline, its configuration, the pipeline's settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal

from cxl.typed.modules import NO_MODULES, Modules
from cxl.types.types import MOST_DIGITS, Type
from storage.errors import ConnectionFault
from storage.sql.connections import Connection
from storage.stores.connections import Stores
from storage.stores.places import NO_STORES, Places
from storage.uris import is_object


@dataclass(frozen=True, slots=True)
class InputRef:
    """An upstream port: `node` or `node.port`; `qualifier` is the input's name in a combine or a composition."""

    node: str
    port: str | None = None
    qualifier: str | None = None

    @classmethod
    def parse(cls, text: str, qualifier: str | None = None) -> "InputRef":
        """Read `node` or `node.port`."""
        node, _, port = text.partition(".")
        return cls(node, port or None, qualifier)

    def __str__(self) -> str:
        return f"{self.node}.{self.port}" if self.port else self.node


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node as it was written.

    Attributes:
        path: Its place in the YAML.
        document: The file that contains it; compositions have their own.
        partial: Configuration keys with reported problems, left out of `config`.
        expect: The expectations of its rows.
    """

    name: str
    kind: str
    config: Any
    inputs: tuple[InputRef, ...]
    path: tuple[str | int, ...] = ()
    document: Any = field(default=None, compare=False, repr=False)
    partial: frozenset[str] = frozenset()
    expect: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable: scope `vars`, `pipeline`, `source` or `record`; its type; default as a Python value (None: null). `precision`: of a Decimal."""

    scope: str
    name: str
    type: Type
    default: Any = None
    source: str | None = None
    precision: int = MOST_DIGITS


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows that a program hands to a source, in place of what the source reads.

    Attributes:
        file: A Parquet file with the rows.
        name: The value of `$source.file`, which tells deliveries apart.
        digest: The digest of the rows, in place of one of the file's bytes, which depend on the library that wrote them.
    """

    file: Path
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """Settings of the `pipeline:` block and of the command line that nodes read.

    Attributes:
        folder: Folder of the pipeline file, where relative paths start.
        variables: Declared variables by scope and name.
        source_defaults: Defaults of `$source` variables that a channel sets for one source, by source and name.
        fetched: Folder of the fetched records of services and answers of databases.
        connections: Databases by the names that `errata.toml` gives them.
        corrections: What the files of each corrections node say.
        stores: The object stores of `errata.toml`.
        given: Rows that a program hands to sources, by source.
    """

    name: str
    folder: Path
    variables: Mapping[tuple[str, str], Variable] = field(default_factory=dict)
    source_defaults: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    date_formats: tuple[str, ...] = ()
    rules_path: Path | None = None
    allow_absolute_paths: bool = False
    channel: str | None = None
    fail_fast: bool = True
    modules: Modules = NO_MODULES
    fetched: Path | None = None
    connections: Mapping[str, Connection] = field(default_factory=dict)
    corrections: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    stores: Stores = NO_STORES
    given: Mapping[str, GivenRows] = field(default_factory=dict)

    @property
    def places(self) -> Places:
        """Where paths and URIs of the pipeline lead."""
        return Places(self.folder, self.stores)


def check_path(
    text: str, place: tuple[str | int, ...], report: Callable[..., Any], settings: PipelineSettings, *, pattern: bool = False, stored: Literal["read", "written"] | None = None
) -> bool:
    """Report a path that a pipeline file may not contain.

    Args:
        text: The path.
        place: Where it stands.
        report: Takes code, message, place and help.
        settings: The pipeline's settings.
        pattern: Whether it is a regular expression, whose links cannot be checked.
        stored: What may be done with an object in a store that the path names; None where it has to be a file of this machine.
    """
    if is_object(text):
        fault = _object_fault(text, settings, stored)
    else:
        fault = _plain_fault(text, settings) or (None if pattern else _way_out(text, settings))
    if fault is not None:
        code, message, help_text = fault
        report(code, message, place, help_text)
    return fault is None


_STEPS_OF_AN_OBJECT = 3
"""Slashes that the URI of an object has at least."""


def _object_fault(text: str, settings: PipelineSettings, stored: str | None) -> tuple[str, str, str | None] | None:
    if stored is None:
        return "E230", f"'{text}' is in an object store, and this file has to be on this machine", "write a path relative to the pipeline file"
    if ".." in text.split("/"):
        return "E232", f"'{text}' leads out of its prefix", "paths with a '..' step are refused"
    if text.endswith("/") or text.count("/") < _STEPS_OF_AN_OBJECT:
        return "E230", f"'{text}' names no object", "write the bucket and a key, such as s3://bucket/in/orders.csv"
    try:
        connection = settings.stores.require(text)
        connection.config()
        connection.require_library()
    except ConnectionFault as fault:
        return fault.code, fault.message, fault.help
    if stored == "written" and connection.read_only:
        return "E607", f"'{text}' cannot be written: errata.toml says that connection '{connection.name}' is read only", None
    return None


def _plain_fault(text: str, settings: PipelineSettings) -> tuple[str, str, str | None] | None:
    if not text or "\x00" in text:
        return "E230", "a path may not be empty", None
    if text.startswith("~"):
        return "E230", f"'{text}': ~ is not expanded", "write the path relative to the pipeline file"
    if _absolute(text) and not settings.allow_absolute_paths:
        return "E231", f"'{text}' is an absolute path", "write it relative to the pipeline file, or run with --allow-absolute-paths"
    return None


def _way_out(text: str, settings: PipelineSettings) -> tuple[str, str, str | None] | None:
    if ".." in PurePosixPath(text.replace("\\", "/")).parts:
        return "E232", f"'{text}' leads out of the pipeline's folder", "paths with a '..' step are refused"
    if not settings.allow_absolute_paths and leads_out(settings.folder, text):
        return "E232", f"'{text}' leads out of the pipeline's folder by a link", "write what the link leads to with --allow-absolute-paths"
    return None


def leads_out(folder: Path, text: str) -> bool:
    """Whether some step of a path below a folder is a link to somewhere else."""
    return not (folder / text).resolve().is_relative_to(folder.resolve())


def _absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("^/")
