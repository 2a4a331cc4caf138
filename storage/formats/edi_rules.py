"""What EDI sources may declare; apart from the reading, so that a check of a pipeline loads nothing heavy."""

from collections.abc import Iterable

from storage.formats.contract import OptionError, Section


def check_sections(sections: Iterable[Section], tag: str, form: str) -> None:
    """Raise OptionError for a declared section that is not the interchange header."""
    for section in sections:
        if section.kind != "segment" or section.where != tag:
            path = ("envelope", "sections", section.name, "extract")
            raise OptionError(
                f"envelope section '{section.name}': {form} takes segment: \"{tag}\", not {section.kind}: {section.where!r}", path
            )
