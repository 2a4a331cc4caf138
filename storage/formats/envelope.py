"""The `envelope:` block of a source: the sections of its documents, which CXL reads as `$doc.<section>.<field>`, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from storage.files.errors import InputError
from storage.formats.base import Column, Section
from storage.formats.options import OptionError, Options
from storage.formats.values import coerce_values, text_of_value


def _one_word(value: Any) -> Any:
    """`date_time` for its synonym `datetime`."""
    return "date_time" if value == "datetime" else value


FieldType = Annotated[Literal["string", "int", "float", "bool", "date", "date_time"], BeforeValidator(_one_word)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Extract(Options):
    """Where a section is found: exactly one of the three rules."""

    xml_path: str | None = Field(default=None, description="The path of the section's element in an XML document.")
    json_pointer: str | None = Field(default=None, description="The JSON pointer to the section's object, such as /header.")
    segment: str | None = Field(default=None, description="The segment that opens the interchange: UNB in EDIFACT, ISA in X12.")

    @model_validator(mode="after")
    def _one(self) -> Extract:
        if len(self.given()) != 1:
            raise ValueError("needs exactly one of xml_path, json_pointer and segment")
        if self.json_pointer and not self.json_pointer.startswith("/"):
            raise ValueError(f"json_pointer '{self.json_pointer}' does not begin with '/'")
        return self

    def given(self) -> dict[Literal["xml_path", "json_pointer", "segment"], str]:
        """The rule that is set."""
        rules: dict[Literal["xml_path", "json_pointer", "segment"], str | None] = {
            "xml_path": self.xml_path,
            "json_pointer": self.json_pointer,
            "segment": self.segment,
        }
        return {kind: where for kind, where in rules.items() if where is not None}


class SectionModel(Options):
    """A section: where it is found and its typed fields."""

    extract: Extract = Field(description="Where in the document the section is.")
    fields: dict[str, FieldType] = Field(default_factory=dict, description="The fields of the section with their types; CXL reads them as $doc.SECTION.FIELD.")

    def section(self, name: str) -> Section:
        """The section as readers take it."""
        ((kind, where),) = self.extract.given().items()
        return Section(name, kind, where, tuple(Column(field, declared) for field, declared in self.fields.items()))


class Envelope(Options):
    """The `envelope:` block."""

    sections: dict[Name, SectionModel] = Field(default_factory=dict, description="The sections by name.", examples=[{"head": {"extract": {"json_pointer": "/header"}}}])


def sections_in(envelope: Mapping[str, Any] | None) -> tuple[Section, ...]:
    """The sections of a source's `envelope:` block. Raises OptionError with the path of what is wrong."""
    if envelope is None:
        return ()
    try:
        model = Envelope.model_validate(envelope)
    except ValidationError as wrong:
        raise OptionError.of(wrong, "envelope") from wrong
    return tuple(section.section(name) for name, section in model.sections.items())


def typed_section(section: Section, values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The declared fields of a section; absent and empty ones are null. Raises InputError for a value of another type."""
    return {field.name: _typed(section, field.name, field.type, values.get(field.name), name) for field in section.fields}


def _typed(section: Section, field: str, declared: str, value: Any, name: str) -> Any:
    if value is None or value == "":
        return None
    result = coerce_values([value], declared)
    if result.failed is not None:
        shown = text_of_value(value)
        raise InputError(name, f"envelope section '{section.name}', field '{field}': cannot read {shown!r} as {declared}")
    return result.values[0].as_py()
