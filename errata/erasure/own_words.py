"""The words that a state and its files have by themselves: names of the pipeline, categories, codes, members of the ledger and of Delta logs.

A value of an erased record that is one of them cannot be looked for everywhere: it would be found in every state, and taking it out would destroy what it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Final, cast, get_args

from changelog.lazy_imports import pl
from errata.core.codes import pages
from errata.erasure.values import ERROR_TEXTS, SYSTEM, Values
from errata.plan.correlation import TRIGGERS
from errata.plan.edits import written
from errata.plan.plan import Plan
from errata.project.model import Category
from errata.state.triage_events import TRIAGE
from storage.delta.log_words import LOG_WORDS
from storage.state.entry import Entry

if TYPE_CHECKING:
    from operators.output.operator import Output

_CAUSES: Final = ("ingest", "input", "logic", "erase", "correction", "rollback", "revert", "triage", "recompute", "repair", "retry", "reopen", "compact", "restate")
"""Words of `_cause` that come from no data."""
_ERRORS: Final = (*ERROR_TEXTS, "category", "stage", "trigger", "route", "collateral")
"""Members of the errors of rejected records."""
_DEAD_LETTERS: Final = ("timestamp", "source_file", "source_name", "source_row", "error_category", "error_detail")
_LEDGER: Final = (
    "arrived", "batch", "before", "beside", "cells", "columns", "compacted", "correlated", "count", "cursor", "dense", "earlier", "erased", "erasing", "erasure", "filled", "folded",
    "follows", "form", "format", "glob", "hash", "hidden", "include_reason", "include_source_row", "inputs", "kept_out", "kind", "label", "largest", "left", "listed", "live", "mark",
    "merge", "missing", "mtime_ns", "name", "names", "nameless", "number", "older", "oldest_reject", "path", "persisted", "present", "proof", "reason", "records", "rejected",
    "rejected_live", "replaced", "replaces", "retract", "rows", "rules", "schema", "searched_values", "selection", "shifted", "signature", "size", "stored_as", "suppressed", "totals",
    "type", "undeclared", "unsearched", "values", "version", "waived", "waived_correlated", "wide_sums", "written", "corrected", "kept", "found", "removed_files", "cell_values",
    "fingerprint", "categories", "chains", "database", "digest", "degrade_fallback_count", "groups_recomputed", "partitions_recomputed", "output_rows_retracted_total", "riders",
    "subdag_replay_rows", "synthetic_ck_columns_emitted_total", "synthetic_ck_fanout_lookups_total", "synthetic_ck_fanout_rows_expanded_total", "table", "ledger", "anchor", "anchor.json", "claim", "changelog", "state", "rollback", "erasure.key", "files",
)  # fmt: skip
"""Members of the ledger and of `anchor.json`, and names of files of the state."""
_SAID: Final = ("column: cannot read as", "is in no group of ops", "the primary key is null", "the record has more cells than the header", "line", "message", "division by zero")
"""Words of messages about rejected records that come from no data."""
_TYPES: Final = (
    "string", "integer", "long", "bigint", "tinyint", "short", "double", "float", "boolean", "binary", "timestamp", "timestamp_ntz", "date", "decimal", "array", "struct", "any", "nullable",
)  # fmt: skip


def own_words(plan: Plan) -> frozenset[str]:
    """The words of the state of a pipeline, and the phrases that have such words."""
    named = frozenset(_named(plan))
    members = {one.name for one in fields(Entry)}
    return frozenset({*named, *members, *get_args(Category), *pages(), *SYSTEM, *_CAUSES, *_ERRORS, *_DEAD_LETTERS, *_LEDGER, *_SAID, *_TYPES, *LOG_WORDS, TRIGGERS, TRIAGE})


def narrowed(values: Values) -> None:
    """Let texts inside of a word of the state be looked for in a narrower way."""
    values.narrow(values.found_in(pl.DataFrame({"word": sorted(values.own)})))


def _named(plan: Plan) -> Iterator[str]:
    """Names that the pipeline gives, and paths of outputs and of the dead letter queue."""
    model = plan.model
    yield model.pipeline.name
    yield from plan.settings.connections
    dlq = model.error_handling.dlq
    if dlq.path is not None:
        yield dlq.path
    for node in plan:
        yield node.name
        yield node.kind
        yield from written(node.spec)
        yield from (port for _, port in node.inputs if port)
        yield from (*node.operator.output.data, *node.entries)
        if node.kind == "output":
            config = cast("Output", node.operator).config
            yield from (str(one) for one in (config.name, config.path, config.connection, config.table) if one is not None)
