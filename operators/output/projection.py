"""Which columns an output writes, and under which names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cxl.types.types import Schema, Type
from operators.core.row_type import CK, META, RowType
from operators.output.config import OutputConfig
from operators.output.undeclared_columns import names_of


@dataclass(frozen=True, slots=True)
class Projection:
    """Column by column what is written: name in the file, column of the input, type."""

    written: tuple[tuple[str, str, Type], ...]
    kept: bool = True

    @property
    def data(self) -> Schema:
        """The written columns as a schema."""
        return Schema((name, type_) for name, _, type_ in self.written)


def project(config: OutputConfig, row: RowType) -> Projection:
    """Apply include_unmapped, exclude, mapping, correlation keys and metadata, in this order."""
    written = {shown: (shown, source, type_) for shown, source, type_ in shown_columns(config, row)}
    meta = row.riding(META)
    for name in meta if config.wanted_metadata == "all" else config.wanted_metadata:
        if name in meta:
            written[f"meta.{name}"] = (f"meta.{name}", META + name, meta[name])
    return Projection(tuple(written.values()))


def shown_columns(config: OutputConfig, row: RowType) -> Iterator[tuple[str, str, Type]]:
    """The selected columns under the names that they are written with."""
    return ((shown, source, type_) for name, source, type_ in _selected(config, row) for shown in names_of(config.mapping, name))


def _selected(config: OutputConfig, row: RowType) -> Iterator[tuple[str, str, Type]]:
    """The columns that are not excluded, with where they come from: data, then correlation keys."""
    emitted = row.emitted if not config.include_unmapped else None
    columns = [(name, name, type_) for name, type_ in row.data.items() if not emitted or name in emitted]
    if config.include_correlation_keys:
        columns += [(f"$ck.{name}", CK + name, type_) for name, type_ in row.riding(CK).items()]
    return (one for one in columns if one[0] not in config.exclude)
