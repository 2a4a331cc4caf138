"""Sources that read a service: their records are fetched as a run begins and kept in the state folder; everything else reads what is kept."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from errata.core.failures import StorageFailed

if TYPE_CHECKING:
    from errata.plan.plan import Plan
    from operators.source.node import SourceNode
    from storage.files.discovery import FileStat
    from storage.state.location import State


def fetched_below(state: State) -> Path:
    """Where the records of services are kept: in a local state folder; for one elsewhere they are asked for again by each process."""
    return Path(state.root) / "fetched" if state.local else _of_this_process()


@cache
def _of_this_process() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="errata-fetched-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def file_name(operator: SourceNode) -> str:
    """What `$source.file` is of a record of a service (user guide, "Network Sources (REST)")."""
    return f"<source:{operator.name}>"


def kept_records(operator: SourceNode) -> Sequence[FileStat]:
    """The file of kept records under the source's own name; nothing before the first fetch."""
    from storage.files.discovery import FileStat

    path = operator.kept
    if path is None or not path.is_file():
        return ()
    facts = path.stat()
    return (FileStat(path, file_name(operator), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns),)


def services(plan: Plan) -> dict[str, str]:
    """The sources that read a service, with why a run looks at each."""
    return {node.name: "only the run asks the service" for node in plan.of_kind("source") if cast("SourceNode", node.operator).config.service is not None}


def fetch_services(plan: Plan, warn: Callable[[str], None]) -> None:
    """Bring what is kept of every service up to date. `warn` is told of one that had more than its limits let through. Raises StorageFailed."""
    for node in plan.of_kind("source"):
        operator = cast("SourceNode", node.operator)
        if operator.config.service is not None:
            _fetch(operator, warn)


def _fetch(operator: SourceNode, warn: Callable[[str], None]) -> None:
    from storage.formats import FormatError
    from storage.rest.cache import fetch

    settings, path = operator.config.service, operator.kept
    assert settings is not None  # the caller looked
    assert path is not None  # a loaded project has a place for it
    reader, name = operator.page_reader(), file_name(operator)
    try:
        pull = fetch(settings, name, path.parent, lambda body: tuple(reader.lines(body, name)))
    except FormatError as error:
        raise StorageFailed(f"source '{operator.name}': {error}") from error
    except OSError as error:
        raise StorageFailed(f"source '{operator.name}': {error.filename}: {error.strerror}") from error
    if pull.capped is not None:
        limit = getattr(settings, pull.capped)
        warn(f"source '{operator.name}': the service has more than {pull.capped} ({limit}) lets through: what lies beyond was not read")
