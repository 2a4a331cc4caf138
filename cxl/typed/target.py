"""The surroundings of a program: the fields of its input, the `$` namespaces, the modules that it may use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cxl.typed.modules import NO_MODULES, Modules
from cxl.types.types import ANY, DATE_TIME, INT, STRING, Schema, Type

Mode = Literal["row", "aggregate", "predicate", "expression", "combine", "set"]

PIPELINE: Mapping[str, Type] = {
    "name": STRING, "execution_id": STRING, "batch_id": STRING, "start_time": DATE_TIME, "source_file": STRING, "source_row": INT,
    "total_count": INT, "ok_count": INT, "dlq_count": INT, "filtered_count": INT, "distinct_count": INT,
}  # fmt: skip
"""Members of `$pipeline` that every program can read."""
OF_THE_RECORD: Mapping[str, str] = {"source_file": "file", "source_row": "row"}
"""Members of `$pipeline` that are another name of a member of `$source`."""
SOURCE: Mapping[str, Type] = {
    "file": STRING, "path": STRING, "name": STRING, "batch": STRING, "row": INT, "count": INT.or_null,
    "event_time": DATE_TIME.or_null, "ingestion_timestamp": DATE_TIME,
}  # fmt: skip
"""Members of `$source` that every record has."""
NAMESPACES = ("pipeline", "source", "record", "vars", "meta", "doc", "ck", "window")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemTypes:
    """The types of the members of the `$` namespaces.

    Args:
        vars, pipeline, source, record: Declared variables of each scope.
        qualified: Members of `$source.<input>`, by input.
        meta: Members of `$meta`. None: any member, of type Any.
        doc: Fields of `$doc` by section. None: any field, of type Any.
        ck: Fields of the correlation key.
        unexposed: Dotted names that a composition body did not list in `_compose.scoped_vars` (E173).
    """

    vars: Mapping[str, Type] = field(default_factory=dict)
    pipeline: Mapping[str, Type] = field(default_factory=dict)
    source: Mapping[str, Type] = field(default_factory=dict)
    record: Mapping[str, Type] = field(default_factory=dict)
    qualified: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    meta: Mapping[str, Type] | None = None
    doc: Mapping[str, Mapping[str, Type]] | None = None
    ck: Mapping[str, Type] = field(default_factory=dict)
    unexposed: frozenset[str] = frozenset()

    def members(self, namespace: str) -> Mapping[str, Type] | None:
        """Return the members of a namespace other than `$doc`, None where any name is allowed."""
        known: dict[str, Mapping[str, Type] | None] = {
            "pipeline": {**PIPELINE, **self.pipeline}, "source": {**SOURCE, **self.source}, "record": self.record,
            "vars": self.vars, "meta": self.meta, "ck": self.ck,
        }  # fmt: skip
        return known[namespace]

    def doc_type(self, section: str, name: str) -> Type | None:
        """Return the type of `$doc.section.name`, None where no source declares it."""
        if self.doc is None:
            return ANY
        return self.doc.get(section, {}).get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The surroundings that a program is compiled against.

    Args:
        schema: The fields of the input.
        inputs: Schemas by qualifier. A combine must write `orders.amount`; mode set may write `this.amount`.
        group_by: Fields that an aggregate's emits may read outside aggregate calls.
        window: Whether `$window` functions are allowed.
        window_schema: The rows that `$window` functions read. None: the input's.
        window_bounds: Whether `$window.start` and `$window.end` exist.
        open: Whether the input's fields are unknown, so that any name may be one.
    """

    schema: Schema = field(default_factory=Schema)
    mode: Mode = "row"
    inputs: Mapping[str, Schema] = field(default_factory=dict)
    system: SystemTypes = field(default_factory=SystemTypes)
    modules: Modules = NO_MODULES
    group_by: tuple[str, ...] = ()
    window: bool = False
    window_schema: Schema | None = None
    window_bounds: bool = False
    open: bool = False

    def row_field(self, name: str) -> Type | None:
        """Return the type of a field in the window's rows, None where there is no such field."""
        return (self.schema if self.window_schema is None else self.window_schema).get(name, ANY if self.open else None)

    @property
    def qualified_only(self) -> bool:
        """Whether a bare field name is an error."""
        return bool(self.inputs) and self.mode != "set"
