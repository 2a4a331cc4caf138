"""Records to XML elements. Dotted column names make a tree, which is rendered a batch at a time.

A map is an element with a child for each member: `@name` is an attribute, `#text` the text, an array its element repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

from changelog.lazy_imports import pa, pc
from storage.files.errors import OutputError
from storage.formats.base import Column, WritePlan
from storage.formats.nested_names import steps_of
from storage.formats.values import text_of, text_of_value
from storage.formats.xml.names import NOT_TEXT, is_name
from storage.values.deep import with_room
from storage.values.text import plain_numbers
from storage.values.types import is_dynamic

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


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of an element that is made of a map: its attributes, and its text and children."""

    attributes: str
    inner: str


_Cell: TypeAlias = "str | _Content | None"


def elements(batch: pa.RecordBatch, plan: WritePlan, tag: str, *, nested: bool = True) -> list[bytes]:
    """Each record as one element with a line end. Raises OutputError for names, text and arrays that XML cannot hold.

    Args:
        nested: whether dotted names are elements inside elements
    """
    texts = [_texts(batch.column(index), column, leave_out=plan.preserve_nulls) for index, column in enumerate(plan.columns)]
    rendered = _rendered(_tree(plan.columns, tag, nested=nested), texts, batch.num_rows, leave_out=plan.preserve_nulls)
    return [f"{text or f'<{tag}/>'}\n".encode() for text in rendered]


def _texts(values: pa.Array, column: Column, *, leave_out: bool) -> list[_Cell]:
    """The texts of a column, and the content of its maps. In an optional column a null that the record has is an empty text, whose element is written, unless nulls are left out."""
    if is_dynamic(column.type) and pa.types.is_string(values.type) and (maps := _maps(values, column.name)):
        plain = pa.array([None if index in maps else cell for index, cell in enumerate(values.to_pylist())], pa.string())
        return [maps.get(index, text) for index, text in enumerate(_texts(plain, column, leave_out=leave_out))]
    texts: list[_Cell] = text_of(values, column, "xml").to_pylist()
    if column.optional and not leave_out and not column.name.rpartition(".")[2].startswith("@"):
        texts = ["" if text is None and cell is not None else text for text, cell in zip(texts, values.to_pylist(), strict=True)]
    for text in texts:
        if isinstance(text, str):
            _check_text(text, column.name)
    return texts


def _check_text(text: str, column: str) -> None:
    if wrong := NOT_TEXT.search(text):
        raise OutputError(f"column '{column}' holds the character U+{ord(wrong[0]):04X}, which XML cannot hold")


def _maps(values: pa.Array, column: str) -> dict[int, _Content]:
    """The maps among the dynamic values of a column, by row."""
    places = pc.indices_nonzero(pc.fill_null(pc.starts_with(values, "{"), False))
    texts = plain_numbers(values.take(places)).to_pylist()
    return {place: _map(text, column) for place, text in zip(places.to_pylist(), texts, strict=True)}


def _map(text: str, column: str) -> _Content:
    """The content of the element of a map."""
    try:
        return with_room(lambda: _content(json.loads(text, parse_int=str, parse_float=_digits), column))
    except RecursionError:
        raise OutputError(f"column '{column}' holds a map that is nested too deep for xml") from None


def _digits(text: str) -> str:
    """The text of a float of a stored value; infinities have a form of their own there."""
    return {"1e999": "inf", "-1e999": "-inf"}.get(text, text)


def _content(value: Mapping[str, Any], column: str) -> _Content:
    """The content of an element that is a map."""
    attributes, inner = [], []
    for name, member in value.items():
        if name == "#text":
            inner.append(_escaped(_scalar(member, name, column)))
        elif name.startswith("@"):
            tag = _checked(name[1:], column)
            attributes.append("" if member is None else f' {tag}="{escape(_scalar(member, name, column), _IN_ATTRIBUTE)}"')
        else:
            tag = _checked(name, column)
            inner.extend(_child(tag, one, column) for one in (member if isinstance(member, list) else [member]))
    return _Content("".join(attributes), "".join(inner))


def _child(tag: str, value: Any, column: str) -> str:
    """A member of a map as an element."""
    if isinstance(value, list):
        raise OutputError(f"column '{column}' holds an array directly in an array ('{tag}'), which xml cannot hold")
    if not isinstance(value, dict):
        return _one(tag, _scalar(value, tag, column), "", "", leave_out=False)
    made = _content(value, column)
    return _one(tag, None, made.attributes, made.inner, leave_out=False)


def _scalar(value: Any, name: str, column: str) -> str:
    """The text of a member that is neither array nor map; empty for null."""
    if isinstance(value, dict | list):
        raise OutputError(f"column '{column}' holds {'a map' if isinstance(value, dict) else 'an array'} as '{name}', which is a text")
    text = text_of_value(value) or ""
    _check_text(text, column)
    return text


def _escaped(text: str) -> str:
    return escape(text, {"\r": "&#13;"})


def _tree(columns: Sequence[Column], tag: str, *, nested: bool) -> _Element:
    root = _Element(tag)
    for index, column in enumerate(columns):
        *parents, last = steps_of(column.name) if nested else [column.name]
        owner = root
        for step in parents:
            owner = owner.children.setdefault(_checked(step, column.name), _Element(step))
        if last.startswith("@"):
            owner.attributes[_checked(last[1:], column.name)] = index
        else:
            child = owner.children.setdefault(_checked(last, column.name), _Element(last))
            child.text, child.optional = index, column.optional
    return root


def _checked(name: str, column: str) -> str:
    if not is_name(name):
        raise OutputError(f"column '{column}': '{name}' is no name of an XML element; rename it with mapping")
    return name


def _rendered(element: _Element, texts: Sequence[list[_Cell]], rows: int, *, leave_out: bool) -> list[str]:
    """The element's text for each record. With `leave_out` it is empty where the element is null and has neither attributes nor children."""
    children = [_rendered(child, texts, rows, leave_out=leave_out) for child in element.children.values()]
    inner = ["".join(parts) for parts in zip(*children, strict=True)] if children else [""] * rows
    own: list[_Cell] = [None] * rows if element.text is None else texts[element.text]
    parts = zip(own, _attributes(element, texts, rows), inner, strict=True)
    return [_one(element.tag, text, attributes, child, leave_out=leave_out or element.optional) for text, attributes, child in parts]


def _one(tag: str, text: _Cell, attributes: str, inner: str, *, leave_out: bool) -> str:
    if isinstance(text, _Content):
        return _one(tag, "", attributes + text.attributes, text.inner + inner, leave_out=leave_out)
    content = inner if text is None else _escaped(text) + inner
    if content:
        return f"<{tag}{attributes}>{content}</{tag}>"
    return "" if leave_out and text is None and not attributes else f"<{tag}{attributes}/>"


def _attributes(element: _Element, texts: Sequence[list[_Cell]], rows: int) -> list[str]:
    if not element.attributes:
        return [""] * rows
    columns = [[_attribute(name, text) for text in texts[index]] for name, index in element.attributes.items()]
    return ["".join(parts) for parts in zip(*columns, strict=True)]


def _attribute(name: str, text: _Cell) -> str:
    if isinstance(text, _Content):
        raise OutputError(f"the attribute '{name}' would hold a map, which xml cannot hold")
    return "" if text is None else f' {name}="{escape(text, _IN_ATTRIBUTE)}"'
