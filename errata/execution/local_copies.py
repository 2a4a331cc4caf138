"""Sources that are read from local copies: which files, the checks as a run begins, and the removal of the copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from errata.core.diagnostics import Diagnostic, PipelineErrors
from errata.core.failures import StorageFailed
from errata.plan.plan import Node, Plan
from errata.plan.source_inputs import discovered
from errata.state.source_files import SourceFiles
from operators.source.node import SourceNode
from storage.files.discovery import FileStat, path_matcher
from storage.files.staging import Staging, StagingError, StagingSettings, purge
from storage.files.stores import store_of
from storage.stores.places import Place


def staging_settings(plan: Plan) -> StagingSettings | None:
    """The workspace's settings of staging; None where it is off."""
    given = plan.workspace.settings.storage.staging if plan.workspace else None
    if plan.workspace is None or given is None or not given.enabled or given.dir is None:
        return None
    folder = (plan.workspace.folder / given.dir).resolve()
    return StagingSettings(folder, given.disk_cap_bytes, given.verify == "blake3", given.on_existing, given.cleanup, path_matcher(given.patterns))


@dataclass(slots=True)
class Copies:
    """The local copies of a run; `clean` once it ended without rejects."""

    staging: Staging | None
    clean: bool = False

    def local(self, path: Place) -> Place:
        """Where a file of a source is to be read. Raises StorageFailed."""
        if self.staging is None or not self.staging.settings.selects(path):
            return path
        try:
            return self.staging.local(path)
        except StagingError as error:
            raise StorageFailed(str(error)) from error


@contextmanager
def copies_of(plan: Plan, sources: Mapping[str, SourceFiles]) -> Iterator[Copies]:
    """The copies of what a run has to read, made before anything is read. Raises StorageFailed, PipelineErrors (E333)."""
    settings = staging_settings(plan)
    if settings is None:
        yield Copies(None)
        return
    purge(settings.folder)
    found = {name: _files(plan[name], plan) for name in sources}
    _refuse_one_volume(plan, settings, (file.path for files in found.values() for file in files.values()))
    copies = Copies(Staging(settings))
    try:
        for name, one in sources.items():
            changes = one.changes
            for record in (*changes.added, *changes.changed, *(part.record for part in changes.grown)):
                if record.path in found[name]:
                    copies.local(found[name][record.path].path)
        yield copies
    finally:
        assert copies.staging is not None  # just made
        copies.staging.release(clean=copies.clean)


def _files(node: Node, plan: Plan) -> dict[str, FileStat]:
    """A source's files by name; nothing of a service, whose records are local already."""
    from typing import cast

    if cast("SourceNode", node.operator).has_own_file:
        return {}
    return {file.name: file for file in discovered(node, plan)}


def _refuse_one_volume(plan: Plan, settings: StagingSettings, paths: Iterable[Place]) -> None:
    volume = settings.folder.stat().st_dev
    for path in paths:
        if settings.selects(path) and store_of(path).volume(path) == volume:
            message = f"storage.staging.dir {settings.folder} is on the volume of {path}: copying it would move no reading off that volume"
            file = plan.workspace.file if plan.workspace else None
            raise PipelineErrors([Diagnostic("E333", message, file=str(file or ""), help="point storage.staging.dir at a disk of its own")])


def staging_plan(plan: Plan) -> list[dict[str, object]]:
    """For `explain`: per source and file whether it would be staged, where, and whether a copy would be reused."""
    settings = staging_settings(plan)
    return [{"source": node.name, **_source_plan(node, plan, settings)} for node in plan.of_kind("source")] if settings else []


def _source_plan(node: Node, plan: Plan, settings: StagingSettings) -> dict[str, object]:
    from typing import cast

    if cast("SourceNode", node.operator).has_own_file:
        return {"stagable": False, "files": []}
    try:
        files = _files(node, plan).values()
    except (StorageFailed, OSError):
        return {"stagable": True, "files": []}
    return {"stagable": True, "files": [_file_plan(file.path, settings) for file in files]}


def _file_plan(path: Place, settings: StagingSettings) -> dict[str, object]:
    if not settings.selects(path):
        return {"path": str(path), "staged": False}
    entry: dict[str, object] = {"path": str(path), "staged": True, "staged_path": str(settings.names(path).copy)}
    return entry | {"reuse": "hit" if settings.is_fresh(path) else "miss"} if settings.on_existing == "reuse" else entry


def staging_lines(plan: Plan) -> Iterator[str]:
    """The section of the text form."""
    yield "=== Staging Plan ==="
    if staging_settings(plan) is None:
        yield "staging is disabled: every source reads in place"
        return
    for one in staging_plan(plan):
        yield f"Source '{one['source']}':"
        yield from (f"  {line}" for line in _source_lines(one))


def _source_lines(one: Mapping[str, object]) -> Iterator[str]:
    files = one["files"]
    assert isinstance(files, list)  # staging_plan makes it
    if not one["stagable"]:
        yield "not stagable (network source reads in place)"
    for file in files:
        if file["staged"]:
            reuse = f", reuse: {file['reuse']}" if "reuse" in file else ""
            yield f"{file['path']} → staged: yes, path: {file['staged_path']}{reuse}"
        else:
            yield f"{file['path']} → staged: no (no pattern match, reads in place)"
