"""The `$` namespaces: which members there are and what type they have (user guide, "System Variables", "Scoped Variables")."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cxl.types.types import ANY, DATE_TIME, INT, STRING, Type

PIPELINE: Mapping[str, Type] = {
    "name": STRING, "execution_id": STRING, "batch_id": STRING, "start_time": DATE_TIME, "source_file": STRING, "source_row": INT,
    "total_count": INT, "ok_count": INT, "dlq_count": INT, "filtered_count": INT, "distinct_count": INT,
}  # fmt: skip
"""Members of `$pipeline` that every program can read."""
SOURCE: Mapping[str, Type] = {
    "file": STRING, "path": STRING, "name": STRING, "batch": STRING, "row": INT, "count": INT.or_null,
    "event_time": DATE_TIME.or_null, "ingestion_timestamp": DATE_TIME,
}  # fmt: skip
"""Members of `$source` that every record has."""
NAMESPACES = ("pipeline", "source", "record", "vars", "meta", "doc", "ck", "window")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemTypes:
    """What a program may read besides its fields.

    Declared variables by scope; `qualified` are `$source.<input>.<key>`. `meta` and `doc` None: any member, of type Any.
    `withheld` are dotted names that a composition body did not opt in to (E173).
    """

    vars: Mapping[str, Type] = field(default_factory=dict)
    pipeline: Mapping[str, Type] = field(default_factory=dict)
    source: Mapping[str, Type] = field(default_factory=dict)
    record: Mapping[str, Type] = field(default_factory=dict)
    qualified: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    meta: Mapping[str, Type] | None = None
    doc: Mapping[str, Mapping[str, Type]] | None = None
    ck: Mapping[str, Type] = field(default_factory=dict)
    withheld: frozenset[str] = frozenset()

    def members(self, namespace: str) -> Mapping[str, Type] | None:
        """The members of a namespace of one level; None where any name will do."""
        known: dict[str, Mapping[str, Type] | None] = {
            "pipeline": {**PIPELINE, **self.pipeline}, "source": {**SOURCE, **self.source}, "record": self.record,
            "vars": self.vars, "meta": self.meta, "ck": self.ck,
        }  # fmt: skip
        return known[namespace]

    def doc_type(self, section: str, name: str) -> Type | None:
        """The type of `$doc.section.name`, None where it is not declared."""
        if self.doc is None:
            return ANY
        return self.doc.get(section, {}).get(name)
