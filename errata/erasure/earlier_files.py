"""Files that outputs wrote in earlier epochs and that no epoch writes again, such as changes by epoch: nothing that is erased may stay in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from errata.erasure.search import Search
from errata.erasure.values import Values
from errata.outputs.staged_files import StagedFiles, Written
from errata.outputs.targets import CHANGES, file_outputs
from errata.plan.plan import Node, Plan
from storage.files.stores import store_of
from storage.state.entry import Entry
from storage.stores.places import Place


@dataclass(slots=True)
class EarlierFiles:
    """Clears the files of earlier epochs.

    Attributes:
        scrubbed: By node the epochs in which its op rows are others now.
        again: Stages the changes of an epoch anew.
        superseded: What the ledger kept of the files in whose place others are staged. Should the run be killed, the next one removes them.
    """

    plan: Plan
    staged: StagedFiles
    values: Values
    scrubbed: Mapping[str, Collection[int]]
    again: Callable[[Node, Entry], list[Written]]
    superseded: list[Mapping[str, Any]] = field(default_factory=list)

    def cleared(self, before: Entry, rewritten: Entry) -> Entry:
        """Clear the files of an epoch. Changes are staged anew, any other file that was made of erased records or holds a value is removed.

        Args:
            before: The entry that committed the epoch.
            rewritten: What takes its place in the ledger.

        Returns:
            The latter with the files that stay.
        """
        nodes = dict(rewritten.nodes)
        for node in file_outputs(self.plan):
            if node.name in nodes:
                files = before.nodes[node.name].get("files", ())
                nodes[node.name] = {**nodes[node.name], "files": [kept for one in files for kept in self._kept(node, before, one)]}
        return replace(rewritten, nodes=nodes)

    def _kept(self, node: Node, before: Entry, one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The ledger's record of a file."""
        place = self.plan.settings.places / one["path"]
        if "mark" in one or any(place == written.target for written in self.staged.written) or not place.exists():
            return [one]
        if CHANGES in one and before.epoch in self.scrubbed.get(node.name, ()):
            return self._staged_again(node, before, one, place)
        if place in self.staged.gone or self._had_records(node, before.epoch) or Search(self.values).found_in(bytes(store_of(place).content(place))):
            self.staged.gone[place] = one
            return []
        return [one]

    def _had_records(self, node: Node, epoch: int) -> bool:
        """Whether a node's live rows of an epoch may be of erased records, or have values of them: a file of these rows has them too, whatever it says."""
        epochs = self.scrubbed.get(node.name)
        if not epochs:
            return False
        remembers = any(one.operator.remembers for one in self.plan)
        return min(epochs) <= epoch and (remembers or epoch <= max(epochs))

    def _staged_again(self, node: Node, before: Entry, one: Mapping[str, Any], place: Place) -> list[Mapping[str, Any]]:
        made = self.again(node, before)
        if made:
            self.superseded.append(one)
        else:
            self.staged.gone[place] = one
        return [written.json(self.plan.settings.folder) for written in made]
