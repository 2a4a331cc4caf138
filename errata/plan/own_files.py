"""Where a run may not write: into the state or a Git repository, and over the files that the pipeline is made of or reads (E349)."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from errata.core.diagnostics import Diagnostic
from errata.core.failures import StorageFailed
from errata.plan.plan import Node, Plan
from errata.plan.source_inputs import discovered, reach_of, would_read
from errata.yaml import Document
from operators.output.operator import Output
from storage.files.discovery import Reach, object_matcher, path_matcher
from storage.files.path_tokens import PathTemplate
from storage.state.location import STATE_FOLDER, State
from storage.stores.places import Place
from storage.uris import is_local, is_object

REFUSED_FOLDERS: Mapping[str, str] = {STATE_FOLDER: "the state of pipelines", ".git": "a Git repository"}
HELP = "name another path"
Identity = tuple[int, int]


@dataclass(frozen=True)
class ProtectedFiles:
    """The files and folders of a pipeline that nothing is written to. Files are compared by their identity too, so links and letter case hide nothing.

    `inputs`: whether the files that sources read belong to them. They are looked up once, when something exists at a path that is to be written.
    """

    plan: Plan
    state: State
    inputs: bool = True

    def fault(self, place: str | Place) -> str | None:
        """The fault of writing to a path or URI, as the end of a sentence; None where there is none."""
        if not is_local(str(place)):
            return self._table_fault(str(place).rstrip("/")) or self._object_fault(str(place))
        path = self._here(place)
        return self._folder_fault(Path(os.path.realpath(path))) or self._file_fault(path)

    def _here(self, place: str | Place) -> Path:
        """The path on this machine."""
        return self.plan.settings.folder / str(place).removeprefix("file://")

    def _table_fault(self, uri: str) -> str | None:
        if f"{uri}/".startswith(f"{self.state.root}/"):
            return "lies in the pipeline's state"
        reader = next((node.name for node, table in _tables(self.plan) if table.rstrip("/") == uri), None)
        return None if reader is None else f"is read by source '{reader}'"

    def _object_fault(self, uri: str) -> str | None:
        reader = next((node.name for node, pattern in _objects(self.plan) if pattern(uri)), None)
        return None if reader is None else f"is read by source '{reader}'"

    def feeds(self, place: str | Place) -> str | None:
        """The fault of a file that only this run writes and that a source would read in the next one, as the end of a sentence; None where none would.

        The file is on this machine and need not be there yet. What sources read of a store, `fault` knows.
        """
        if not self.inputs or not is_local(str(place)):
            return None
        file = Path(os.path.realpath(self._here(place)))
        reader = next((node.name for node in self.plan.of_kind("source") if would_read(node, self.plan, file)), None)
        return None if reader is None else f"is read by source '{reader}'"

    def _folder_fault(self, real: Path) -> str | None:
        parts = {part.casefold() for part in real.parts}
        for name, description in REFUSED_FOLDERS.items():
            if name in parts:
                return f"lies in {description}, '{name}'"
        if not self.state.local:
            return None
        state = Path(os.path.realpath(self.state.root.removeprefix("file://")))
        identity = _identity(state)
        below = real.is_relative_to(state) or (identity is not None and identity in map(_identity, (real, *real.parents)))
        return "lies in the pipeline's state" if below else None

    def _file_fault(self, path: Path) -> str | None:
        facts = _facts(path)
        if facts is None:
            return None
        identity = (facts.st_dev, facts.st_ino)
        return self._files.get(identity) or (self._inputs.get(identity) if self.inputs and self._may_be_read(path, facts) else None)

    def _may_be_read(self, path: Path, facts: os.stat_result) -> bool:
        """Whether a source may read what is at a path, under whatever name. To ask all its files for their facts takes longer the more there are."""
        real = Path(os.path.realpath(path))
        return facts.st_nlink > 1 or any(reach.may_have(real) for reach in self._reaches)

    @cached_property
    def _reaches(self) -> Sequence[Reach]:
        """What each source may read."""
        return [reach_of(node, self.plan) for node in self.plan.of_kind("source")]

    @cached_property
    def own(self) -> Sequence[tuple[Path, str]]:
        """The files and tables that the pipeline is made of or reads as a whole, with what to say of each."""
        plan = self.plan
        documents = {Path(node.spec.document.file) for node in plan if node.spec.document is not None}
        layouts = {plan.settings.folder / text for node in plan for text in _layouts(node)}
        named = [
            *((file, "is the pipeline's own file") for file in (*plan.files, *documents)),
            *((file, "is a schema that the pipeline reads") for file in layouts),
            *((Path(file), "is a module that the pipeline uses") for file in plan.settings.modules.files),
            *((plan.settings.folder / one.file, "is a file of corrections") for entries in plan.settings.corrections.values() for one in entries),
            *((plan.settings.folder / table.removeprefix("file://"), f"is read by source '{node.name}'") for node, table in _tables(plan) if is_local(table)),
        ]
        if plan.workspace is not None and plan.workspace.file is not None:
            named.append((plan.workspace.file, "is the workspace's own file"))
        return named

    @cached_property
    def _files(self) -> dict[Identity, str]:
        return {identity: description for file, description in reversed(self.own) if (identity := _identity(file)) is not None}

    @cached_property
    def _inputs(self) -> dict[Identity, str]:
        """The files that sources read, with what to say of each."""
        return dict(_read(self.plan))


def check_targets(own: ProtectedFiles, document: Document) -> Iterator[Diagnostic]:
    """E349 for each path that the pipeline may not write to, as far as the path is known before a run."""
    plan = own.plan
    for node in plan.of_kind("output"):
        for keys, path in _outputs(node):
            if (fault := own.fault(known_part(path))) is not None:
                place = (*node.spec.path, "config", *keys)
                yield node.spec.document.error(place, "E349", f"'{path}' {fault}", help=HELP, node=node.name)
    for place, named in _others(plan):
        if named is not None and (wrong := own.fault(named)) is not None:
            yield document.error(place, "E349", f"'{named}' {wrong}", help=HELP)


def known_part(path: str) -> str:
    """The part of a path that is the same in every run: all of it, or the folder ahead of its first token."""
    template = PathTemplate.parse(path)
    steady = template.parts[0] if template.parts and isinstance(template.parts[0], str) else ""
    return steady if len(template.parts) == 1 else posixpath.dirname(steady)


def _outputs(node: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths that an output writes, each with the key that names it."""
    config = cast("Output", node.operator).config
    if not cast("Output", node.operator).in_database:
        yield ("path",), config.path
    if config.write_meta:
        yield ("path",), f"{config.path}.meta.json"
    if config.changelog is not None:
        yield ("changelog", "path"), config.changelog.path


def _others(plan: Plan) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """The paths that the pipeline itself writes beside its outputs, each with the key that names it."""
    metrics = plan.model.pipeline.metrics
    yield ("error_handling", "dlq", "path"), plan.model.error_handling.dlq.path
    yield ("pipeline", "metrics", "spool_dir"), metrics.spool_dir
    yield ("pipeline", "metrics", "prometheus"), metrics.prometheus
    yield ("pipeline", "metrics", "openlineage", "path"), metrics.openlineage.path if metrics.openlineage else None


def _layouts(node: Node) -> Iterator[str]:
    """The files that a source or output names as its schema."""
    for name in ("schema_", "format_schema"):
        if isinstance(value := getattr(node.spec.config, name, None), str):
            yield value


def _read(plan: Plan) -> Iterator[tuple[Identity, str]]:
    for node in plan.of_kind("source"):
        try:
            found = discovered(node, plan)
        except StorageFailed:  # what is wrong with a source is said when it is read
            continue
        for file in found:
            identity = file.identity or (_identity(file.path) if isinstance(file.path, Path) else None)
            if identity is not None:
                yield identity, f"is read by source '{node.name}'"


def _tables(plan: Plan) -> Iterator[tuple[Node, str]]:
    """The sources that read a table, with its path or URI."""
    for node in plan.of_kind("source"):
        if getattr(node.operator, "versioned", False) and node.spec.config.path is not None:
            yield node, node.spec.config.path


@dataclass(frozen=True, slots=True)
class _Reads:
    """Whether a source reads the object with a URI: `pattern` is the URI, or a glob (`any_of`)."""

    pattern: str
    excluded: Callable[[str], bool]
    any_of: bool

    def __call__(self, uri: str) -> bool:
        return bool(object_matcher(self.pattern)(uri) if self.any_of else uri == self.pattern) and not self.excluded(uri)


def _objects(plan: Plan) -> Iterator[tuple[Node, _Reads]]:
    """The sources that read objects, with what matches their URIs."""
    for node in plan.of_kind("source"):
        config = node.spec.config
        excluded = path_matcher(getattr(config, "exclude", ()))
        for pattern in filter(is_object, (config.path or "", config.glob or "", *(config.paths or ()))):
            yield node, _Reads(pattern, excluded, any_of=pattern == config.glob)


def _identity(path: Path) -> Identity | None:
    """The device and number of what is at a path, a link followed; None where nothing is."""
    facts = _facts(path)
    return None if facts is None else (facts.st_dev, facts.st_ino)


def _facts(path: Path) -> os.stat_result | None:
    """What the system knows of what is at a path, a link followed; None where nothing is."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
