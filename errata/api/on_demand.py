"""Lazy proxies of modules that only some commands need, each imported on first use. A check of a pipeline needs none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from errata.amend import compact, correct, dataset_export, erasure_check, repairs, revert, saved_correction, triage
    from errata.api import amendments, results, runs
    from errata.inspect import (
        booked,
        corrections,
        dlq,
        expectations,
        explain,
        forecast,
        letter_sheets,
        next_run,
        restate,
        snapshot,
        verify,
        why,
    )
    from errata.pages import report
else:
    from changelog.lazy_imports import Lazy

    amendments = Lazy("errata.api.amendments")
    booked = Lazy("errata.inspect.booked")
    compact = Lazy("errata.amend.compact")
    correct = Lazy("errata.amend.correct")
    dataset_export = Lazy("errata.amend.dataset_export")
    dlq = Lazy("errata.inspect.dlq")
    erasure_check = Lazy("errata.amend.erasure_check")
    expectations = Lazy("errata.inspect.expectations")
    explain = Lazy("errata.inspect.explain")
    forecast = Lazy("errata.inspect.forecast")
    letter_sheets = Lazy("errata.inspect.letter_sheets")
    next_run = Lazy("errata.inspect.next_run")
    repairs = Lazy("errata.amend.repairs")
    report = Lazy("errata.pages.report")
    corrections = Lazy("errata.inspect.corrections")
    saved_correction = Lazy("errata.amend.saved_correction")
    restate = Lazy("errata.inspect.restate")
    results = Lazy("errata.api.results")
    revert = Lazy("errata.amend.revert")
    runs = Lazy("errata.api.runs")
    snapshot = Lazy("errata.inspect.snapshot")
    triage = Lazy("errata.amend.triage")
    verify = Lazy("errata.inspect.verify")
    why = Lazy("errata.inspect.why")

__all__ = ["amendments", "booked", "compact", "correct", "corrections", "dataset_export", "dlq", "erasure_check", "expectations", "explain", "forecast", "letter_sheets", "next_run", "repairs", "report", "restate", "results", "revert", "runs", "saved_correction", "snapshot", "triage", "verify", "why"]
