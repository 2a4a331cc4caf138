"""Formats from file to file: envelopes through incremental runs, layout files, interchanges, undeclared fields, nulls and maps in every writer.

The expected figures come from manual calculation or from the standard library's parsers.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.pipelines import Folder, command, limited, standing_in

XML_SOURCE = """
pipeline: {name: payments}
nodes:
  - type: source
    name: payments
    config:
      name: payments
      type: xml
      glob: in/*.xml
      options: {record_path: /d/p}
      MERGE
      envelope:
        sections:
          Head: {extract: {xml_path: /d/Head}, fields: {batch: string, due: date}}
          Foot: {extract: {xml_path: /d/Foot}, fields: {count: int}}
      schema: [{name: id, type: int}, {name: amount, type: float}]
"""
TAGGED = """
  - {type: transform, name: tag, input: payments, config: {cxl: "emit batch = $doc.Head.batch\\nemit share = amount / $doc.Foot.count\\n"}}
  - {type: output, name: out, input: tag, config: {name: out, type: csv, path: out.csv, if_exists: overwrite}}
"""


def document(batch: str, count: int, payments: Sequence[tuple[int, int]]) -> str:
    body = "".join(f"<p><id>{number}</id><amount>{amount}</amount></p>" for number, amount in payments)
    return f"<d><Head><batch>{batch}</batch><due>2024-02-29</due></Head>{body}<Foot><count>{count}</count></Foot></d>"


def project(path: Path, pipeline: str, files: Mapping[str, str]) -> Folder:
    folder = Folder(path)
    folder.write("pipeline.yaml", pipeline)
    for name, text in files.items():
        folder.write(name, text)
    return folder


def stopped(folder: Folder) -> tuple[int, str]:
    """Exit code and standard error of a run."""
    with standing_in(folder.path):
        code, _, stderr = command("run", "pipeline.yaml")
    return code, stderr


def both_merges(text: str, merge: str) -> str:
    return text.replace("      MERGE\n", f"      merge: {merge}\n" if merge else "")


# Envelopes --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("merge", ["", "{strategy: snapshot, primary_key: [id]}"])
def test_a_changed_trailer_corrects_the_records_of_its_file_and_no_others(tmp_path, merge):
    files = {"in/a.xml": document("A", 2, [(1, 10), (2, 20)]), "in/b.xml": document("B", 1, [(3, 30)])}
    folder = project(tmp_path, both_merges(XML_SOURCE + TAGGED, merge), files)
    folder.run()
    assert folder.text("out.csv") == "id,amount,batch,share\n1,10,A,5\n2,20,A,10\n3,30,B,30\n"
    folder.write("in/a.xml", document("A", 4, [(1, 10), (2, 20)]))
    folder.run()
    assert folder.text("out.csv") == "id,amount,batch,share\n1,10,A,2.5\n2,20,A,5\n3,30,B,30\n"
    changed = {int(row["data"]["id"]) for row in folder.log("tag") if row["epoch"] == 2}
    assert changed == {1, 2}
    assert folder.violations() == []


def test_sections_that_nobody_reads_are_not_kept(tmp_path):
    plain = XML_SOURCE.replace("      MERGE\n", "") + "  - {type: output, name: out, input: payments, config: {name: out, type: csv, path: out.csv}}\n"
    folder = project(tmp_path, plain, {"in/a.xml": document("A", 1, [(1, 10)])})
    folder.run()
    folder.write("in/a.xml", document("Z", 9, [(1, 10)]))
    assert not folder.run().committed


def test_a_document_is_read_behind_merge_route_and_distinct(tmp_path):
    nodes = """
  - {type: source, name: plain, config: {name: plain, type: csv, path: plain.csv, schema: [{name: id, type: int}, {name: amount, type: float}]}}
  - {type: merge, name: all, inputs: [payments, plain], config: {}}
  - type: route
    name: parts
    input: all
    config: {mode: exclusive, conditions: {big: "$doc.Foot.count > 1"}, default: rest}
  - {type: transform, name: big, input: parts.big, config: {cxl: "emit due = $doc.Head.due.add_days(1)\\ndistinct by due\\n"}}
  - {type: transform, name: rest, input: parts.rest, config: {cxl: "emit batch = $doc.Head.batch ?? \\"none\\"\\n"}}
  - {type: output, name: one, input: big, config: {name: one, type: csv, path: big.csv}}
  - {type: output, name: two, input: rest, config: {name: two, type: csv, path: rest.csv}}
"""
    files = {"in/a.xml": document("A", 2, [(1, 10), (2, 20)]), "in/b.xml": document("B", 1, [(3, 30)]), "plain.csv": "id,amount\n4,40\n"}
    folder = project(tmp_path, XML_SOURCE.replace("      MERGE\n", "") + nodes, files)
    folder.run()
    assert folder.text("big.csv") == "id,amount,due\n1,10,2024-03-01\n"
    assert folder.text("rest.csv") == "id,amount,batch\n3,30,B\n4,40,none\n"


def test_an_unknown_section_or_field_is_null_and_told_with_the_one_that_was_meant(tmp_path):
    wrong = XML_SOURCE.replace("      MERGE\n", "") + TAGGED.replace("$doc.Foot.count", "$doc.Foot.cuont")
    folder = project(tmp_path, wrong, {"in/a.xml": document("A", 1, [(1, 1)])})
    code, stderr = stopped(folder)
    assert code == 0
    assert "$doc.Foot.cuont" in stderr
    assert "count" in stderr.split("help", 1)[1]
    assert folder.text("out.csv") == "id,amount,batch,share\n1,1,A,\n"


documents = st.dictionaries(
    st.sampled_from(["in/a.xml", "in/b.xml", "in/c.xml"]),
    st.tuples(st.sampled_from("ABC"), st.integers(1, 4), st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), max_size=4)),
    min_size=1,
)


@given(versions=st.lists(documents, min_size=2, max_size=4))
@examples(16, 5, suppress_health_check=[HealthCheck.too_slow])
def test_documents_that_change_end_as_one_full_run_would(versions):
    with tempfile.TemporaryDirectory() as at:
        folder = project(Path(at), XML_SOURCE.replace("      MERGE\n", "") + TAGGED, {})
        (Path(at) / "in").mkdir()
        for files in versions:
            for old in (Path(at) / "in").iterdir():
                old.unlink()
            for name, (batch, count, payments) in files.items():
                folder.write(name, document(batch, count, payments))
            folder.run()
            rows = [(number, amount, batch, amount / count) for _, (batch, count, payments) in sorted(files.items()) for number, amount in payments]
            got = [(int(row["id"]), int(row["amount"]), row["batch"], float(row["share"])) for row in folder.rows("out.csv")]
            assert got == [(number, amount, batch, pytest.approx(share)) for number, amount, batch, share in rows]


# Layout files -----------------------------------------------------------------------------------------------------------
FIXED = """
pipeline: {name: fixed}
nodes:
  - type: source
    name: s
    config:
      name: s
      type: fixed_width
      path: s.txt
      format_schema: layouts/in.yaml
      schema: [{name: code, type: string}, {name: n, type: int}]
  - {type: output, name: out, input: s, config: {name: out, type: fixed_width, path: out.txt, schema: layouts/out.yaml, if_exists: overwrite}}
"""
IN = "fields:\n  - {name: code, width: 3}\n  - {name: n, width: 4, type: integer}\n"
OUT = "fields:\n  - {name: n, width: 5, type: integer, pad: 0}\n  - {name: code, width: 3}\n"


def test_a_layout_file_that_changes_is_a_change_of_logic(tmp_path):
    folder = project(tmp_path, FIXED, {"s.txt": "abc  12\nx    7 \n", "layouts/in.yaml": IN, "layouts/out.yaml": OUT})
    folder.run()
    assert folder.text("out.txt") == "00012abc\n00007x  \n"
    folder.write("layouts/out.yaml", OUT.replace("width: 5", "width: 3"))
    folder.run()
    assert folder.text("out.txt") == "012abc\n007x  \n"
    folder.write("layouts/in.yaml", IN.replace("width: 3", "width: 2").replace("{name: n,", "{name: n, start: 3,"))
    folder.run()
    assert folder.text("out.txt") == "012ab \n007x  \n"
    assert not folder.run().committed


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("fields: [{name: n, width: 3, widht: 4}]", "widht"),
        ("fields: [{name: n}]", "needs width or end"),
        ("fields: []", "fields"),
        ("fields: [{name: n, name: m, width: 3}]", "'name' comes twice"),
        ("a: &a {name: n, width: 3}\nfields: [*a]", "aliases"),
        ("- 1", "holds no map"),
        ("fields: [", "is no YAML"),
        ("[" * 3000, "is no YAML"),
        ("x: " + "y" * 1_000_001, "larger than 1,000,000 bytes"),
    ],
)
def test_a_bad_layout_file_is_told_by_its_key(tmp_path, layout, message):
    code, error = stopped(project(tmp_path, FIXED, {"s.txt": "abc  12\n", "layouts/in.yaml": IN, "layouts/out.yaml": layout}))
    assert code == 1
    assert "E218" in error
    assert message in error
    assert "schema: layouts/out.yaml" in error


def test_a_layout_file_stays_inside_the_project(tmp_path):
    inside = tmp_path / "project"
    (tmp_path / "secret.yaml").write_text(OUT)
    folder = project(inside, FIXED, {"s.txt": "abc  12\n", "layouts/in.yaml": IN})
    (inside / "layouts/out.yaml").symlink_to(tmp_path / "secret.yaml")
    code, error = stopped(folder)
    assert (code, "leads out of the pipeline's folder" in error) == (1, True)
    folder.write("pipeline.yaml", FIXED.replace("layouts/out.yaml", "../secret.yaml"))
    assert "E232" in stopped(folder)[1]


@pytest.mark.parametrize("rows", [2, 60_000])
def test_text_that_is_cut_is_warned_of_once_for_each_field(tmp_path, rows):
    folder = project(tmp_path, FIXED, {"s.txt": "abc  12\n" * rows, "layouts/in.yaml": IN, "layouts/out.yaml": OUT.replace("width: 3", "width: 2")})
    code, stderr = stopped(folder)
    assert (code, folder.text("out.txt")) == (0, "00012ab\n" * rows)
    assert stderr.count("warning: output 'out': field 'code': text longer than 2 bytes was cut\n") == stderr.count("was cut") == 1


def test_a_column_that_the_layout_does_not_have_is_told(tmp_path):
    folder = project(tmp_path, FIXED.replace("{name: n, type: int}", "{name: m, type: int}"), {"s.txt": "abc  12\n", "layouts/in.yaml": IN, "layouts/out.yaml": OUT})
    code, stderr = stopped(folder)
    assert (code, "info: source 's': column 'm' is null: the format schema has no field of that name\n" in stderr) == (0, True)


# Interchanges -----------------------------------------------------------------------------------------------------------
EDIFACT = """
pipeline: {name: edi}
nodes:
  - type: source
    name: s
    config:
      name: s
      type: edifact
      path: s.edi
      envelope: {sections: {unb: {extract: {segment: UNB}, fields: {e05: string}}}}
      schema: [{name: seg_id, type: string}, {name: msg_ref, type: string}]
  - {type: transform, name: t, input: s, config: {cxl: "filter seg_id != \\"XXX\\"\\n"}}
  - type: output
    name: out
    input: t
    config: {name: out, type: edifact, path: out.edi, if_exists: overwrite, options: {interchange_from_doc: unb, message_type: "ORDERS:D:96A:UN"}}
"""


@pytest.mark.parametrize(("section", "extract", "message"), [("nope", "segment: UNB", "its sections of this kind: unb"), ("unb", "xml_path: /UNB", "takes segment"), ("unb", "segment: UNB", "")])
def test_a_header_is_echoed_from_a_section_that_a_source_has(tmp_path, section, extract, message):
    pipeline = EDIFACT.replace("interchange_from_doc: unb", f"interchange_from_doc: {section}").replace("segment: UNB", extract)
    folder = project(tmp_path, pipeline, {})
    with standing_in(folder.path):
        code, _, error = command("check", "pipeline.yaml")
    assert (code, message in error) == (1 if message else 0, True)
    assert ("E325" in error) == (section == "nope")


element = st.text(st.characters(codec="ascii", categories=["L", "N"]) | st.sampled_from(" +'?:"), min_size=1, max_size=6).filter(lambda text: text.strip() == text)
segments = st.lists(st.tuples(st.sampled_from(["BGM", "LIN", "QTY"]), st.lists(element, min_size=1, max_size=4)), min_size=1, max_size=4)


def escaped(text: str) -> str:
    return "".join("?" + one if one in "?+'" else one for one in text)


def interchange(messages: Sequence[Sequence[tuple[str, Sequence[str]]]], control: str) -> str:
    lines = [f"UNB+UNOC:3+ME++240105:0915+{control}'"]
    for number, body in enumerate(messages, 1):
        lines.append(f"UNH+M{number}+ORDERS:D:96A:UN'")
        lines += ["+".join([tag, *map(escaped, elements)]) + "'" for tag, elements in body]
        lines.append(f"UNT+{len(body) + 2}+M{number}'")
    return "\n".join([*lines, f"UNZ+{len(messages)}+{control}'", ""])


@given(versions=st.lists(st.tuples(st.lists(segments, min_size=1, max_size=3), st.sampled_from(["IC1", "IC2"])), min_size=1, max_size=2))
@examples(16, 5, suppress_health_check=[HealthCheck.too_slow])
def test_an_interchange_comes_out_as_it_came_in(versions):
    with tempfile.TemporaryDirectory() as at:
        folder = project(Path(at), EDIFACT, {})
        for messages, control in versions:
            folder.write("s.edi", interchange(messages, control))
            folder.run()
            assert folder.text("out.edi") == interchange(messages, control)


def test_an_interchange_without_records_is_an_empty_file(tmp_path):
    folder = project(tmp_path, EDIFACT.replace('seg_id != \\"XXX\\"', "false"), {"s.edi": interchange([[("BGM", ["1"])]], "IC1")})
    folder.run()
    assert folder.text("out.edi") == ""


def test_a_large_output_of_segments_keeps_its_order_and_counts(tmp_path):
    body = [("LIN", [str(number)]) for number in range(1, 40)]
    folder = project(tmp_path, EDIFACT, {"s.edi": interchange([body, body], "IC7")})
    with limited(small_rows=2):
        folder.run()
    assert folder.text("out.edi") == interchange([body, body], "IC7")


# Undeclared fields, nulls and maps in every writer ------------------------------------------------------------------------
ANYTHING = """
pipeline: {name: any}
nodes:
  - type: source
    name: s
    config: {name: s, type: json, path: s.json, options: {format: array}, schema: [{name: id, type: int}, {name: v, type: any}]}
  - {type: output, name: out, input: s, config: {name: out, type: FORMAT, path: out, OPTIONS}}
"""


def written(path: Path, format_: str, options: str, records: Any) -> tuple[int, str, str]:
    folder = project(path, ANYTHING.replace("FORMAT", format_).replace("OPTIONS", options), {"s.json": json.dumps(records)})
    code, stderr = stopped(folder)
    return code, stderr, folder.text("out") if (path / "out").exists() else ""


MIXED = [{"id": 1, "v": "a", "x": 2.5, "y": None}, {"id": 2, "v": None, "x": True, "z": ["p", 1]}, {"id": 3, "v": 1.0, "y": "é\n"}]


def test_undeclared_fields_and_nulls_as_json(tmp_path):
    code, _, text = written(tmp_path, "json", "preserve_nulls: true, options: {format: ndjson}", MIXED)
    first, second, third = map(json.loads, text.splitlines())
    assert code == 0
    assert first == {"id": 1, "v": "a", "x": 2.5, "y": None}
    assert second == {"id": 2, "v": None, "x": True, "z": ["p", 1]}
    assert third == {"id": 3, "v": 1.0, "y": "é\n"}


def test_undeclared_fields_and_nulls_as_csv(tmp_path):
    code, _, text = written(tmp_path, "csv", "", MIXED)
    assert (code, text) == (0, 'id,v,x,y,z\n1,a,2.5,,\n2,,true,,"[""p"",1]"\n3,1,,"é\n",\n')


def test_undeclared_fields_and_nulls_as_xml(tmp_path):
    code, _, text = written(tmp_path, "xml", "", MIXED)
    records = [{child.tag: child.text for child in record} for record in ET.fromstring(text)]  # noqa: S314 - written by the test
    assert code == 0
    assert records == [
        {"id": "1", "v": "a", "x": "2.5", "y": None},
        {"id": "2", "v": None, "x": "true", "z": '["p",1]'},
        {"id": "3", "v": "1", "y": "é\n"},
    ]


def test_a_fixed_width_file_has_the_fields_of_its_layout_only(tmp_path):
    layout = "schema: {fields: [{name: id, width: 3, type: integer}, {name: x, width: 4}, {name: v, width: 2}]}"
    code, _, text = written(tmp_path, "fixed_width", layout, MIXED)
    assert (code, text) == (0, "  12.5 a \n  2true  \n  3    1 \n")


@pytest.mark.parametrize(
    ("format_", "options"),
    [
        ("csv", ""),
        ("fixed_width", "schema: {fields: [{name: v, width: 9}]}"),
        ("edifact", 'mapping: {seg_id: id, e01: v}, options: {interchange: ["A", "B", "C", "D", "E"], message_type: M}'),
    ],
)
@pytest.mark.parametrize("value", [{"a": 1}, {}])
def test_a_map_in_a_column_of_any_type_ends_the_run_of_a_flat_output(tmp_path, format_, options, value):
    code, stderr, text = written(tmp_path, format_, options, [{"id": 1, "v": value}])
    assert (code, text) == (4, "")
    assert "holds a map" in stderr
    assert "UnserializableMapValue" in stderr
    assert "include_unmapped: false" in stderr
    assert "'v.member'" in stderr or format_ == "edifact"


def test_a_map_that_nobody_declared_is_refused_by_its_name(tmp_path):
    code, stderr, _ = written(tmp_path, "csv", "", [{"id": 1, "v": "a", "extra": {"deep": {"er": 1}}}])
    assert code in (0, 4)
    if code == 4:
        assert "extra" in stderr


# Bad records ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("merge", ["", ", merge: {strategy: snapshot, primary_key: [a]}"])
def test_the_first_malformed_record_is_told_with_its_file_and_number(tmp_path, merge):
    pipeline = f"""
pipeline: {{name: bad}}
nodes:
  - {{type: source, name: s, config: {{name: s, type: csv, glob: in/*.csv{merge}, schema: [{{name: a, type: int}}, {{name: b, type: int}}]}}}}
  - {{type: output, name: out, input: s, config: {{name: out, type: csv, path: out.csv}}}}
"""
    folder = project(tmp_path, pipeline, {"in/a.csv": "a,b\n1,2\n", "in/b.csv": "a,b\n3,4\n5\n6,7\n"})
    code, stderr = stopped(folder)
    assert code == 4
    assert "in/b.csv: record 2: 1 cells where the header has 2 (malformed_record)" in stderr


def test_the_text_of_an_unreadable_record_is_in_the_dead_letter_queue(tmp_path):
    pipeline = """
pipeline: {name: bad}
error_handling: {strategy: continue, dlq: {path: dlq.csv}}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: in.csv, schema: [{name: a, type: int}, {name: b, type: int}]}}
  - {type: output, name: out, input: s, config: {name: out, type: csv, path: out.csv}}
"""
    folder = project(tmp_path, pipeline, {"in.csv": "a,b\n1,2\n4,5,6\nx,8\n"})
    assert folder.run().exit_code == 2
    unread, bad = csv.DictReader(folder.text("dlq.csv").splitlines())
    assert (unread["_cxl_dlq_error_category"], unread["_cxl_dlq_raw"], unread["a"]) == ("malformed_record", "4,5,6", "")
    assert (bad["_cxl_dlq_error_category"], bad["_cxl_dlq_raw"], bad["a"]) == ("type_coercion_failure", "", "x")


# Dotted columns ---------------------------------------------------------------------------------------------------------
def test_a_declared_path_is_read_as_it_is_written(tmp_path):
    pipeline = """
pipeline: {name: dotted}
nodes:
  - type: source
    name: s
    config:
      name: s
      type: json
      path: s.json
      options: {format: array}
      schema: [{name: a.b, type: int}, {name: a.c.d, type: string}, {name: m, type: any}]
  - {type: transform, name: t, input: s, config: {cxl: "filter a.b > 1\\nemit up = a.c.d.upper()\\nemit deep = m.x.y\\n"}}
  - type: aggregate
    name: g
    input: t
    config: {group_by: [up], cxl: "emit total = sum(a.b)\\nemit n = count(*)\\n"}
  - {type: output, name: out, input: g, config: {name: out, type: csv, path: out.csv}}
  - {type: output, name: flat, input: t, config: {name: flat, type: json, path: flat.json, options: {format: ndjson}}}
"""
    records = [{"a": {"b": n, "c": {"d": name}}, "m": {"x": {"y": n}}} for n, name in [(1, "p"), (2, "q"), (3, "q")]]
    folder = project(tmp_path, pipeline, {"s.json": json.dumps(records)})
    folder.run()
    assert folder.text("out.csv") == "up,total,n\nQ,5,2\n"
    assert json.loads(folder.text("flat.json").splitlines()[0])["deep"] == 2


def test_an_argument_of_an_aggregate_call_is_the_record_s_field(tmp_path):
    pipeline = """
pipeline: {name: hidden}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: s.csv, schema: [{name: k, type: string}, {name: n, type: int}]}}
  - {type: aggregate, name: g, input: s, config: {group_by: [k], cxl: "emit n = sum(n)\\nemit most = max(n)\\nemit twice = n * 2\\n"}}
  - {type: output, name: out, input: g, config: {name: out, type: csv, path: out.csv}}
"""
    folder = project(tmp_path, pipeline, {"s.csv": "k,n\na,1\na,5\nb,2\n"})
    folder.run()
    assert folder.text("out.csv") == "k,n,most,twice\na,6,5,12\nb,2,2,4\n"


FOREIGN = [
    ("source", "csv", {"array_paths": [{"path": "$.tags"}]}, "array_paths: type 'csv' takes none"),
    ("source", "edifact", {"array_paths": [{"path": "$.tags"}]}, "array_paths: type 'edifact' takes none"),
    ("source", "parquet", {"array_paths": [{"path": "$.tags"}]}, "array_paths: type 'parquet' takes none"),
    ("source", "json", {"format_schema": {"fields": []}}, "format_schema: type 'json' takes none"),
    ("output", "xml", {"schema": {"fields": []}}, "schema: type 'xml' takes none"),
]


@pytest.mark.parametrize(("kind", "form", "more", "message"), FOREIGN)
def test_what_a_format_has_no_use_for_is_refused(kind, form, more, message, tmp_path):
    folder = Folder(tmp_path)
    own = {"source": {}, "output": {}, kind: {"type": form, **more}}
    source = {"name": "s", "type": "csv", "path": "s.txt", "schema": [{"name": "a", "type": "string"}], **own["source"]}
    output = {"name": "o", "type": "csv", "path": "o.txt", **own["output"]}
    nodes = [{"type": "source", "name": "s", "config": source}, {"type": "output", "name": "o", "input": "s", "config": output}]
    folder.write("pipeline.yaml", json.dumps({"pipeline": {"name": "foreign"}, "nodes": nodes}, indent=1))
    with standing_in(tmp_path):
        code, _, stderr = command("check", "pipeline.yaml")
    assert code == 1
    assert f"error[E218]: {message}" in stderr
    assert "leave it out" in stderr


INERT = """
pipeline: {name: inert}
nodes:
  - {type: source, name: s, config: {name: s, type: fixed_width, path: s.dat, schema: [{name: a, type: string}], format_schema: {fields: [{name: a, width: 2}]}%s}}
  - {type: transform, name: t, input: s, config: {cxl: "emit b = $doc.Head.id"}}
  - {type: output, name: o, input: t, config: {name: o, type: csv, path: o.csv}}
"""
SECTION = ', envelope: {sections: {Head: {extract: {xml_path: "/x"}, fields: {id: string}}}}'


@pytest.mark.parametrize(
    ("more", "words", "told_lines"),
    [
        (SECTION, (), ["info: source 's': on_unmapped: auto_widen finds nothing", "info: source 's': envelope: a fixed-width file has no sections"]),
        (SECTION, ("--log-level", "warn"), []),
        (SECTION + ", on_unmapped: drop", (), ["info: source 's': envelope: a fixed-width file has no sections"]),
    ],
)
def test_what_changes_nothing_is_told(more, words, told_lines, tmp_path):
    folder = Folder(tmp_path)
    folder.write("pipeline.yaml", INERT % more)
    folder.write("s.dat", "ab\ncd\n")
    with standing_in(tmp_path):
        code, _, stderr = command("run", "pipeline.yaml", *words)
    assert code == 0
    assert folder.text("o.csv") == "a,b\nab,\ncd,\n"
    lines = [line for line in stderr.splitlines() if line.startswith("info: source")]
    assert [line[: len(start)] for line, start in zip(lines, told_lines, strict=True)] == told_lines


# What would be lost ------------------------------------------------------------------------------------------------------
ITEMS = """
pipeline: {name: items}
error_handling: {strategy: STRATEGY, dlq: {path: dlq.csv}}
nodes:
  - type: source
    name: items
    config:
      name: items
      type: xml
      path: items.xml
      options: {record_path: //item}
      merge: MERGE
      schema: [{name: id, type: int}, {name: tag, type: TYPE}]
  - {type: output, name: out, input: items, config: {name: out, type: json, path: out.json, options: {format: ndjson}, if_exists: overwrite}}
"""
REPEATED = "<items>\n<item><id>1</id><tag>a</tag></item>\n<item><id>2</id><tag>b</tag><tag>c</tag></item>\n</items>\n"


def items(path: Path, text: str, *, strategy: str = "fail_fast", merge: str = "snapshot", declared: str = "string") -> Folder:
    pipeline = ITEMS.replace("STRATEGY", strategy).replace("MERGE", merge).replace("TYPE", declared)
    return project(path, pipeline, {"items.xml": text})


def test_repeated_elements_are_told_or_go_to_the_dead_letter_queue(tmp_path):
    code, stderr = stopped(items(tmp_path, REPEATED))
    assert code == 4
    assert "items.xml: record 2: element 'tag' comes more than once: name it in array_paths, or declare a column 'tag' of type array" in stderr
    folder = items(tmp_path, REPEATED, strategy="continue")
    assert stopped(folder)[0] == 2
    (entry,) = folder.rows("dlq.csv")
    assert (entry["_cxl_dlq_error_category"], entry["_cxl_dlq_source_row"]) == ("malformed_record", "2")
    assert folder.text("out.json") == '{"id":1,"tag":"a"}\n'
    folder = items(tmp_path, REPEATED, declared="array")
    assert stopped(folder)[0] == 0
    assert folder.text("out.json") == '{"id":1,"tag":["a"]}\n{"id":2,"tag":["b","c"]}\n'


@pytest.mark.parametrize("merge", ["snapshot", "{strategy: snapshot, primary_key: [id]}"])
def test_a_record_path_that_finds_nothing_is_warned_of_in_the_run_that_reads_the_file(tmp_path, merge):
    warning = "warning: source 'items': items.xml: no element is at record_path '//item': it gives no records\n"
    folder = items(tmp_path, REPEATED.replace("item>", "Item>").replace("<tag>b</tag>", ""), merge=merge)
    code, stderr = stopped(folder)
    assert (code, warning in stderr) == (0, True)
    assert warning not in stopped(folder)[1]
    folder.write("items.xml", REPEATED.replace("<tag>b</tag>", ""))
    code, stderr = stopped(folder)
    assert (code, warning in stderr) == (0, False)
    assert len(folder.text("out.json").splitlines()) == 2


DEEP = """
pipeline: {name: deep}
nodes:
  - {type: source, name: s, config: {name: s, type: json, path: s.json, schema: [{name: id, type: int}, {name: any, type: any}, {name: text, type: array}]}}
  - {type: transform, name: t, input: s, config: {cxl: "emit copy = any"}}
  - {type: output, name: out, input: t, config: {name: out, type: json, path: out.json, options: {pretty: true}, if_exists: overwrite}}
  - {type: output, name: lines, input: t, config: {name: lines, type: csv, path: out.csv, if_exists: overwrite}}
"""


@pytest.mark.parametrize("levels", [64, 300, 990])
def test_what_is_nested_deep_is_written_and_shown(tmp_path, levels):
    value = "[" * levels + "]" * levels
    folder = project(tmp_path, DEEP, {"s.json": f'[{{"id": 1, "any": {value}, "text": "{value}", "more": {value}}}]'})
    assert stopped(folder)[0] == 0
    loads = json.JSONDecoder(strict=False).decode
    assert loads(folder.text("out.json")) == [{"id": 1, **dict.fromkeys(("any", "text", "copy", "more"), loads(value))}]
    assert folder.rows("out.csv") == [{"id": "1", "any": value, "text": value, "copy": value, "more": value}]
    with standing_in(tmp_path):
        for words in (("show", "pipeline.yaml", "t", "--format", "jsonl"), ("log", "pipeline.yaml", "t", "--format", "jsonl", "--form", "debezium")):
            code, shown, stderr = command(*words)
            assert (code, stderr, value in shown) == (0, "", True)
        assert command("show", "pipeline.yaml", "t")[0] == 0


# One type, two words ----------------------------------------------------------------------------------------------------
TIMES = """
pipeline: {name: times}
nodes:
  - {type: source, name: s, config: {name: s, type: csv, path: s.csv, watermark: {column: t}, merge: {primary_key: [t]}, schema: [{name: t, type: WORD}, {name: u, type: nullable(WORD)}]}}
  - {type: source, name: j, config: {name: j, type: json, path: j.json, envelope: {sections: {head: {extract: {json_pointer: /head}, fields: {t: WORD}}}}, options: {record_path: rows}, schema: [{name: t, type: WORD}]}}
  - {type: source, name: f, config: {name: f, type: fixed_width, path: f.txt, format_schema: {fields: [{name: t, start: 0, width: 19}]}, schema: [{name: t, type: WORD}]}}
  - {type: transform, name: later, input: s, config: {cxl: "emit h = t.hour() + 1"}}
  - {type: transform, name: headed, input: j, config: {cxl: "emit h = $doc.head.t.hour()"}}
  - {type: output, name: one, input: later, config: {name: one, type: csv, path: s.out}}
  - {type: output, name: two, input: headed, config: {name: two, type: csv, path: j.out}}
  - {type: output, name: three, input: f, config: {name: three, type: csv, path: f.out}}
"""


@pytest.mark.parametrize("word", ["date_time", "datetime"])
def test_datetime_is_date_time(tmp_path, word):
    at = "2024-03-15T14:30:00"
    files = {"s.csv": f"t,u\n{at},\n", "j.json": json.dumps({"head": {"t": at}, "rows": [{"t": at}]}), "f.txt": f"{at}\n"}
    folder = project(tmp_path, TIMES.replace("WORD", word), files)
    folder.run()
    assert (folder.text("s.out"), folder.text("j.out"), folder.text("f.out")) == (f"t,u,h\n{at},,15\n", f"t,h\n{at},14\n", f"t\n{at}\n")
    folder.write("s.csv", f"t,u\n{at},{at}\n")
    assert folder.run().committed
    assert folder.text("s.out") == f"t,u,h\n{at},{at},15\n"


def test_a_run_says_of_how_many_empty_arrays_no_record_is_made(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    columns = "schema: [{ name: id, type: int }, { name: s, type: int }], array_paths: [{ path: items, mode: explode }]"
    folder.write("pipeline.yaml", f"""
pipeline: {{ name: explode }}
nodes:
  - {{ type: source, name: orders, config: {{ name: orders, type: json, path: orders.jsonl, on_unmapped: {{ mode: drop }}, {columns} }} }}
  - {{ type: output, name: report, input: orders, config: {{ name: report, type: csv, path: report.csv }} }}
""")
    folder.write("orders.jsonl", '{"id": 1, "items": [{"s": 5}]}\n{"id": 2, "items": []}\n{"id": 3, "items": [ ]}\n{"id": 4}\n')
    code, _, stderr = command("run", str(tmp_path / "pipeline.yaml"))
    assert (code, folder.text("report.csv")) == (0, "id,s\n1,5\n4,\n")
    assert stderr.count("info: source 'orders': orders.jsonl: 2 empty arrays 'items', of which no record is made\n") == 1
    assert "empty array" not in command("run", str(tmp_path / "pipeline.yaml"))[2]
