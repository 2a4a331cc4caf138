"""`options:` of XML sources and outputs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from storage.formats.options import Options
from storage.formats.xml.names import is_name


def _element_path(value: str) -> str:
    steps = value.removeprefix("/").removeprefix("/").removesuffix("/").split("/")
    if wrong := next((step for step in steps if not is_name(step)), None):
        raise ValueError(f"'{wrong}' is no name of an XML element: a path is //name, /a/b or a/b")
    return value


def _element_name(value: str) -> str:
    if not is_name(value):
        raise ValueError(f"'{value}' is no name of an XML element")
    return value


class XmlReadOptions(Options):
    """`options:` of an XML source. Without `record_path` the root element is the only record."""

    record_path: Annotated[str, AfterValidator(_element_path)] | None = Field(
        default=None, description="The path of the record elements: //name, /a/b or a/b; without it the root element is the only record.", examples=["orders/order"]
    )
    attribute_prefix: str = Field(default="@", description="The text before the name of an attribute in a column's name.", examples=["attr_"])
    namespace_handling: Literal["strip", "qualify"] = Field(default="strip", description="Whether the prefixes of names are stripped, or stay.")


class XmlWriteOptions(Options):
    """`options:` of an XML output. Under `nested` a dotted column name is an element inside an element."""

    root_element: Annotated[str, AfterValidator(_element_name)] = Field(default="Root", description="The name of the root element.", examples=["orders"])
    record_element: Annotated[str, AfterValidator(_element_name)] = Field(default="Record", description="The name of each record's element.", examples=["order"])
    nested: bool = Field(default=True, description="Whether a dotted column name is an element inside an element (E329).")
