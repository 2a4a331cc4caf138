"""The engine of a run: chosen by options, pipeline and workspace, else by the amount of work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from errata.core.events import Event
from errata.core.options import EngineOptions
from errata.execution.resource_limits import spill_folder
from errata.plan.plan import Plan
from errata.plan.steps import DataStep
from errata.state.source_files import SourceFiles

if TYPE_CHECKING:
    from storage.engines import Engine, EngineDecision

BYTES_A_ROW = 20
"""The least size of a file's row, and the size at which a live row that is looked up counts."""


def choose_engine(options: EngineOptions, plan: Plan, work: int) -> EngineDecision:
    """The engine for `work` bytes of work, and why it is this one."""
    from storage.engines import EngineChoice, decided  # runs without work need none

    given, reason = _named(options, plan)
    threads = given.threads or plan.model.pipeline.concurrency.threads
    memory = plan.model.pipeline.memory.for_engine(given.memory_limit)
    cap = plan.workspace.settings.storage.spill.disk_cap_bytes if plan.workspace else None
    shared = plan.workspace is not None and plan.workspace.settings.engine.shared_host
    asked = EngineChoice(given.engine, given.master, given.remote, memory, threads, spill_folder(plan), cap, given.engine_wait, shared_host=shared)
    found = decided(asked, work)
    return replace(found, reason=found.reason or reason)


def start_engine(chosen: EngineDecision, listener: Callable[[Event], None]) -> Engine:
    """The engine that was chosen, starting; the listener hears what it waits for. Raises storage.engines.EngineUnavailable."""
    from storage.engines import engine  # runs without work need none

    found = engine(chosen.choice)
    found.tell = lambda text: listener(Event("warning", action=text))
    found.start()
    return found


def with_workspace(options: EngineOptions, plan: Plan) -> EngineOptions:
    """The options, and where they name no engine and no cluster what `[engine]` of the workspace's file says."""
    return _named(options, plan)[0]


def _named(options: EngineOptions, plan: Plan) -> tuple[EngineOptions, str]:
    """The options with what the workspace's file adds, and who named the engine; empty where nobody did."""
    by_option = "" if options.engine == "auto" else "named by --engine or ERRATA_ENGINE"
    if options.engine == "sail" or options.master or options.remote or plan.workspace is None:
        return options, by_option
    said = plan.workspace.settings.engine
    kind = options.engine if by_option else said.name
    reason = by_option or ("" if kind == "auto" else "named by errata.toml")
    master, remote = (None, None) if kind == "sail" else (said.master, said.remote)
    return replace(options, engine=kind, master=master, remote=remote), reason


def work_of(plan: Plan, sources: Mapping[str, SourceFiles], stages: Iterable[DataStep], nodes: Mapping[str, Mapping[str, Any]]) -> int:
    """The bytes of work of a run: the bytes of files that it reads, and BYTES_A_ROW for each live row that its nodes look up.

    `nodes` is what the last epoch's ledger entry counted of each.
    """
    at_work = [stage for stage in stages if stage.action != "skip"]
    read = sum(_to_read(sources[stage.node], stage) for stage in at_work if stage.node in sources)
    looking = [stage.node for stage in at_work if stage.action != "delta" or plan[stage.node].operator.explain_class != "linear"]
    return read + BYTES_A_ROW * sum(int(nodes.get(name, {}).get("live", 0)) for name in looking)


def _to_read(source: SourceFiles, stage: DataStep) -> int:
    """The bytes of a source that its stage reads."""
    changes = source.changes
    if stage.action != "delta":
        return sum(record.size for record in changes.now if record.present)
    return changes.to_read
