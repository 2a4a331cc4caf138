"""Stand-ins of a case: a SQLite file in the folder of the case for a database, a file there for an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from errata.api.pipeline import Pipeline
from errata.plan.loader import Choices, OpenedPipeline, open_pipeline
from errata.plan.pipeline import LoadedPipeline
from errata.plan.plan import Node, Plan
from operators.core.settings import GivenRows
from operators.output.config import OutputConfig
from operators.output.operator import Output
from operators.source.node import SourceNode
from storage.secrets import Secret
from storage.sql.connections import Connection
from storage.sql.names import TableName, quoted
from storage.stores.connections import Stores
from storage.uris import is_local

DATABASES = "databases"
"""The folder, below the case's, of the SQLite files."""
OBJECTS = "objects"
"""The folder, below the case's, of what the pipeline writes to object stores."""


def load_inside(file: Path, folder: Path, *, channel: str | Path | None = None, variables: Mapping[str, Any] | None = None) -> Pipeline:
    """A pipeline that writes below a folder alone: into SQLite files where it names databases, into files where it names objects.

    Args:
        file: The pipeline's file.
        folder: Where its relative paths begin.
        channel: As `errata.load` takes it.
        variables: As `errata.load` takes them.

    Raises:
        PipelineErrors: With every independent problem.
    """
    choices = Choices(channel, variables, folder, state=str(folder / ".errata"))

    def planned(rows: Mapping[str, GivenRows]) -> LoadedPipeline:
        opened = _inside(open_pipeline(file, replace(choices, given=rows)), folder)
        loaded = opened.loaded(opened.draft())
        return replace(loaded, plan=_plan_inside(loaded.plan))

    return Pipeline(planned({}), planned)


def _inside(opened: OpenedPipeline, folder: Path) -> OpenedPipeline:
    """The pipeline with SQLite files for its databases, and with stores that have no credentials."""
    connections = {name: _stand_in(one, folder) for name, one in opened.settings.connections.items()}
    stores = Stores(tuple(replace(one, settings=()) for one in opened.settings.stores.connections))
    return replace(opened, settings=replace(opened.settings, connections=connections, stores=stores))


def _stand_in(connection: Connection, folder: Path) -> Connection:
    path = folder / DATABASES / f"{connection.name}.sqlite"
    path.parent.mkdir(exist_ok=True)
    return Connection(connection.name, Secret(f"sqlite:{path}"), read_only=connection.read_only, folder=folder)


def _plan_inside(plan: Plan) -> Plan:
    """The plan with outputs below the folder."""
    nodes = {node.name: replace(node, operator=_output_inside(cast("Output", node.operator))) if node.kind == "output" else node for node in plan}
    dlq = plan.model.error_handling.dlq
    handling = plan.model.error_handling.model_copy(update={"dlq": dlq.model_copy(update={"path": dlq.path and _path_inside(dlq.path)})})
    return replace(plan, model=plan.model.model_copy(update={"error_handling": handling}), nodes=nodes)


def _output_inside(output: Output) -> Output:
    return output.with_attributes(config=output.config.model_copy(update=dict(_places_inside(output.config))))


def _places_inside(config: OutputConfig) -> Iterator[tuple[str, Any]]:
    """The keys of an output that name places. A table of a schema is one of the same name without it, since SQLite has none."""
    if config.table is not None:
        yield "table", quoted(TableName.parse(config.table).shown)
    yield "path", _path_inside(config.path)
    if config.changelog is not None:
        yield "changelog", config.changelog.model_copy(update={"path": _path_inside(config.changelog.path)})


def _path_inside(path: str) -> str:
    """A path of the folder: `objects/BUCKET/KEY` for `s3://BUCKET/KEY`."""
    inside = is_local(path) and not Path(path.removeprefix("file://")).is_absolute()
    return path if inside else f"{OBJECTS}/{path.partition('://')[2].lstrip('/') or path.lstrip('/')}"


def real_source(plan: Plan, given: Mapping[str, Any]) -> tuple[Node, str] | None:
    """The first source that would read a real database, service or object, with what that is; None where all are given rows or read files of the folder."""
    for node in plan.of_kind("source"):
        config = cast("SourceNode", node.operator).config
        what = "a database" if config.asks else "a service" if config.service or config.publisher else ""
        patterns = (config.path, config.glob, *(config.paths or ()))
        what = what or ("an object store" if any(one and not is_local(one) for one in patterns) else "")
        if what and node.name not in given:
            return node, what
    return None
