"""The `envelope:` block of a source: which sections of its documents CXL reads as `$doc.<section>.<field>` (user guide, "Document Envelope Context")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from storage.formats.base import Column, OptionError, Section


def _one_word(value: Any) -> Any:
    """A date with a time by its word of the two that it has."""
    return "date_time" if value == "datetime" else value


FieldType = Annotated[Literal["string", "int", "float", "bool", "date", "date_time"], BeforeValidator(_one_word)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Extract(_Strict):
    """Where a section is found: exactly one of the three."""

    xml_path: str | None = None
    json_pointer: str | None = None
    segment: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Extract:
        if len(self.given()) != 1:
            raise ValueError("needs exactly one of xml_path, json_pointer and segment")
        if self.json_pointer and not self.json_pointer.startswith("/"):
            raise ValueError(f"json_pointer '{self.json_pointer}' does not begin with '/'")
        return self

    def given(self) -> dict[Literal["xml_path", "json_pointer", "segment"], str]:
        """The rule that is written."""
        rules: dict[Literal["xml_path", "json_pointer", "segment"], str | None] = {
            "xml_path": self.xml_path,
            "json_pointer": self.json_pointer,
            "segment": self.segment,
        }
        return {kind: where for kind, where in rules.items() if where is not None}


class SectionModel(_Strict):
    """A section: where it is found and its typed fields."""

    extract: Extract
    fields: dict[str, FieldType] = Field(default_factory=dict)

    def section(self, name: str) -> Section:
        """The section as readers take it."""
        ((kind, where),) = self.extract.given().items()
        return Section(name, kind, where, tuple(Column(field, declared) for field, declared in self.fields.items()))


class Envelope(_Strict):
    """The whole block."""

    sections: dict[Name, SectionModel] = Field(default_factory=dict)


def sections_in(envelope: Mapping[str, Any] | None) -> tuple[Section, ...]:
    """The sections of a source's `envelope:` block; OptionError with the path of what is wrong."""
    if envelope is None:
        return ()
    try:
        model = Envelope.model_validate(envelope)
    except ValidationError as wrong:
        raise OptionError.of(wrong, "envelope") from wrong
    return tuple(section.section(name) for name, section in model.sections.items())
