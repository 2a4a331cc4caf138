"""Small inputs that could become large: refused with a code, or read in little memory and time (docs/reference/limits.md)."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PIPELINE = """\
pipeline: {{ name: large }}
nodes:
  - type: source
    name: s
    config: {{ name: s, type: {form}, path: in, {extra} schema: [{{ name: a, type: string, optional: true }}] }}
  - type: output
    name: o
    input: s
    config: {{ name: o, type: {out}, path: o }}
"""
EXTRA = {"xml": "options: { record_path: //r },"}
DROP = "on_unmapped: { mode: drop },"
DEFAULT = b'<!DOCTYPE l [<!ATTLIST r z CDATA "' + b"A" * 400_000 + b'">]><l>' + b"<r/>" * 20_000 + b"</l>"
ENTITIES = b'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">' + b"".join(b'<!ENTITY %c "%s">' % (98 + at, b"&%c;" % (97 + at) * 10) for at in range(10)) + b"]><l><r><a>&k;</a></r></l>"
LONG = 10 << 20


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def arrow(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue().to_pybytes()


REPEATED = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), pa.array(["z" * 1_000_000]))})
REFUSED = {
    "a default value of an attribute": ("xml", DEFAULT, "", "E234"),
    "a default value of an attribute that is not read": ("xml", DEFAULT, DROP, "E234"),
    "entities in entities": ("xml", ENTITIES, "", "E234"),
    "the name of an element": ("xml", b"<l><r><" + b"x" * LONG + b"/></r></l>", "", "E235"),
    "the name of an attribute": ("xml", b"<l><r " + b"x" * 70_000 + b"='1'/></l>", "", "E229"),
    "an attribute": ("xml", b"<l><r z='" + b"x" * LONG + b"'/></l>", "", "E235"),
    "a comment": ("xml", b"<l><!-- " + b"x" * LONG + b" --><r><a>1</a></r></l>", "", "E235"),
    "attributes": ("xml", b"<l><r " + b" ".join(b"a%d='1'" % at for at in range(100_000)) + b"/></l>", DROP, "E233"),
    "elements": ("xml", b"<l><r>" + b"".join(b"<e%d/>" % at for at in range(100_000)) + b"</r></l>", "", "E228"),
    "keys, each in a line": ("json", b"".join(b'{"a":"1","k%d":1}\n' % at for at in range(20_000)), "", "E228"),
    "keys of one object": ("json", b"[{" + b",".join(b'"k%d":1' % at for at in range(100_000)) + b"}]", "", "E228"),
    "columns of CSV": ("csv", b",".join(b"c%d" % at for at in range(100_000)) + b"\n", "", "E228"),
    "the name of a column": ("csv", b"a," + b"x" * 1_000_000 + b"\n1,2\n", "", "E229"),
    "a value of a Parquet dictionary": ("parquet", parquet(REPEATED), "", "E236"),
    "a value of an Arrow dictionary": ("arrow", arrow(REPEATED), "", "E236"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(bed, name):
    form, content, extra, code = REFUSED[name]
    pipeline = PIPELINE.format(form=form, extra=f"{EXTRA.get(form, '')} {extra}", out="csv")
    ended = bed.run({"pipeline.yaml": pipeline, "in": content})
    assert (ended.code, f" {code}: " in ended.err, "in: " in ended.err) == (4, True, True), ended.err
    assert not (ended.folder / "o").exists()


KEYS = b"".join(b'{"a":"%d","k%d":%d}\n' % (at, at, at) for at in range(3000))
MAPS = b"".join(b'{"a":"%d","m":{"k%d":%d}}\n' % (at, at, at) for at in range(20_000))
READ = {
    "keys, each in a line, to JSON": ("json", KEYS, "", "json", lambda text: text.count(b'"k')),
    "keys, each in a line, to CSV": ("json", KEYS, "", "csv", lambda text: text.count(b"\n") - 1),
    "keys that are dropped": ("json", KEYS, DROP, "csv", lambda text: text.count(b"\n") - 1),
    "keys of maps": ("json", MAPS, "", "json", lambda text: text.count(b'{"k') * 3 // 20),
}


@pytest.mark.parametrize("name", READ)
def test_read(bed, name):
    form, content, extra, out, count = READ[name]
    ended = bed.run({"pipeline.yaml": PIPELINE.format(form=form, extra=extra, out=out), "in": content})
    assert (ended.code, ended.err) == (0, "")
    assert count((ended.folder / "o").read_bytes()) == 3000
