"""Engines, where data work runs. `engine(EngineChoice("sail"))` returns the one engine of its kind.

Code above uses `pyspark.sql` DataFrames and Columns, and asks an `Engine` for its session. The differences between Spark in a JVM,
a Spark Connect server and Sail are hidden here. One engine is *current* at a time, and `pyspark.sql.functions` and `Window` make Columns for it.
So make Columns after `engine(...)` and after the first use of `session`, and do not keep them when the engine changes.

Each module is imported on first use, because a run without changes needs no engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.engines.base import Engine
    from storage.engines.choice import EngineChoice, EngineDecision, decided
    from storage.engines.registry import engine, stop_engines

_MODULES = {"Engine": "base", "EngineChoice": "choice", "EngineDecision": "choice", "decided": "choice", "engine": "registry", "stop_engines": "registry"}

__all__ = ["Engine", "EngineChoice", "EngineDecision", "decided", "engine", "stop_engines"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'storage.engines' has no attribute {name!r}")
    return getattr(import_module(f"storage.engines.{_MODULES[name]}"), name)
