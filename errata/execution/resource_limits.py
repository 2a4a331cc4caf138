"""Limits of memory and spilling: estimates for `explain`, warnings before a run, and the failures E310, E320 and E321."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

from errata.core.failures import StorageFailed
from errata.execution.local_copies import staging_lines, staging_plan
from errata.plan.plan import Node, Plan
from errata.plan.source_inputs import discovered
from errata.project.workspace import Storage
from operators.source.node import SourceNode
from storage.errors import StorageError, engine_failures, exhausted
from storage.files.errors import OutputError

_EXCEEDED = {
    "memory": (
        "E310: the engine needs more memory than it was given",
        "raise memory.limit or --memory-limit, run on Spark (--engine spark), or reduce what the node holds at a time",
    ),
    "spill cap": (
        "E320: more would be spilled than storage.spill.disk_cap_bytes allows",
        "raise storage.spill.disk_cap_bytes, or reduce what is spilled: more memory, a partitioned input",
    ),
    "spill volume": (
        "E321: the disk that the engine spills to is full",
        "free space there, or point storage.spill.dir of errata.toml at a larger volume",
    ),
}


@contextmanager
def within_limits(node: str) -> Iterator[None]:
    """Work of a node. Raises StorageFailed where the engine ran out of memory, or of room to spill to; what else goes wrong passes."""
    try:
        yield
    except _failures() as problem:
        _tell(node, problem)
        raise


def _failures() -> tuple[type[Exception], ...]:
    return (StorageError, *engine_failures())


def _tell(node: str, problem: Exception) -> None:
    """Raise StorageFailed for a problem that names a limit, or a value that an output cannot hold."""
    text = OutputError.found_in(str(problem))
    if text is not None:
        raise StorageFailed(f"output '{node}': {text}") from problem
    limit = exhausted(str(problem))
    if limit is not None:
        what, help_line = _EXCEEDED[limit]
        raise StorageFailed(f"node '{node}': {what}", help=help_line) from problem


WARNED_SHARE = 0.8
"""The share of the cap from which an estimate is warned of."""
_FREE_OF_STATE = ("source", "linear")


def spill_folder(plan: Plan) -> Path | None:
    """Where the engine shall put what does not fit memory; None: where it wants."""
    workspace = plan.workspace
    given = workspace.settings.storage.spill.dir if workspace else None
    return (workspace.folder / given).resolve() if workspace and given else None


@dataclass(frozen=True)
class Estimates:
    """Bytes that each stateful node may have to hold, from the sizes of the files that reach it; None where they are not known."""

    plan: Plan

    @cached_property
    def stages(self) -> Mapping[str, int | None]:
        """By node, in the plan's order."""
        nodes = [node for node in self.plan if node.operator.explain_class not in _FREE_OF_STATE]
        return {node.name: self._of(node) for node in nodes}

    @cached_property
    def known(self) -> int:
        """The known ones together: all may be held at once."""
        return sum(size for size in self.stages.values() if size)

    def _of(self, node: Node) -> int | None:
        sizes = [self._sizes[name] for name in self.plan.sources_of(node.name)]
        return None if None in sizes else sum(cast("list[int]", sizes)) or None

    @cached_property
    def _sizes(self) -> dict[str, int | None]:
        return {node.name: _size(node, self.plan) for node in self.plan.of_kind("source")}


def _size(node: Node, plan: Plan) -> int | None:
    if cast("SourceNode", node.operator).has_own_file:
        return None
    try:
        return sum(file.size for file in discovered(node, plan))
    except (StorageFailed, OSError):
        return None


def storage_summary(plan: Plan) -> dict[str, Any]:
    """The member of that name of `explain --format json`."""
    storage, estimates = _storage(plan), Estimates(plan)
    spill, cap = spill_folder(plan), storage.spill.disk_cap_bytes
    per_stage = [{"node_name": name, "display_name": _shown(plan[name]), "estimate_bytes": size} for name, size in estimates.stages.items()]
    compression = [{"node_name": name, "display_name": _shown(plan[name]), "compression": "engine"} for name in estimates.stages]
    summary: dict[str, Any] = {
        "spill_root": {"path": str(spill or gettempdir()), "source": "storage.spill.dir" if spill else "OS temp dir (default)"},
        "spill_disk_cap_bytes": cap,
        "estimated_spill": {
            "per_stage": per_stage, "total_known_bytes": estimates.known, "any_unknown": None in estimates.stages.values(),
        },
        "spill_compression": {"mode": storage.spill.compress, "per_operator": compression},
        "staging": {"enabled": storage.staging.enabled, "sources": staging_plan(plan)},
    }  # fmt: skip
    if cap and estimates.known:
        summary["cap_headroom"] = _headroom(cap, estimates.known)
    return summary


def _headroom(cap: int, known: int) -> dict[str, Any]:
    return {
        "headroom_bytes": cap - known, "estimated_bytes": known, "cap_bytes": cap, "pct_of_cap": 100 * known / cap,
        "over_threshold": known >= WARNED_SHARE * cap,
    }  # fmt: skip


def storage_lines(plan: Plan) -> Iterator[str]:
    """The sections of the text form."""
    storage, estimates = _storage(plan), Estimates(plan)
    spill, cap = spill_folder(plan), storage.spill.disk_cap_bytes
    yield f"Spill root: {spill} [storage.spill.dir]" if spill else f"Spill root: {gettempdir()} [OS temp dir (default)]"
    yield "Spill disk cap: unlimited (default)" if cap is None else f"Spill disk cap: {cap} bytes [storage.spill.disk_cap_bytes]"
    if cap is not None:
        yield "  a hint, which the engine does not take"
    yield f"Spill compression: {storage.spill.compress.capitalize()} [storage.spill.compress]"
    if storage.spill.compress != "auto":
        yield "  accepted, without effect: the engine compresses by itself"
    if estimates.stages:
        yield from _volume(plan, estimates)
    if cap and estimates.known:
        yield from _headroom_lines(_headroom(cap, estimates.known))
    yield from staging_lines(plan)


def _volume(plan: Plan, estimates: Estimates) -> Iterator[str]:
    yield "=== Estimated Spill Volume ==="
    yield "Estimated spill volume (per blocking stage):"
    for name, size in estimates.stages.items():
        yield f"  {_shown(plan[name])} → {_binary(size)}"
    if None in estimates.stages.values():
        yield f"Total (known stages): {_binary(estimates.known)} (excludes stages whose volume is unknown at plan time)"
    else:
        yield f"Total: {_binary(estimates.known)}"


def _headroom_lines(headroom: Mapping[str, Any]) -> Iterator[str]:
    share = f"{headroom['pct_of_cap']:.0f}%"
    yield f"Cap headroom: {headroom['headroom_bytes']} bytes free ({headroom['estimated_bytes']} estimated of {headroom['cap_bytes']} cap, {share})"
    if headroom["over_threshold"]:
        yield "warning: the estimate is above 80% of the cap"


def _shown(node: Node) -> str:
    return f"[{node.kind}] {node.name}"


def _binary(size: int | None) -> str:
    """Bytes with a binary suffix, rounded up."""
    if size is None:
        return "unknown"
    for power, suffix in ((30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << power:
            return f"{-(-size >> power)}{suffix}"
    return f"{size}B"


def _storage(plan: Plan) -> Storage:
    return plan.workspace.settings.storage if plan.workspace else Storage()


def preflight(plan: Plan) -> Iterator[str]:
    """Warnings W330 and W331; nothing where the workspace says nothing of spilling."""
    if plan.workspace is None:
        return
    folder, cap = spill_folder(plan), plan.workspace.settings.storage.spill.disk_cap_bytes
    estimated = Estimates(plan).known if folder or cap else 0
    free = shutil.disk_usage(folder).free if folder else estimated
    if estimated > free:
        yield (
            f"W330: spill volume {folder} has {free} bytes free but the run is estimated to spill up to {estimated} bytes; the run may fail on a full "
            "volume: point storage.spill.dir at a larger one or partition the input"
        )
    if cap and estimated >= WARNED_SHARE * cap:
        yield (
            f"W331: this run is estimated to spill up to {estimated} bytes, which is {100 * estimated / cap:.0f}% of the configured spill cap "
            f"storage.spill.disk_cap_bytes ({cap} bytes), to which Sail keeps (E320) and Spark does not. This headroom is per invocation: invocations that share the "
            "spill volume share the cap"
        )
