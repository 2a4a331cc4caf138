"""Engines: where data work runs (DESIGN section 7). `engine(EngineChoice("sail"))` gives the one engine of its kind.

Everything above speaks `pyspark.sql` DataFrames and Columns and asks an `Engine` for its session; what differs between
Apache Spark in the process, a Spark Connect server and Sail is hidden here. One engine is *current* at a time: Columns that
`pyspark.sql.functions` and `Window` make are for the current engine, so make them after `engine(...)` and after `session`
was asked for, and never keep them over a change of the engine.

Each part is imported when it is first used: a run without change needs but the exception.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.engines.base import Engine
    from storage.engines.choice import EngineChoice, EngineDecision, decided
    from storage.engines.registry import engine, stop_engines

_PLACES = {
    "Engine": "base", "EngineChoice": "choice", "EngineDecision": "choice", "decided": "choice", "engine": "registry", "stop_engines": "registry",
}  # fmt: skip

__all__ = ["Engine", "EngineChoice", "EngineDecision", "decided", "engine", "stop_engines"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'storage.engines' has no attribute {name!r}")
    return getattr(import_module(f"storage.engines.{_PLACES[name]}"), name)
