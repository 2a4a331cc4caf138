"""OpenLineage events read as the standard's own client does: its classes are made from the published schemas (openlineage.io, 2-0-2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import fields_dict
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn
from openlineage.client.generated import (
    base,
    column_lineage_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
)

STANDARD = {
    "schema": schema_dataset.SchemaDatasetFacet,
    "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet,
    "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
    "errorMessage": error_message_run.ErrorMessageRunFacet,
    "jobType": job_type_job.JobTypeJobFacet,
}
OWN = {"errata_corrections": base.RunFacet}
"""Facets of no standard: the members that each facet must have, and any others."""
FACETS = ("facets", "inputFacets", "outputFacets")


def _converter(*, closed: bool) -> Converter:
    """One that takes what the classes declare, and nothing else where it is closed."""
    made = Converter(detailed_validation=False)
    made.register_structure_hook(str, _text)
    made.register_structure_hook_factory(
        lambda kind: hasattr(kind, "__attrs_attrs__"),
        lambda kind: make_dict_structure_fn(kind, made, _cattrs_forbid_extra_keys=closed, _cattrs_include_init_false=True),
    )
    return made


def _text(value: Any, _: type) -> str:
    assert isinstance(value, str), f"{value!r} is no text"
    return value


def read_event(event: Mapping[str, Any]) -> base.RunEvent:
    """A run event; anything that the standard does not allow, in it or in one of its facets, is an error."""
    bare = {**event, **{name: _bare(event[name]) for name in ("run", "job")}, **{name: [_bare(one) for one in event[name]] for name in ("inputs", "outputs")}}
    read = _converter(closed=True).structure(bare, base.RunEvent)
    assert read.schemaURL == base.RunEvent._get_schema()
    return read


def _bare(holder: Mapping[str, Any]) -> dict[str, Any]:
    """A run, a job or a dataset without its facets, when each of them is what the standard says."""
    for kind in FACETS:
        for name, facet in holder.get(kind, {}).items():
            read_facet(name, facet)
    return {name: value for name, value in holder.items() if name not in FACETS}


def read_facet(name: str, facet: Mapping[str, Any]) -> base.BaseFacet:
    """One facet by its name in the event."""
    kind = STANDARD.get(name) or OWN[name]
    required = {one.name for one in fields_dict(base.BaseFacet).values()}
    assert required <= facet.keys()
    read = _converter(closed=name in STANDARD).structure(dict(facet), kind)
    assert read._schemaURL == kind._get_schema()
    return read
