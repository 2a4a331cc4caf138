"""The search for erased values: what is found, in which spelling, and what is not."""

from __future__ import annotations

import csv
import gzip
import json
import time
from io import StringIO
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import polars as pl
import pytest

from errata.erasure.other_files import clear
from errata.erasure.output_cells import texts_of
from errata.erasure.search import Search
from errata.erasure.values import Values
from operators.output.config import OutputConfig
from storage.stores.folders import folder_at

TEXT = 'Zoë "the <quick>" O\'Hara'


def values(*texts: str) -> Values:
    found = Values()
    for text in texts:
        found.add("name", text)
    return found


def as_csv(*cells: str) -> str:
    written = StringIO()
    csv.writer(written).writerow(cells)
    return written.getvalue()


SPELLED = {
    "csv": as_csv(TEXT), "csv with a list": as_csv(json.dumps([TEXT, "b"]), "c"), "json": json.dumps({"a": TEXT}), "json in json": json.dumps({"a": json.dumps([TEXT])}),
    "xml": f"<a>{escape(TEXT)}</a>", "attribute": f"<a b={quoteattr(TEXT)}/>", "numbers": f"<a>{escape(TEXT).encode('ascii', 'xmlcharrefreplace').decode()}</a>",
    "both": f'<a b="{escape(TEXT, {chr(34): "&quot;"})}"/>',
}  # fmt: skip


@pytest.mark.parametrize("form", SPELLED)
def test_a_text_is_found_in_every_spelling(form: str) -> None:
    assert Search(values(TEXT)).found_in(SPELLED[form].encode())
    assert not Search(values(TEXT)).found_in(SPELLED[form].replace("quick", "slow").encode())


def test_short_digits_are_no_part_of_hashes_and_times() -> None:
    found = values("2026", "abba")
    assert not Search(found).found_in(b'{"at": "2026-11-25T03:00:00", "hash": "00abba2026"}')
    assert found.blanked("2026-11-25 abba") == "2026-11-25 abba"
    assert found.holding(pl.Series("any", ["2026", "12026", '["2026"]', "abba", None]), whole=False).to_list() == [True, False, True, True, False]
    assert found.holding(pl.Series("name", [2026, 20261]), whole=True).to_list() == [True, False]


def test_a_hash_or_a_time_is_not_blanked() -> None:
    found = values("12345678", "11-25", "anna")
    kept = ["12345678" * 8, "2026-11-25T03:00:00+00:00", "12345678-1234-1234-1234-123456789abc"]
    assert [found.blanked(text) for text in kept] == kept
    assert found.blanked("anna, 12345678") == "(erased), (erased)"


def test_numbers_of_json_are_spelled_as_in_columns() -> None:
    found = values('{"a": 12.0, "b": [7.50]}')
    assert found.cells == {"name": {"12", "7.5"}}
    assert found.holding(pl.Series("name", [12.0, 7.5, 8.0]), whole=True).to_list() == [True, True, False]


def test_a_text_in_a_key_begins_at_a_whole_byte() -> None:
    digits = b"anna!".hex()
    shifted = bytes.fromhex(f"0{digits}0")
    assert values("anna!").holding(pl.Series("_key", [shifted, b"x" + bytes.fromhex(digits)]), whole=False).to_list() == [False, True]


def test_names_inside_of_other_names_are_whole_words() -> None:
    found = values("Anna", "Zoe!")
    found.without(found.found_in(pl.DataFrame({"name": ["Annabelle"]})))
    assert (found.texts, found.words, found.parts) == ({"Zoe!"}, {"Anna"}, set())
    cells = ["Anna", "Annabelle", '["Annabelle","Anna"]', "by Anna", "Anna, Ben", "HAnna", None]
    assert found.holding(pl.Series("x", cells), whole=False).to_list() == [True, False, True, True, True, False, False]
    assert found.holding(pl.Series("x", [["Anna"], ["Annabelle"]]), whole=False).to_list() == [True, False]
    assert found.holding(pl.Series("_key", [b"\x01Anna\0\0", b"\x01Annabelle\0\0"]), whole=False).to_list() == [True, False]
    assert found.blanked("'Anna' and Annabelle") == "'(erased)' and Annabelle"
    found.without(found.found_in(pl.DataFrame({"other": ['{"x": "Anna"}']})))
    assert (found.texts, found.words, found.parts) == ({"Zoe!"}, set(), set())


def test_names_in_other_peoples_texts_are_whole_cells_keys_and_values_in_json() -> None:
    found = values("Anna", "Zoe!")
    found.without(found.found_in(pl.DataFrame({"name": ["Anna Miller"]})))
    assert (found.texts, found.words, found.parts) == ({"Zoe!"}, set(), {"Anna"})
    cells = ["Anna", "Annabelle", '["Annabelle","Anna"]', "by Anna", None]
    assert found.holding(pl.Series("x", cells), whole=False).to_list() == [True, False, True, False, False]
    assert found.blanked("'Anna' and Annabelle") == "'(erased)' and Annabelle"
    found.without(found.found_in(pl.DataFrame({"other": ['{"x": "Anna"}']})))
    assert (found.texts, found.words, found.parts) == ({"Zoe!"}, set(), set())


@pytest.mark.parametrize(
    ("content", "hit"),
    [
        ("Anna", True), ("by Anna.", True), ("Annabelle", False), ("JoAnna", False), ("Anna_2", False), ('{"a": "x\\nAnna"}', True), ("<a>Anna</a>", True),
        ("a,Anna,b", True), ("Anna-Lena", True), ("Annaé", False), ("éAnna", False), ("7Anna", False), ("(Anna)", True),
    ],
)  # fmt: skip
def test_a_word_in_a_file_has_no_letter_or_digit_beside_it(content: str, hit: bool) -> None:
    found = values("Anna")
    found.without(found.found_in(pl.DataFrame({"name": ["Annabelle"]})))
    search = Search(found)
    assert search.found_in(content.encode()) is hit
    assert search.found_in(gzip.compress(content.encode())) is hit
    assert bool(found.holding(pl.Series("x", [content]), whole=False)[0]) is hit
    assert (found.blanked(content) != content) is hit
    assert search.found_in(b" " * ((1 << 24) - 3) + f" {content} ".encode()) is hit


def test_a_file_beside_the_tables_loses_a_name_that_others_have_in_theirs(tmp_path: Path) -> None:
    found = values("Anna")
    found.without(found.found_in(pl.DataFrame({"name": ["Anna Miller"]})))
    (tmp_path / "run.log").write_text("rejected: Anna, Annabelle\n")
    (tmp_path / "other.log").write_text("rejected: Annabelle\n")
    assert clear(folder_at(str(tmp_path)), Search(found)) == ["run.log"]
    assert (tmp_path / "run.log").read_text() == "rejected: (erased), Annabelle\n"


def test_thousands_of_texts_are_looked_for_at_once() -> None:
    search = Search(values(*(f"person {number}" for number in range(4_000))))
    content = b"a line without any of them\n" * 40_000
    begun = time.monotonic()
    assert not search.found_in(content)
    assert search.found_in(content + "person 3999".encode("utf-16-le"))
    assert time.monotonic() - begun < 10


def test_the_copy_of_a_dataset_leaves_whole_and_identities_stay(tmp_path: Path) -> None:
    for name, text in (("data/aa", "anna"), ("data/bb", "x"), ("refs/head", "aa")):
        place = tmp_path / "fetched/people/dataset" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (tmp_path / "fetched/people/chain.json").write_text("{}")
    (tmp_path / "identities").mkdir()
    (tmp_path / "identities/out.json").write_text('{"private": "anna"}')
    found = clear(folder_at(str(tmp_path)), Search(values("anna")))
    assert sorted(found) == [f"fetched/people/dataset/{name}" for name in ("data/aa", "data/bb", "refs/head")]
    assert list(folder_at(str(tmp_path)).names()) == ["fetched/people/chain.json", "identities/out.json"]


def test_short_values_in_lists_and_maps_are_compared_with_the_ones_of_others() -> None:
    found = Values()
    found.add_rows(pl.DataFrame({"tags": [["x", "y"]], "more": [{"a": 7, "b": [8.0]}]}))
    assert found.cells == {"tags": {"x", "y"}, "more": {"7", "8"}}
    assert found.holding(pl.Series("tags", [["y"], ["z"], None]), whole=True).to_list() == [True, False, False]
    assert found.holding(pl.Series("more", ['{"c": [8]}', '{"c": 88}', "8"]), whole=True).to_list() == [True, False, True]
    found.without(found.found_in(pl.DataFrame({"tags": [["x"]], "more": [{"a": 7, "b": [9.0]}]})))
    assert found.cells == {"tags": {"y"}, "more": {"8"}}
    cells = texts_of(b'[{"tags": ["y"], "more": {"deep": 8.0}}]', OutputConfig(name="out", type="json", path="out.json"))
    assert cells is not None
    assert Search(found).in_columns([one for one in cells if one.name == "more"])


def rejected(amount: object, unread: str, detail: str = "x") -> pl.DataFrame:
    """One op row whose column `amount` could not be read, or is `amount`."""
    error = json.dumps({"category": "type_coercion_failure", "detail": detail, "fields": {"amount": unread, "name": "Zoe!"}, "raw": None}, separators=(",", ":"))
    return pl.DataFrame({"_error": [error], "amount": [amount], "name": ["Zoe!"]}, schema={"_error": pl.String, "amount": pl.Int64, "name": pl.String})


def test_texts_of_cells_that_could_not_be_read_are_values() -> None:
    found = Values()
    for text in ("forty-two", "n/a", "12.50"):
        found.add_rows(rejected(None, text))
    assert (found.texts, found.parts, found.cells) == ({"forty-two", "Zoe!"}, {"12.50"}, {"amount": {"n/a", "12.5"}})
    assert found.blanked("cannot read 'forty-two', '12.50' as int; 112.50") == "cannot read '(erased)', '(erased)' as int; 112.50"
    found.without(found.found_in(rejected(None, "forty-two")))
    found.without(found.found_in(rejected(None, "n/a")))
    assert (found.texts, found.cells) == (set(), {"amount": {"12.5"}})


def test_the_text_of_a_cell_that_was_read_is_no_value_beside_its_column() -> None:
    found = Values()
    found.add_rows(rejected(4200, "4200 "))
    assert (found.texts, found.parts, found.cells) == ({"Zoe!"}, set(), {"amount": {"4200"}})
