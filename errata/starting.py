"""The engine of a run: what options, pipeline and workspace say of it together (SPEC-DECISIONS, The engine 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.storage_summary import spill_folder

if TYPE_CHECKING:
    from errata.options import RunOptions
    from errata.plan import Plan
    from storage.engines import Engine


def start_engine(options: RunOptions, plan: Plan) -> Engine:
    """The engine that the options ask for, starting. Raises storage.engines.EngineUnavailable."""
    from storage.engines import EngineChoice, engine

    chosen = options.engine
    threads = chosen.threads or plan.model.pipeline.concurrency.threads
    memory = plan.model.pipeline.memory.for_engine(chosen.memory_limit)
    cap = plan.workspace.settings.storage.spill.disk_cap_bytes if plan.workspace else None
    wanted = engine(EngineChoice(chosen.engine, chosen.master, chosen.remote, memory, threads, spill_folder(plan), cap))
    wanted.start()
    return wanted
