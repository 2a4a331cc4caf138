"""The engines of this process: one of each kind, reused from call to call, and ended with the process."""

import threading
from dataclasses import replace

from storage.at_exit import at_exit
from storage.engines.base import Engine
from storage.engines.choice import EngineChoice, decided, has_session
from storage.process_folders import remove_spilled, spill_folder

__all__ = ["engine", "stop_engines"]

_engines: dict[str, tuple[EngineChoice, Engine]] = {}
_lock = threading.Lock()


def engine(choice: EngineChoice) -> Engine:
    """Return the engine of this choice, and make it current. It starts with its `session`, or in the background with `start()`.

    A process has one engine of a kind at a time. A different choice of the same kind ends the older engine; so does large work, where the older
    engine was made for small work. Memory, the size of the work and `shared_host` count only when an engine starts. `auto` is decided for small work.
    """
    wanted = choice if choice.kind != "auto" else decided(choice).choice
    with _lock:
        found = _engines.get(wanted.kind)
        if found is not None and not _serves(found[0], wanted):
            found[1].stop()
            found = None
        if found is None:
            found = _engines[wanted.kind] = (wanted, _made(wanted))
    found[1].make_current()
    return found[1]


def _serves(present: EngineChoice, wanted: EngineChoice) -> bool:
    """Return whether the engine of the present choice also serves the wanted one."""
    outgrown = present.kind == "spark" and present.small and not wanted.small
    return not outgrown and replace(present, memory=wanted.memory, small=wanted.small, shared_host=wanted.shared_host) == wanted


def _made(choice: EngineChoice) -> Engine:
    if choice.remote:
        from storage.engines.spark.remote import RemoteSpark

        return RemoteSpark(choice.remote, choice.patience)
    choice = replace(choice, spill=spill_folder(choice.spill)) if choice.spill else choice
    if choice.kind == "sail":
        from storage.engines.sail import Sail

        return Sail(choice)
    from storage.engines.spark.local import Spark
    from storage.engines.spark.remote import SharedSpark

    return SharedSpark() if has_session() else Spark(choice)


def stop_engines() -> None:
    """End all engines of the process."""
    with _lock:
        ending = [one for _, one in _engines.values()]
        _engines.clear()
    for one in ending:
        one.stop()
    remove_spilled()


at_exit(stop_engines)
