"""Refusals of an erasure: values that it cannot reach, and files that would bring the records back. Nothing is erased before these are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import cast

from changelog.lazy_imports import pl
from errata.amend.held_records import HeldRecords, answered, present_names
from errata.amend.matched_records import Matched, Meant, ways_of_naming
from errata.core.failures import Stopped, Usage
from errata.core.options import Erasure
from errata.erasure.scrub import Scrub
from errata.erasure.search import Search
from errata.erasure.values import Values
from errata.execution.epoch import Epoch
from errata.plan.plan import Plan
from errata.state.run_state import RunState
from operators.source.node import SourceNode


def refuse_memories(plan: Plan, names: Iterable[str]) -> None:
    """Raise Usage where a source keeps more of what its files hold than its rows: then nothing keeps that out."""
    for name in names:
        if cast("SourceNode", plan[name].operator).config.remembers:
            raise Usage(f"source '{name}' remembers the versions of all records in its files, so --keep-out cannot keep any out", help="take the records out of the files")


def refuse_words(values: Values, texts: Iterable[str]) -> None:
    """Raise Usage where the words of the command quote a value of the records: the ledger keeps them."""
    if any(values.blanked(text) != text for text in texts):
        raise Usage("the reason, the name or the batch id quotes an erased value, and it would stay in the ledger", help="say it in other words")


def refuse_names(plan: Plan, values: Values) -> None:
    """Raise Stopped where the name of an input file has a value of the records: the ledger would name it again. Files that are gone lose their names there."""
    present = [file for node in plan.of_kind("source") for file in present_names(node, plan)]
    paths = pl.Series("path", list(dict.fromkeys(present)), pl.String)
    named = paths.filter(values.holding(paths, whole=False)).to_list()
    if named:
        raise Stopped(
            f"{'the name of an input file has' if len(named) == 1 else f'the names of {len(named)} input files have'} a value of the records", details=named[:20],
            help="rename or remove them, then erase again", redacted="names of input files have values of the records",
        )  # fmt: skip


def refuse_corrections(scrub: Scrub) -> None:
    """Raise Stopped where corrections as code are about the records: the state would keep what they say."""
    quoting = list(scrub.quoting())
    if quoting:
        raise Stopped(
            f"{'a correction' if len(quoting) == 1 else f'{len(quoting)} corrections'} as code {'names or quotes' if len(quoting) == 1 else 'name or quote'} the records", details=quoting[:20],
            help="take them out of their files, run, then erase again", redacted="corrections as code name or quote the records",
        )  # fmt: skip


def refuse_held(epoch: Epoch, run: RunState, wanted: Erasure, matched: Mapping[str, Matched], values: Values) -> None:
    """Raise Stopped where an input has the records: the next run would bring them back. Raises StorageFailed where one cannot be read."""
    held: list[str] = []
    with answered(epoch) as answers:
        for name, one in matched.items():
            node = epoch.plan[name]
            erased = one.op_rows(run, node) if one.keys else None
            held += HeldRecords(run, Meant(epoch.state, run, node, wanted), erased, ways_of_naming(node, wanted), Search(values), answers).places()
    if held:
        raise Stopped(
            f"{_places(held)} the records, so a later run would bring them back", details=held[:20],
            help="take them out of the files first, or let later runs leave them out: --keep-out", redacted="input files hold the records",
        )  # fmt: skip


def _places(held: Collection[str]) -> str:
    return "a place of input files holds" if len(held) == 1 else f"{len(held)} places of input files hold"
