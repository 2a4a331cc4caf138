"""The `envelope:` block of a source."""

import pytest

from storage.formats import Column, OptionError, Section
from storage.formats.envelope import sections_in


def test_sections():
    block = {"sections": {"Head": {"extract": {"xml_path": "/a/Head"}, "fields": {"id": "int"}}, "ic": {"extract": {"segment": "UNB"}}}}
    assert sections_in(block) == (Section("Head", "xml_path", "/a/Head", (Column("id", "int"),)), Section("ic", "segment", "UNB", ()))
    assert sections_in(None) == ()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"extract": {}}, "envelope.sections.h.extract: needs exactly one of xml_path, json_pointer and segment"),
        ({"extract": {"xml_path": "/a", "segment": "UNB"}}, "envelope.sections.h.extract: needs exactly one of"),
        ({"extract": {"json_pointer": "a"}}, "json_pointer 'a' does not begin with '/'"),
        ({"extract": {"xpath": "/a"}}, "envelope.sections.h.extract.xpath: there is no such key"),
        ({}, "envelope.sections.h.extract: Field required"),
        ({"extract": {"segment": "UNB"}, "fields": {"a": "text"}}, "envelope.sections.h.fields.a: must be 'string', 'int', 'float', 'bool', 'date' or 'date_time', not 'text'"),
    ],
)
def test_what_is_refused(section, message):
    with pytest.raises(OptionError) as caught:
        sections_in({"sections": {"h": section}})
    assert message in str(caught.value)
