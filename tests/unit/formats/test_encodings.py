"""The encodings that are read: character sets in any spelling. Other codecs are an error of the check or of the file."""

import encodings.aliases

import pytest

from storage.formats import InputError, OptionError
from storage.formats.encodings import expat_reads, text_encoding
from tests.support.reading import records_of
from tests.unit.formats.test_csv_reader import csv_reader
from tests.unit.formats.test_xml import xml_reader

NONE = ["bogus", "utf-7", "idna", "rot13", "hex", "zlib", "base64", "uu", "bz2", "quopri", "undefined", "punycode", "unicode_escape", "raw_unicode_escape", "", "a\0b", "é", "x" * 5000, "aliases", "mbcs"]
EAST = ["shift_jis", "cp932", "euc_jp", "iso2022_jp", "gb2312", "gbk", "gb18030", "hz", "big5", "euc_kr", "johab"]
ONE_BYTE = ["iso-8859-1", "ISO-8859-15", "windows-1252", "cp1251", "koi8-r", "mac-roman", "cp437", "tis-620", "us-ascii"]


def test_each_codec_of_python_turns_bytes_into_text_or_is_none():
    for name in {*encodings.aliases.aliases, *encodings.aliases.aliases.values()} - {"mbcs", "oem"}:
        known = text_encoding(name)
        if known is not None:
            assert "a,1".encode(known).decode(known) == "a,1", name
    assert [name for name in NONE if text_encoding(name)] == []


@pytest.mark.parametrize("encoding", NONE)
def test_a_csv_option_that_names_none(encoding):
    with pytest.raises(OptionError, match="is no encoding of text: use utf-8"):
        csv_reader([("a",)], {"encoding": encoding})


@pytest.mark.parametrize("encoding", [*ONE_BYTE, *EAST, "cp500", "utf-32", "utf8", "U8"])
def test_a_csv_file_in_any_of_them(encoding):
    text = {"shift_jis": "日本"}.get(encoding, "ab")
    assert [row.data["a"] for row in records_of(csv_reader([("a",)], {"encoding": encoding}), f"a\n{text}\n".encode(encoding))] == [text]


def document(encoding: str, text: str = "ab", in_: str = "ascii") -> bytes:
    return f"<?xml version='1.0' encoding='{encoding}'?><l><r><a>{text}</a></r></l>".encode(in_)


@pytest.mark.parametrize("encoding", [*(name for name in NONE if name.replace("_", "").replace("-", "").isalnum() and name.isascii()), *EAST, "utf-32", "cp500"])
def test_an_xml_declaration_that_names_none(encoding):
    with pytest.raises(InputError, match=r"f\.xml: line 1: the XML declaration names the encoding '"):
        records_of(xml_reader([("a",)]), document(encoding), name="f.xml")


@pytest.mark.parametrize(("encoding", "text"), [("utf8", "é日"), ("UTF_8", "é日"), ("U8", "é"), ("windows-1252", "é€"), ("koi8-r", "ж"), ("ISO-8859-15", "€"), ("us-ascii", "e"), ("utf-16", "é日")])
def test_an_xml_declaration_in_any_spelling(encoding, text):
    assert [row.data["a"] for row in records_of(xml_reader([("a",)]), document(encoding, text, encoding))] == [text]


def test_an_encoding_that_the_text_does_not_have():
    for encoding in ("utf-16", "utf-16le", "us-ascii"):
        with pytest.raises(InputError, match="not well-formed XML"):
            records_of(xml_reader([("a",)]), document(encoding, "é", "utf-8"))
    assert not expat_reads("cp037")
