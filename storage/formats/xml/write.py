"""Records to XML elements. Dotted column names make a tree, which is rendered a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from changelog.lazy_imports import pa
from storage.files.errors import OutputError
from storage.formats.base import Column, WritePlan
from storage.formats.values import text_of
from storage.formats.xml.names import NOT_TEXT, is_name

_IN_ATTRIBUTE = {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}


@dataclass(slots=True)
class _Element:
    """An element of the record.

    Args:
        tag: its name
        text: the index of the column of its text; None without text
        optional: whether it is left out where it is null
        attributes: the index of the column of each attribute
        children: the elements inside it
    """

    tag: str
    text: int | None = None
    optional: bool = False
    attributes: dict[str, int] = field(default_factory=dict)
    children: dict[str, _Element] = field(default_factory=dict)


def elements(batch: pa.RecordBatch, plan: WritePlan, tag: str) -> list[bytes]:
    """Each record as one element with a line end. Raises OutputError for names and text that XML cannot hold, and for maps."""
    texts = [_texts(batch.column(index), column, leave_out=plan.preserve_nulls) for index, column in enumerate(plan.columns)]
    rendered = _rendered(_tree(plan.columns, tag), texts, batch.num_rows, leave_out=plan.preserve_nulls)
    return [f"{text or f'<{tag}/>'}\n".encode() for text in rendered]


def _texts(values: pa.Array, column: Column, *, leave_out: bool) -> list[str | None]:
    """The texts of a column. In an optional column a null that the record has is an empty text, whose element is written, unless nulls are left out."""
    texts: list[str | None] = text_of(values, column, "xml").to_pylist()
    if column.optional and not leave_out and not column.name.rpartition(".")[2].startswith("@"):
        texts = ["" if text is None and cell is not None else text for text, cell in zip(texts, values.to_pylist(), strict=True)]
    for text in texts:
        if text is not None and (wrong := NOT_TEXT.search(text)):
            raise OutputError(f"column '{column.name}' holds the character U+{ord(wrong[0]):04X}, which XML cannot hold")
    return texts


def _tree(columns: Sequence[Column], tag: str) -> _Element:
    root = _Element(tag)
    for index, column in enumerate(columns):
        *parents, last = column.name.split(".")
        owner = root
        for step in parents:
            owner = owner.children.setdefault(_checked(step, column), _Element(step))
        if last.startswith("@"):
            owner.attributes[_checked(last[1:], column)] = index
        else:
            child = owner.children.setdefault(_checked(last, column), _Element(last))
            child.text, child.optional = index, column.optional
    return root


def _checked(name: str, column: Column) -> str:
    if not is_name(name):
        raise OutputError(f"column '{column.name}': '{name}' is no name of an XML element; rename it with mapping")
    return name


def _rendered(element: _Element, texts: Sequence[list[str | None]], rows: int, *, leave_out: bool) -> list[str]:
    """The element's text for each record. With `leave_out` it is empty where the element is null and has neither attributes nor children."""
    children = [_rendered(child, texts, rows, leave_out=leave_out) for child in element.children.values()]
    inner = ["".join(parts) for parts in zip(*children, strict=True)] if children else [""] * rows
    own: list[str | None] = [None] * rows if element.text is None else texts[element.text]
    parts = zip(own, _attributes(element, texts, rows), inner, strict=True)
    return [_one(element.tag, text, attributes, child, leave_out=leave_out or element.optional) for text, attributes, child in parts]


def _one(tag: str, text: str | None, attributes: str, inner: str, *, leave_out: bool) -> str:
    content = inner if text is None else escape(text, {"\r": "&#13;"}) + inner
    if content:
        return f"<{tag}{attributes}>{content}</{tag}>"
    return "" if leave_out and text is None and not attributes else f"<{tag}{attributes}/>"


def _attributes(element: _Element, texts: Sequence[list[str | None]], rows: int) -> list[str]:
    if not element.attributes:
        return [""] * rows
    columns = [
        ["" if text is None else f' {name}="{escape(text, _IN_ATTRIBUTE)}"' for text in texts[index]]
        for name, index in element.attributes.items()
    ]
    return ["".join(parts) for parts in zip(*columns, strict=True)]
