"""The page of results, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.all import BENCHMARKS

if TYPE_CHECKING:
    from benchmarks.results import Results

INTRODUCTION: Final = (
    "# Benchmarks",
    "",
    "`make bench` measures and writes this page. Every program runs in a process of its own. Figures are processor seconds, of the process and its children, unless a table says",
    "otherwise; all results are compared with DuckDB's after each step: decimals, counts and texts by every digit, floats by twelve. `results.jsonl` has all figures.",
    "A later run has its share of the first run. Where it takes more than the first run, the table says `slower than in full`. / DuckDB says how many times DuckDB's full computation",
    "of the same files it takes: above 1, DuckDB computes everything anew in less time. What was tried and did not pay is in [performance](../docs/how-it-works/performance.md#what-did-not-pay).",
    "",
    "| command | what it does |",
    "|---|---|",
    "| `make bench` | measures what `results.jsonl` lacks, a program after the other, and writes this page after each |",
    "| `make bench ARGS='nexmark upserts'` | some benchmarks only |",
    "| `make bench ARGS='tpch --size 0.1 --engine spark'` | other sizes, other engines |",
    "| `make bench ARGS='--again sales'` | measures anew what was measured |",
    "| `make bench ARGS='--minutes 30'` | begins nothing more after half an hour |",
    "| `make bench ARGS='--list'` | says what would be measured |",
    "",
)


def page(results: Results) -> str:
    """The whole page. A benchmark that was not measured has no table yet."""
    lines = [*INTRODUCTION]
    for benchmark in BENCHMARKS.values():
        if results.among(benchmark.programs) or not benchmark.programs:
            lines += benchmark.show(results)
    return "\n".join(lines).rstrip() + "\n"
