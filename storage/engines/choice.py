"""What a user can say about the engine: `--engine`, `--master`, `--remote`, `--memory-limit`, `--threads` and spilling."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["EngineChoice"]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The wanted engine. Two equal choices name the same engine.

    `auto` is Spark where Java 17 or later is found, else Sail. `master` is a Spark master URL (`local[*]` when absent),
    `remote` a Spark Connect URL (`sc://host:port`); either means Spark. `memory` is in bytes and `threads` counts cores:
    both are hints. `spill` is the folder for temporary data, `spill_cap` the bytes that it may have, where the engine can keep to that.
    """

    kind: Literal["auto", "spark", "sail"] = "auto"
    master: str | None = None
    remote: str | None = None
    memory: int | None = None
    threads: int | None = None
    spill: Path | None = None
    spill_cap: int | None = None
