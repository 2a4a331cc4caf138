"""The last run of a pipeline as Prometheus text, for the textfile collector of a node exporter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

_GAUGES = {
    "errata_run_duration_seconds": "How long the last run took.",
    "errata_run_exit_code": "Exit code of the last run.",
    "errata_run_finished_timestamp_seconds": "When the last run ended, in seconds since 1970.",
    "errata_run_peak_memory_bytes": "The most memory that the last run had resident.",
    "errata_run_warnings": "Warnings of the last run.",
    "errata_epoch": "The epoch that stands.",
    "errata_records": "Records that stand, or that a run came to which a threshold ended: read (total), in outputs (ok), rejected (dlq), rejected and waived (waived).",
    "errata_dead_letters": "Rejected records that are not waived, by category.",
    "errata_dead_letters_oldest_timestamp_seconds": "Since when the oldest of them is rejected, in seconds since 1970.",
    "errata_expectation_failing_rows": "Rows that fail an expectation, by the name of the expectation.",
    "errata_changes": "Op rows that the last run brought, by node and op.",
}


def prometheus_text(content: Mapping[str, Any]) -> str:
    """The text of a run's metrics, given as the metrics file has them."""
    lines: dict[str, list[str]] = {name: [] for name in _GAUGES}
    for name, labels, value in _samples(content):
        shown = ",".join(f'{label}="{_escaped(str(text))}"' for label, text in {"pipeline": content["pipeline_name"], **labels}.items())
        lines[name].append(f"{name}{{{shown}}} {value}\n")
    parts = (f"# HELP {name} {_GAUGES[name]}\n# TYPE {name} gauge\n{''.join(samples)}" for name, samples in lines.items() if samples)
    return "".join(parts)


def _samples(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    yield "errata_run_duration_seconds", {}, content["duration_ms"] / 1000
    yield "errata_run_exit_code", {}, content["exit_code"]
    yield "errata_run_finished_timestamp_seconds", {}, datetime.fromisoformat(content["finished_at"]).timestamp()
    yield "errata_run_peak_memory_bytes", {}, content["peak_rss_bytes"]
    yield "errata_run_warnings", {}, content["warnings"]
    if content["epoch"] is not None:
        yield "errata_epoch", {}, content["epoch"]
    for state in ("total", "ok", "dlq", "waived"):
        yield "errata_records", {"state": state}, content[f"records_{state}"]
    letters = content["dlq"]
    for category, count in letters["categories"].items():
        yield "errata_dead_letters", {"category": category}, count
    if letters["oldest_since"] is not None:
        yield "errata_dead_letters_oldest_timestamp_seconds", {}, datetime.fromisoformat(letters["oldest_since"]).timestamp()
    for name, failing in content.get("expectations", {}).items():
        yield "errata_expectation_failing_rows", {"expectation": name}, failing
    for node, ops in content["changes"].items():
        for op, count in ops.items():
            yield "errata_changes", {"node": node, "op": op}, count


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
