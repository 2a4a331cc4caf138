"""Files of each text format with random changes of structure give records and rejects, or an input error. None crashes, is slow or takes much memory.

`make test` reads 60 of each format, `make deep` 5,000.
"""

from __future__ import annotations

import random
import re
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from storage import formats
from storage.formats import ArrayPath, Column, InputError, Reader, ReadPlan, Section
from tests.unit.formats.test_mutations import mutated

SECONDS, MEGABYTES = 5, 1024
EACH, ALL = 60, 5000
Draw = random.Random
COLUMNS = tuple(Column(name, kind) for name, kind in (("id", "int"), ("day", "nullable(date)"), ("amount", "float"), ("text", "string"), ("more", "any"), ("list", "array")))


def xml(draw: Draw) -> bytes:
    """A document with records, attributes, repeated and nested elements, CDATA, comments, a document type."""
    def value() -> str:
        plain = draw.choice(["1", "2024-01-05", "x", "", " y ", "&amp;", "&#65;", "<![CDATA[<z>]]>", "<!-- c -->", "<?p q?>", "1e400", "é"])
        return plain if draw.random() < 0.995 else "&e;"

    def element(depth: int) -> str:
        tag = draw.choice(["id", "day", "amount", "text", "more", "list", "p:q", "r", "ü"])
        inner = "".join(element(depth + 1) for _ in range(draw.randint(0, 3))) if depth < 4 and draw.random() < 0.3 else value()
        attributes = "".join(f' {name}="{draw.choice(["1", "", "é&lt;", " x ", "&#10;"])}"' for name in draw.sample(["k", "p:k", "xmlns:p", "xmlns"], draw.randint(0, 2)))
        return f"<{tag}{attributes}>{inner}</{tag}>" if inner or draw.random() < 0.5 else f"<{tag}{attributes}/>"

    records = "".join(f"<r>{''.join(element(0) for _ in range(draw.randint(0, 5)))}</r>{draw.choice(['', chr(10), ' t '])}" for _ in range(draw.randint(0, 8)))
    declared = ['<!DOCTYPE x SYSTEM "x.dtd">', "<!DOCTYPE x [<!ELEMENT x ANY>]>", '<!DOCTYPE x [<!ENTITY e "v">]>', '<!DOCTYPE x [<!ATTLIST r k CDATA "v">]>']
    kind = draw.choices(["", *declared], [80, 5, 5, 3, 3])[0]
    encoding = draw.choices(["utf-8", "utf-16", "iso-8859-1", "utf-7", "bogus"], [80, 5, 5, 2, 2])[0]
    head = f'<?xml version="1.0" encoding="{encoding}"?>' if encoding != "utf-8" or draw.random() < 0.5 else ""
    text = f"{head}{kind}<x>{records}</x>"
    return text.encode(encoding, "replace") if encoding in ("utf-16", "iso-8859-1") else text.encode()


def json(draw: Draw) -> bytes:
    """An array, an object or lines of objects, with nested values and huge numbers."""
    def value(depth: int = 0) -> str:
        if depth < 4 and draw.random() < 0.25:
            inner = [value(depth + 1) for _ in range(draw.randint(0, 3))]
            keys = [draw.choice(NAMES) for _ in inner]
            return f"[{','.join(inner)}]" if draw.random() < 0.5 else "{" + ",".join(f"{key}:{one}" for key, one in zip(keys, inner, strict=True)) + "}"
        return draw.choice(["1", "-0", "1.5", "1e400", "9" * 30, "true", "null", '""', '"x"', '"2024-01-05"', '"\\u00e9"', '"\\u0000"', '"é\\n"', draw.choice(['"\\ud800"', "NaN", "01", "1", "2", "3"])])

    def record() -> str:
        return "{" + ",".join(f"{draw.choice(NAMES)}: {value()}" for _ in range(draw.randint(0, 6))) + "}"

    records = [record() if draw.random() < 0.95 else value() for _ in range(draw.randint(0, 10))]
    form = draw.choice(["lines", "array", "path"])
    text = draw.choice(["\n", "\r\n", "\n\n"]).join(records) if form == "lines" else f"[{', '.join(records)}]"
    return (f'{{"h": {value()}, "rows": {text}, "t": 1}}' if form == "path" else text).encode("utf-8", "surrogatepass")


NAMES = ['"id"', '"day"', '"amount"', '"text"', '"more"', '"list"', '"a.b"', '""', '"é"', '"\\u0000"']


def csv(draw: Draw) -> bytes:
    """A header and rows, some too short or too long, quoted cells, line ends of all kinds."""
    def cell() -> str:
        text = draw.choice(["1", "", " 2", "2024-01-05", "1e400", "nan", "0x1F", "x,y", 'q"q', "a\nb", "é", "9" * 30, "[1]", "\x00", "=1+1"])
        return '"' + text.replace('"', '""') + '"' if draw.random() < 0.3 or any(sign in text for sign in ',"\n') else text

    end = draw.choice(["\n", "\r\n", "\r"])
    header = draw.sample(["id", "day", "amount", "text", "more", "list", "other", "id", ""], draw.randint(1, 8))
    rows = [[cell() for _ in range(max(0, len(header) + (draw.choice([-1, 1, 5]) if draw.random() < 0.1 else 0)))] for _ in range(draw.randint(0, 12))]
    text = end.join([",".join(header), *map(",".join, rows)]) + draw.choice(["", end])
    return text.encode(draw.choices(["utf-8", "utf-8-sig", "cp1252", "utf-16"], [80, 8, 6, 6])[0])


def fixed_width(draw: Draw) -> bytes:
    """Lines of fields, some cut off or too long."""
    cells = lambda: (str(draw.randint(-9, 9999)).rjust(4), draw.choice(["2024-01-05", "x" * 10, " " * 10]), draw.choice(["  1.5", "1e400", "     "]), draw.choice(["ab", "é ", "   "]))  # noqa: E731
    lines = ["".join(cells())[: None if draw.random() < 0.9 else draw.randint(0, 20)] for _ in range(draw.randint(0, 12))]
    return draw.choice(["\n", "\r\n", ""]).join(lines).encode()


def edifact(draw: Draw) -> bytes:
    """An interchange with messages, released characters, composites, mostly correct counts."""
    off = lambda number: number + (draw.random() < 0.05)  # noqa: E731
    element = lambda: draw.choice(["", "1", "x:y", "?'", "??", "?+z", "é", "1" * 40, "A B"])  # noqa: E731
    text = "UNB+UNOC:3+S+R+240101:1200+1'"
    count = draw.randint(0, 4)
    for message in range(count):
        segments = [f"{draw.choice(['BGM', 'NAD', 'LIN', 'QTY', 'é'])}+{'+'.join(element() for _ in range(draw.randint(0, 6)))}'" for _ in range(draw.randint(0, 5))]
        text += f"UNH+{message}+ORDERS:D:96A'{draw.choice(['', chr(10)]).join(segments)}UNT+{off(len(segments) + 2)}+{message}'"
    text = f"{text}UNZ+{off(count)}+1'{draw.choices(['', chr(10), 'x'], [60, 35, 5])[0]}"
    advice = draw.choice(["", "UNA:+.? '", "UNA|*.! ~"])
    return (advice + (text.translate(str.maketrans(":+?'", "|*!~")) if "|" in advice else text)).encode()


def x12(draw: Draw) -> bytes:
    """An interchange with groups and sets, mostly correct counts."""
    off = lambda number: number + (draw.random() < 0.05)  # noqa: E731
    element = lambda: draw.choice(["", "1", "x:y", "é", "1" * 40, "A B", "^"])  # noqa: E731
    end = draw.choice(["~", "~\n", "\n"])
    text = f"ISA*00*          *00*          *ZZ*S              *ZZ*R              *240101*1200*U*00401*000000001*0*P*:{end}"
    groups = draw.randint(0, 2)
    for group in range(groups):
        sets = draw.randint(0, 3)
        text += f"GS*PO*S*R*20240101*1200*{group}*X*004010{end}"
        for one in range(sets):
            segments = [f"{draw.choice(['BEG', 'PO1', 'N1'])}*{'*'.join(element() for _ in range(draw.randint(0, 6)))}{end}" for _ in range(draw.randint(0, 5))]
            text += f"ST*850*{one:04d}{end}{''.join(segments)}SE*{off(len(segments) + 2)}*{one:04d}{end}"
        text += f"GE*{off(sets)}*{group}{end}"
    return f"{text}IEA*{off(groups)}*000000001{end}{draw.choices(['', 'x'], [95, 5])[0]}".encode()


LAYOUT = {"fields": [{"name": name, "width": width} for name, width in (("id", 4), ("day", 10), ("amount", 5), ("text", 3))]}
SEGMENTS = (Column("seg_id"), Column("e01", "any"), Column("e02", "int"))


@dataclass(frozen=True)
class Kind:
    """A generator of files of a format, and the options to read them with."""

    make: Callable[[Draw], bytes]
    options: Sequence[dict[str, object]]
    columns: Sequence[Column] = COLUMNS
    nested: bool = False
    section: Section | None = None

    def reader(self, form: str, draw: Draw) -> Reader:
        """A reader with options that were drawn."""
        arrays = tuple(ArrayPath(path, mode) for path, mode in (("list", draw.choice(["explode", "join"])), ("more", "explode")) if self.nested and draw.random() < 0.3)
        sections = (self.section,) if self.section and draw.random() < 0.3 else ()
        policy = draw.choice(["auto_widen", "auto_widen", "drop", "reject"])
        plan = ReadPlan(
            tuple(draw.sample(self.columns, draw.randint(1, len(self.columns)))), on_unmapped=policy, array_paths=arrays,
            layout=LAYOUT if form == "fixed_width" else None, sections=sections, document=bool(sections),
        )  # fmt: skip
        return formats.reader(form, draw.choice(self.options), plan)


KINDS = {
    "xml": Kind(xml, [{"record_path": "//r"}, {"record_path": "/x/r"}, {}, {"record_path": "//r", "namespace_handling": "qualify"}], nested=True, section=Section("s", "xml_path", "/x/r/text", (Column("k", "int"),))),
    "json": Kind(json, [{}, {"format": "ndjson"}, {"record_path": "rows"}, {"format": "array"}], nested=True, section=Section("s", "json_pointer", "/h", (Column("id", "int"),))),
    "csv": Kind(csv, [{}, {}, {}, {"has_header": False}, {"encoding": "utf-16"}, {"encoding": "cp1252"}, {"delimiter": ";"}]),
    "fixed_width": Kind(fixed_width, [{}, {"line_separator": "none"}, {"line_separator": "crlf"}], COLUMNS[:4]),
    "edifact": Kind(edifact, [{}, {"max_elements": 3}], SEGMENTS, section=Section("s", "segment", "UNB", (Column("e02"),))),
    "x12": Kind(x12, [{}, {"max_elements": 3}], SEGMENTS, section=Section("s", "segment", "ISA", (Column("e05"),))),
}


def large(data: bytes, draw: Draw) -> bytes:
    """Sometimes repeat a part of the file many times."""
    at, size = draw.randrange(len(data) + 1), draw.randint(1, 40)
    return data[:at] + data[at : at + size] * draw.choice([10, 1000, 20_000]) + data[at:]


def survives(form: str, seed: int) -> None:
    """Scan one file, cut it into ranges and read it, in every way that a run does."""
    draw = random.Random(f"{form} {seed}")
    kind = KINDS[form]
    data, reader = kind.make(draw), kind.reader(form, draw)
    data = mutated(data, draw) if data and draw.random() < 0.4 else data
    data = large(data, draw) if draw.random() < 0.05 else data
    began = time.process_time()
    try:
        found = reader.undeclared(data, "f.x")
        reader = reader.with_undeclared(found)
        reader.envelope(data, "f.x")
        whole = rows_of(reader, data, None)
        target = max(draw.choice([20, 200, 1 << 24]), len(data) // 50)
        parts = [number for part in reader.split(data, "f.x", target) for number in rows_of(reader, data[part.start : part.end], part)]
        message, right = "", whole == parts == list(range(1, len(whole) + 1))
    except InputError as wrong:
        message, right = str(wrong), True
    assert right, (form, seed)
    assert not message or re.match(r"f\.x: \S", message), (form, seed)
    assert time.process_time() - began < SECONDS, (form, seed)


def rows_of(reader: Reader, data: bytes, part: formats.Range | None) -> list[int]:
    """The numbers of the records."""
    return [row for batch in reader.read(data, "f.x", part) for row in batch.column(formats.ROW).to_pylist()]


def largest() -> int:
    """The largest memory of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.parametrize("form", KINDS)
def test_sixty_files(form):
    for seed in range(EACH):
        survives(form, seed)


@pytest.mark.deep
@pytest.mark.parametrize("form", KINDS)
def test_five_thousand_files(form):
    before = largest()
    for seed in range(ALL):
        survives(form, seed)
    assert largest() - before < MEGABYTES
