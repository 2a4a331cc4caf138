"""`errata erase --check`: a later search for values that were erased, or for any others. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from errata.core.failures import Usage
from errata.erasure.named_values import NamedValues
from errata.erasure.own_words import narrowed, own_words
from errata.erasure.removal import Removal
from errata.erasure.selection import op_rows
from errata.erasure.values import Found
from errata.plan.pipeline import LoadedPipeline
from errata.state.node_tables import Tables


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a search.

    Attributes:
        values: How many values were looked for.
        files: The files that hold one.
        unsearched: The places in which not every value was looked for.
        too_common: The columns whose value was not looked for, since it says too little: yes and no.
        common: Texts that the state has by itself, which are looked for as whole cells of the columns of `--key` alone.
    """

    values: int
    files: Sequence[str]
    unsearched: Sequence[str]
    too_common: Sequence[str]
    common: Sequence[str]


def check(pipeline: LoadedPipeline, key: Mapping[str, str], texts: Sequence[str]) -> Checked:
    """Search the state and the outputs for values. Raises Usage before the first run.

    Args:
        pipeline: The pipeline.
        key: Values by column, read as the column is; short ones and numbers are found as whole cells of columns with that name.
        texts: Texts that are found wherever they are; as whole words where a row that is there has them inside of a text.
    """
    head = pipeline.head()
    if head is None:
        raise Usage.no_run()
    named = NamedValues.of(pipeline.plan, key, own_words(pipeline.plan))
    values = named.values
    for text in texts:
        values.add_text(text)
    narrowed(values)
    removal, tables = Removal(pipeline.plan, pipeline.state, head), Tables(pipeline.state.root, pipeline.plan)
    for path in (path for path in head.tables if path.startswith("changelog/")):
        for rows in op_rows(tables.by_path(path)):
            values.narrow(Found(inner=values.found_in(rows).inner))
    return Checked(len(values), *removal.searched(values), named.too_common, sorted(values.common))
