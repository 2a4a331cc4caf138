"""`$doc`: the sections of the file that a record came from ride along as JSON text in `_doc` (user guide, "Document Envelope Context").

A program reads `$doc.section.field` as the type that the source declares; where sources above a node differ in it, as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from changelog.lazy_imports import F
from cxl.types.types import STRING, Type

if TYPE_CHECKING:
    from pyspark.sql import Column

DOCUMENT = "_doc"
Documents = Mapping[str, Mapping[str, Type]]
"""Type of each field of each section."""


def together(documents: Iterable[Documents]) -> dict[str, dict[str, Type]]:
    """The sections of several sources at once."""
    found: dict[str, dict[str, Type]] = {}
    for document in documents:
        for section, fields in document.items():
            known = found.setdefault(section, {})
            known.update({name: type_ if known.get(name, type_) == type_ else STRING for name, type_ in fields.items()})
    return found


def members(reads: Iterable[str]) -> dict[str, Column]:
    """The text of each `doc.section.field` that is read; null where the document lacks it."""
    return {name: F.get_json_object(DOCUMENT, f"$.{name.removeprefix('doc.')}") for name in reads if name.startswith("doc.")}
