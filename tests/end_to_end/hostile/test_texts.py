"""Texts that lie about themselves: encodings that are none, numbers that no number holds, members that come twice."""

import pytest

PIPELINE = """\
pipeline: {{ name: texts }}
error_handling: {{ strategy: continue, dlq: {{ path: dlq.csv }} }}
nodes:
  - type: source
    name: s
    config: {{ name: s, type: {form}, path: in.txt, options: {options}, schema: [{{ name: a, type: {type} }}] }}
  - type: output
    name: o
    input: s
    config: {{ name: o, type: csv, path: o.csv }}
"""


def files(text, form="csv", options="{}", type_="string"):
    return {"pipeline.yaml": PIPELINE.format(form=form, options=options, type=type_), "in.txt": text}


@pytest.mark.parametrize("encoding", ["bogus", "utf-7", "rot13", "zlib", "idna", "undefined", "punycode"])
def test_an_encoding_that_is_none(bed, encoding):
    ended = bed.run(files("a\n1\n", options=f"{{ encoding: {encoding} }}"))
    assert (ended.code, f"'{encoding}' is no encoding of text" in ended.err, "pipeline.yaml:6:" in ended.err) == (1, True, True), ended.err
    ended = bed.run(files(f"<?xml version='1.0' encoding='{encoding}'?><l><r><a>1</a></r></l>", "xml", "{ record_path: //r }"))
    assert (ended.code, f"names the encoding '{encoding}'" in ended.err) == (4, True), ended.err


def test_a_file_in_shift_jis(bed):
    ended = bed.run(files("a\n日本\n".encode("shift_jis"), options="{ encoding: shift_jis }"))
    assert (ended.code, (ended.folder / "o.csv").read_text()) == (0, "a\n日本\n"), ended.err


@pytest.mark.parametrize("form", ["ndjson", "array"])
def test_a_member_that_comes_twice(bed, form):
    text = {"ndjson": '{"a": "1"}\n{"a": "2", "a": "3"}\n', "array": '[{"a": "1"}, {"a": "2", "a": "3"}]'}[form]
    given = files(text, "json", f"{{ format: {form} }}")
    ended = bed.run(given)
    assert (ended.code, (ended.folder / "o.csv").read_text()) == (2, "a\n1\n"), ended.err
    dlq = (ended.folder / "dlq.csv").read_text()
    assert "malformed_record" in dlq
    assert "the member 'a' comes twice" in dlq
    ended = bed.run(given | {"pipeline.yaml": given["pipeline.yaml"].replace("strategy: continue", "strategy: fail_fast")})
    assert (ended.code, "the member 'a' comes twice" in ended.err) == (4, True), ended.err
    ended = bed.run(given | {"pipeline.yaml": given["pipeline.yaml"].replace(f"format: {form}", f"format: {form}, duplicate_keys: last")})
    assert (ended.code, (ended.folder / "o.csv").read_text()) == (0, "a\n1\n3\n"), ended.err


@pytest.mark.parametrize(("form", "text"), [("csv", "a\n1e400\ninf\n"), ("xml", "<l><r><a>1e400</a></r><r><a>inf</a></r></l>"), ("json", '{"a": "1e400"}\n{"a": "inf"}\n')])
def test_a_number_beyond_the_largest_float(bed, form, text):
    ended = bed.run(files(text, form, "{ record_path: //r }" if form == "xml" else "{}", "float"))
    assert (ended.code, (ended.folder / "o.csv").read_text()) == (2, "a\ninf\n"), ended.err
    assert "type_coercion_failure" in (ended.folder / "dlq.csv").read_text()
