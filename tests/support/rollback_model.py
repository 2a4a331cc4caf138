"""The pipeline of the rollback tests and its plain Python model: two sources with a correlation key, three places where records can fail,
a relaxed aggregate and a check behind it.

The model knows nothing of deltas: it settles the last version of the files from nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HEADER = ("id", "sale", "dept", "qty", "k")
CAP = 4
FLOOR = 5

SOURCE = """\
  - type: source
    name: NAME
    config:
      name: NAME
      type: csv
      glob: data/NAME-*.csv
      files: { on_no_match: skip }
      correlation_key: sale
      merge: MERGE
      schema:
        - { name: id, type: int }
        - { name: sale, type: int }
        - { name: dept, type: string }
        - { name: qty, type: string }
        - { name: k, type: int }
"""

PIPELINE = """\
pipeline: { name: sales }
error_handling:
  strategy: continue
  max_group_buffer: 4
  dlq: { path: out/rejected.csv }
nodes:
SOURCES
  - type: merge
    name: both
    inputs: [shop, web]
  - type: transform
    name: parse
    input: both
    config:
      cxl: |
        filter dept != "skip"
        emit n = qty.to_int()
  - type: route
    name: size
    input: parse
    config:
      conditions: { big: 'n >= 10' }
      default: small
  - type: transform
    name: check
    input: size.big
    config:
      cxl: |
        emit share = 100 / k
  - type: aggregate
    name: per_dept
    input: parse
    config:
      group_by: [dept]
      cxl: |
        emit total = sum(n)
        emit items = count(*)
        emit top = max(n)
  - type: transform
    name: floor_check
    input: per_dept
    config:
      cxl: |
        emit ok = 1 / (if total < 5 then 0 else 1)
  - type: output
    name: big
    input: check
    config: { name: big, type: csv, path: out/big.csv }
  - type: output
    name: small
    input: size.small
    config: { name: small, type: csv, path: out/small.csv }
  - type: output
    name: totals
    input: floor_check
    config: { name: totals, type: csv, path: out/totals.csv }
"""

Record = Mapping[str, Any]
Files = Mapping[str, Sequence[Record]]


def pipeline(*, keyed: bool, persist: str = "all", scope: str = "group") -> str:
    """The YAML of the pipeline; `scope`: its `retraction_scope`."""
    merge = "{ strategy: snapshot, primary_key: [id] }" if keyed else "snapshot"
    sources = "".join(SOURCE.replace("NAME", name).replace("MERGE", merge) for name in ("shop", "web"))
    scoped = PIPELINE.replace("  strategy: continue\n", f"  strategy: continue\n  retraction_scope: {scope}\n")
    return scoped.replace("SOURCES\n", sources) + f"changelog: {{ persist: {persist} }}\n"


@dataclass
class Expected:
    """The result of a full run over some files. `rejected` counts entries by category and id; of failed totals the id is empty."""

    big: list[dict[str, str]] = field(default_factory=list)
    small: list[dict[str, str]] = field(default_factory=list)
    totals: list[dict[str, str]] = field(default_factory=list)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(eq=False)
class _Row:
    source: str
    record: Record

    @property
    def unreadable(self) -> bool:
        return self.record["k"] == "x"

    @property
    def group(self) -> Any:
        return self.record["sale"] if self.record["sale"] is not None else id(self)

    @property
    def number(self) -> int | None:
        try:
            return int(self.record["qty"])
        except ValueError:
            return None

    @property
    def passes_filter(self) -> bool:
        return bool(self.record["dept"] != "skip")

    def fails(self) -> bool:
        """Whether the record fails ahead of the aggregate or beside it."""
        return self.fails_ahead() or (self.passes_filter and (self.number or 0) >= 10 and self.record["k"] == 0)

    def fails_ahead(self) -> bool:
        """Whether it fails on the way to the aggregate."""
        return self.passes_filter and self.number is None


def expected(files: Files, *, keyed: bool, scope: str = "group") -> Expected:
    """Settle the files and give outputs and rejects."""
    return _by_record(files, keyed=keyed) if scope == "record" else _by_group(files, keyed=keyed)


def _by_record(files: Files, *, keyed: bool) -> Expected:
    """Under `retraction_scope: record` mates are `held` back from outputs but count; what failed is `gone`."""
    rows = list(_rows(files, keyed=keyed))
    admitted = [row for row in rows if not row.unreadable]
    result, held, gone, categories = Expected(), set[_Row](), set[_Row](), dict[_Row, str]()
    _overflow(rows, admitted, gone, result)
    over = set(gone)

    def take(failed: Iterable[_Row], category: str) -> None:
        for row in failed:
            gone.add(row)
            categories[row] = category if category != "correlated" else categories.get(row, category)
        groups = {(row.source, row.group) for row in failed}
        for row in admitted:
            if (row.source, row.group) in groups and row not in gone and row not in held:
                held.add(row)
                categories[row] = "correlated"

    take([row for row in rows if row.unreadable], "type_coercion_failure")
    while True:
        failing = [row for row in admitted if row not in gone and (row.fails_ahead() if row in held else row.fails())]
        if failing:
            take(failing, "type_coercion_failure")
            continue
        counted = [row for row in admitted if row not in gone and row.passes_filter]
        low = [dept for dept, total in _totals(counted).items() if total[0] < FLOOR]
        if not low:
            break
        result.rejected["type_coercion_failure", ""] += len(low)
        take([row for row in counted if row.record["dept"] in low], "correlated")
    result.rejected.update((category, str(row.record["id"])) for row, category in categories.items() if row not in over)
    _write([row for row in counted if row not in held], counted, result)
    return result


def _by_group(files: Files, *, keyed: bool) -> Expected:
    rows = list(_rows(files, keyed=keyed))
    admitted = [row for row in rows if not row.unreadable]
    result = Expected()
    result.rejected.update(("type_coercion_failure", str(row.record["id"])) for row in rows if row.unreadable)
    out: set[_Row] = set()
    _overflow(rows, admitted, out, result)
    _suppress([row for row in rows if row.unreadable], [], admitted, out, result)
    while True:
        left = [row for row in admitted if row not in out]
        failing = [row for row in left if row.fails()]
        if failing:
            _suppress(failing, failing, admitted, out, result)
            continue
        counted = [row for row in left if row.passes_filter]
        low = [dept for dept, total in _totals(counted).items() if total[0] < FLOOR]
        if not low:
            break
        result.rejected["type_coercion_failure", ""] += len(low)
        _suppress([row for row in counted if row.record["dept"] in low], [], admitted, out, result)
    _write(counted, counted, result)
    return result


def _rows(files: Files, *, keyed: bool) -> Iterator[_Row]:
    for source in ("shop", "web"):
        records = [record for name in sorted(files) if name.startswith(source) for record in files[name]]
        good = [record for record in records if not keyed or record["k"] != "x"]
        bad = [record for record in records if keyed and record["k"] == "x"]
        yield from (_Row(source, record) for record in [*(sorted(good, key=lambda one: int(one["id"])) if keyed else good), *bad])


def _overflow(rows: Iterable[_Row], admitted: Sequence[_Row], out: set[_Row], result: Expected) -> None:
    sizes = Counter(row.group for row in rows)
    seen: set[Any] = set()
    for row in admitted:
        if sizes[row.group] > CAP:
            result.rejected["correlated" if row.group in seen else "group_size_exceeded", str(row.record["id"])] += 1
            seen.add(row.group)
            out.add(row)


def _suppress(rows: Iterable[_Row], triggers: Sequence[_Row], admitted: Sequence[_Row], out: set[_Row], result: Expected) -> None:
    """Take the groups of rows, within their sources, out."""
    groups = {(row.source, row.group) for row in rows}
    for row in admitted:
        if (row.source, row.group) in groups and row not in out:
            result.rejected["type_coercion_failure" if row in triggers else "correlated", str(row.record["id"])] += 1
            out.add(row)


def _totals(rows: Iterable[_Row]) -> dict[str, tuple[int, int, int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        numbers[row.record["dept"]].append(row.number or 0)
    return {dept: (sum(values), len(values), max(values)) for dept, values in numbers.items()}


def _write(rows: Sequence[_Row], counted: Sequence[_Row], result: Expected) -> None:
    for row in rows:
        shown = {name: "" if row.record[name] is None else str(row.record[name]) for name in HEADER} | {"n": str(row.number)}
        if (row.number or 0) >= 10:
            share = "" if row.record["k"] is None else str(int(100 / row.record["k"]))
            result.big.append(shown | {"share": share})
        else:
            result.small.append(shown)
    for dept, (total, items, top) in sorted(_totals(counted).items()):
        result.totals.append({"dept": dept, "total": str(total), "items": str(items), "top": str(top), "ok": "1"})
