"""Sources that read a service: their records are fetched as a run begins and kept in the state folder; everything else reads what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from errata.core.failures import StorageFailed
from errata.plan.plan import Plan
from errata.plan.source_inputs import file_name
from operators.source.node import SourceNode
from storage.formats import FormatError


def fetch_services(plan: Plan, warn: Callable[[str], None]) -> None:
    """Bring the stored records of every service up to date. `warn` takes warnings for services that have more than their limits allow. Raises StorageFailed."""
    for node in plan.of_kind("source"):
        operator = cast("SourceNode", node.operator)
        if operator.config.service is not None:
            _fetch(operator, warn)


def _fetch(operator: SourceNode, warn: Callable[[str], None]) -> None:
    from storage.rest.cache import fetch  # only services need it

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
