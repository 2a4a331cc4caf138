"""One engine of each choice a process, reused from call to call and ended with the process."""

import atexit
import threading
from dataclasses import replace

from storage.engines.base import Engine
from storage.engines.choice import EngineChoice, decided, has_session
from storage.engines.spill import own_folder, remove_folders

__all__ = ["engine", "stop_engines"]

_engines: dict[str, tuple[EngineChoice, Engine]] = {}
_lock = threading.Lock()


def engine(choice: EngineChoice) -> Engine:
    """The engine of this choice, made current. It is not started: ask for its `session`, or `start()` it in the background.

    A process has one engine of a kind at a time: a different choice of the same kind ends the older one, and so does work that does not fit one that was made for
    little. Memory, the size of the work and `shared_host` are for an engine that starts; `auto` is decided as for little work.
    """
    wanted = choice if choice.kind != "auto" else decided(choice).choice
    with _lock:
        kept = _engines.get(wanted.kind)
        if kept is not None and not _serves(kept[0], wanted):
            kept[1].stop()
            kept = None
        if kept is None:
            kept = _engines[wanted.kind] = (wanted, _made(wanted))
    kept[1].make_current()
    return kept[1]


def _serves(kept: EngineChoice, wanted: EngineChoice) -> bool:
    """Whether the engine of one choice is that of another too."""
    outgrown = kept.kind == "spark" and kept.small and not wanted.small
    return not outgrown and replace(kept, memory=wanted.memory, small=wanted.small, shared_host=wanted.shared_host) == wanted


def _made(choice: EngineChoice) -> Engine:
    if choice.remote:
        from storage.engines.spark.remote import RemoteSpark

        return RemoteSpark(choice.remote, choice.patience)
    choice = replace(choice, spill=own_folder(choice.spill)) if choice.spill else choice
    if choice.kind == "sail":
        from storage.engines.sail import Sail

        return Sail(choice)
    from storage.engines.spark.local import Spark
    from storage.engines.spark.remote import SharedSpark

    return SharedSpark() if has_session() else Spark(choice)


@atexit.register
def stop_engines() -> None:
    """End every engine of the process."""
    with _lock:
        ending = [kept for _, kept in _engines.values()]
        _engines.clear()
    for one in ending:
        one.stop()
    remove_folders()
