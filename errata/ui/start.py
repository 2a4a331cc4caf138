"""The begin of `errata ui`: the libraries are there, the pipeline or its state can be read, then the server starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from errata.api.pipeline import Pipeline, stored
from errata.core.options import EngineOptions
from errata.pages.rendering import require
from errata.ui.reader import Reader

if TYPE_CHECKING:
    from errata.ui import server
else:
    from changelog.lazy_imports import Lazy

    server = Lazy("errata.ui.server")  # imports libraries that may not be installed


def start(load: Callable[[], Pipeline], file: Path, *, state: str | None, port: int, writes: bool, engine: EngineOptions, announce: Callable[[str], None]) -> None:
    """Serve the pages of a pipeline until a signal comes.

    Args:
        load: Loads the pipeline.
        file: Its file.
        state: Where its state is, if the command says so.
        port: The port; 0 takes a free one.
        writes: Whether corrections and retries are taken.
        engine: The engine of such a change.
        announce: Is given the address once the port is open.

    Raises:
        LibraryMissing: The extra `ui` is not installed.
        PipelineErrors: The file has errors, and no run was committed.
        StorageFailed: The port is taken, or the state cannot be read.
    """
    require("starlette", "uvicorn", "jinja2", "graphlay", what="errata ui")
    reader = Reader(file, load, lambda: stored(file, state))
    with reader.reading():
        pass  # a file with errors and without a state ends the command
    server.serve(reader, file=str(file), port=port, writes=writes, engine=engine, announce=announce)
