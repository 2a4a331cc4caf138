"""Where outputs and the DLQ are written, and which of the files there belong to this pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, cast

from errata.core.diagnostics import PipelineErrors
from errata.core.failures import StorageFailed
from errata.outputs.context import OutputContext
from errata.outputs.staged_files import StagedFiles, is_intact, table_is_intact
from errata.outputs.unique_names import FreeNames
from errata.plan.own_files import HELP, ProtectedFiles
from errata.plan.plan import Node, Plan
from errata.plan.steps import OutputChanges
from operators.core.row_type import CK
from operators.core.settings import leads_out
from operators.output.config import OutputConfig
from operators.output.operator import Output
from storage import formats
from storage.files.path_tokens import PathTemplate, TokenValues
from storage.formats.splitting import SplitPlan
from storage.state.entry import Entry
from storage.state.location import State
from storage.state.occupied import occupied
from storage.stores.places import ObjectPath, Place, Places
from storage.uris import below, is_local

History = Callable[[], "Sequence[Entry]"]
"""The ledger's entries, read where they are asked for."""
ANY_FILE = "{source_file}"
"""Stands for the name of any source file."""
CHANGES = "changes"
"""The ledger's record of a file of changes: the path of all of them, with its tokens."""
FINISHED = "finished"
"""The ledger's member for a sidecar alone: the end of the run that it describes."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The paths of one run: of each output by node, and of the DLQ file (None where the pipeline names none)."""

    places: Places
    outputs: Mapping[str, Place]
    configs: Mapping[str, OutputConfig]
    tokens: Mapping[str, TokenValues]
    dlq: Place | None
    dlq_form: Mapping[str, Any]
    """The pipeline's settings of the columns of the DLQ file."""
    own: ProtectedFiles
    """Where nothing may be written."""
    state: State

    @classmethod
    def of(cls, context: OutputContext) -> Targets:
        """The targets of a run, tokens replaced, free names chosen."""
        plan = context.plan
        places = plan.settings.places
        tokens = {node.name: _tokens(node, context) for node in file_outputs(plan)}
        wanted = {node.name: _target(node, plan, tokens[node.name]) for node in file_outputs(plan)}
        outputs = {node.name: _table_beside(node, wanted, places, context.prior) for node in file_outputs(plan)}
        configs = {node.name: cast("Output", node.operator).config for node in file_outputs(plan)}
        path = plan.model.error_handling.dlq.path
        found = cls(places, outputs, configs, tokens, places / path if path else None, dlq_form(plan), context.protected, context.state)
        found._refuse_shared(plan)
        found._refuse_own(plan)
        return found

    @property
    def folder(self) -> Path:
        """Where relative paths start."""
        return self.places.folder

    def _refuse_shared(self, plan: Plan) -> None:
        """Raise PipelineErrors where tokens make one path of two (E322)."""
        owners = {_plain(self.dlq): "the dead letter queue"} if self.dlq else {}
        for node, path, _ in self._written(plan):
            if path in owners:
                message = f"{owners[path]} and output '{node.name}' both write '{below(path, self.folder)}'"
                raise PipelineErrors([node.spec.document.error((*node.spec.path, "config", "path"), "E322", message)])
            owners[path] = f"output '{node.name}'"

    def _refuse_own(self, plan: Plan) -> None:
        """Raise PipelineErrors where tokens make a path at which nothing may be written, or which would feed the next run (E349)."""
        for node, path, moves in self._written(plan):
            fault = self.own.fault(path if is_local(self.configs[node.name].path) else self.place(node))
            if (fault := fault or (self.own.feeds(path) if moves else None)) is not None:
                error = node.spec.document.error((*node.spec.path, "config", "path"), "E349", f"'{below(path, self.folder)}' {fault}", help=HELP)
                raise PipelineErrors([error])

    def _written(self, plan: Plan) -> Iterator[tuple[Node, str, bool]]:
        """The paths that outputs write, tokens replaced, as far as they do not depend on the rows. With each, whether only this run writes a file there."""
        for node in file_outputs(plan):
            config, path = self.configs[node.name], self.outputs[node.name]
            if not self.by_source_file(node):
                yield node, _plain(path), _moves(config.path) and self._is_file(node, _plain(path))
                if config.write_meta:
                    yield node, _plain(path.with_name(f"{path.name}.meta.json")), _moves(config.path)
            if config.changelog:
                yield node, _plain(self._rendered(config.changelog.path, self.tokens[node.name])), _moves(config.changelog.path)

    def path(self, node: Node) -> Place:
        """Where an output is written."""
        return self.outputs[node.name]

    def place(self, node: Node) -> str:
        """Where the table of an output is: a path or a URI."""
        path = self.configs[node.name].path
        return str(self.outputs[node.name]) if is_local(path) else PathTemplate.parse(path).render(self.tokens[node.name])

    def ledger_path(self, node: Node) -> str:
        """The place of an output's table as the ledger keeps it."""
        return below(self.place(node), self.folder)

    def ledger_entry(self, node: Node) -> dict[str, str]:
        """The path of an output's table as the ledger's entry has it."""
        path, wanted = self.ledger_path(node), self.configs[node.name].path
        named = below(str(self._rendered(wanted, self.tokens[node.name])), self.folder) if is_local(wanted) else path
        return {"path": path} if path == named else {"path": path, "instead_of": named}

    def paths(self) -> dict[str, Place]:
        """All outputs by node."""
        return dict(self.outputs)

    def paths_after(self, plan: Plan, entry: Entry) -> dict[str, Place]:
        """Where the outputs stand after an epoch, which need not have written them; of one in parts, or of one for each source file, the path that their names are made of."""
        found = dict(self.outputs)
        for node in file_outputs(plan):
            data = [] if self.configs[node.name].split is not None or self.by_source_file(node) else entry.nodes.get(node.name, {}).get("files", [])
            found |= {node.name: self.places / data[0]["path"]} if data and is_local(data[0]["path"]) else {}
        return found

    def files(self, head: Entry | None) -> set[Place]:
        """All files that this run or the last one writes, as far as they are known before."""
        return {*self.outputs.values(), *([self.dlq] if self.dlq else []), *self.known(head)}

    def known(self, head: Entry | None) -> dict[Place, Mapping[str, Any]]:
        """All files that the last run wrote, with what the ledger keeps of them."""
        return {self.places / entry["path"]: entry for entry in _files(head)}

    def by_source_file(self, node: Node) -> bool:
        """Whether an output is one file for each source file."""
        return PathTemplate.parse(self.configs[node.name].path).by_file

    def path_for(self, node: Node, origin: str) -> Place:
        """Where the rows of a source file are written."""
        file = PurePosixPath(origin)
        tokens = replace(self.tokens[node.name], source_file=file.stem, source_path=str(file.parent / file.stem))
        return self._rendered(self.configs[node.name].path, tokens)

    def rendered(self, node: Node, path: str, epoch: int) -> Place:
        """Another path of an output, with an epoch's tokens replaced."""
        return self._rendered(path, replace(self.tokens[node.name], epoch=epoch))

    def _rendered(self, path: str, values: TokenValues) -> Place:
        return self.places / PathTemplate.parse(path).render(values)

    def refuse_foreign(self, plan: Plan, head: Entry | None, history: History, *, force: bool) -> None:
        """Raise StorageFailed where something is in the way that this pipeline did not write and may not replace, or that no file can replace."""
        self._refuse_obstacles(plan)
        if not force:
            for name, path in self.outputs.items():
                self._refuse(name, [*_present(path, self.configs[name]), *_sidecar_of(path, self.configs[name])], head, history)
            if self.dlq is not None and self._foreign([self.dlq], head, history):
                raise StorageFailed(f"the dead letter queue: {self.dlq} exists and was not written by this pipeline", help="name another path, or replace it with --force")

    def _refuse_obstacles(self, plan: Plan) -> None:
        """Raise StorageFailed where a folder stands that has to be a file, or a file that has to be a folder, as far as it does not depend on the rows."""
        written = [(f"output '{node.name}'", self.places / path, self._is_file(node, path)) for node, path, _ in self._written(plan) if is_local(self.configs[node.name].path)]
        for owner, path, is_file in [*written, *([("the dead letter queue", self.dlq, True)] if self.dlq else [])]:
            obstacle = path if is_file and path.is_dir() else next((one for one in path.parents if one.exists() and not one.is_dir()), None)
            if obstacle is not None:
                raise StorageFailed(f"{owner}: {obstacle} is {'a folder' if obstacle is path else 'no folder'}", help="name another path, or move what is there")

    def _is_file(self, node: Node, path: str) -> bool:
        """Whether the path of an output is that of one file: no table, and no output in parts, whose names are made of the path."""
        config = self.configs[node.name]
        return path != _plain(self.outputs[node.name]) or (config.split is None and not formats.writer_type(config.type).versioned)

    def refuse_written(self, node: Node, paths: Sequence[Place], head: Entry | None, history: History, *, force: bool) -> None:
        """`refuse_foreign` for paths that are known only once the rows are. Raises StorageFailed also where nothing may be written, `force` or not."""
        for path in paths:
            if (fault := self.own.fault(path) or (self.own.feeds(path) if _moves(self.configs[node.name].path) else None)) is not None:
                raise StorageFailed(f"output '{node.name}': '{below(str(path), self.folder)}' {fault}", help=HELP)
        if not force:
            self._refuse(node.name, paths, head, history)

    def names(self, node: Node, head: Entry | None, history: History, wanted: Sequence[Place]) -> Callable[[Place], Place]:
        """Where files of an output that are wanted at some paths are written: beside foreign ones where its names may have a suffix, and just there where not."""
        config = self.configs[node.name]
        if config.if_exists != "unique_suffix":
            return lambda path: path
        runs = cache(history)
        reserved = frozenset({*wanted, *self.outputs.values()})
        before = _names_before(node, self.places, head, tables=False)
        refused = self._occupied(list(before.values()))
        kept = {path: name for path, name in before.items() if name not in refused}
        return FreeNames(config.unique_suffix_width, lambda path: bool(self._foreign([path], head, runs)), kept, reserved)

    def _refuse(self, name: str, present: Sequence[Place], head: Entry | None, history: History) -> None:
        if self.configs[name].if_exists == "error" and (found := self._foreign(present, head, history)):
            raise StorageFailed(f"output '{name}': {found[0]} exists and was not written by this pipeline", help="--force or if_exists: overwrite replaces it")

    def _foreign(self, paths: Sequence[Place], head: Entry | None, history: History) -> list[Place]:
        """The paths at which there is something that this pipeline did not write."""
        if not (present := [path for path in paths if path.exists()]):
            return []
        own = {self.places / entry["path"] for entry in _files(head)}
        own -= self._occupied([path for path in present if path in own])
        foreign = {path for path in present if path not in own}
        left = foreign - self._left_by_runs_before(foreign, history) if foreign else foreign
        return [path for path in present if path in left]

    def _occupied(self, paths: Sequence[Place]) -> set[Place]:
        """Paths that the ledger names although somebody else's object was there first, and still is."""
        objects = [path for path in paths if isinstance(path, ObjectPath)]
        noted = occupied(self.state) if objects else {}
        return {path for path in objects if str(path) in noted and (found := path.facts()) is not None and found.identity == noted[str(path)]}

    def _left_by_runs_before(self, paths: Collection[Place], history: History) -> set[Place]:
        """The paths that an epoch wrote, perhaps under another channel, and that did not change since."""
        files = [(self.places / one["path"], one) for entry in history() for one in _files(entry) if "size" in one or "mark" in one]
        return {path for path, one in files if path in paths and self._is_intact(one)}

    def intact(self, node: Node, head: Entry) -> bool:
        """Whether the files that the last epoch wrote for an output are there, at its present path."""
        entries = head.nodes.get(node.name, {}).get("files", [])
        return bool(entries) and all(self._is_intact(entry) for entry in entries) and self._at_its_path(node, entries[0])

    def _at_its_path(self, node: Node, entry: Mapping[str, Any]) -> bool:
        """Whether the first file that an epoch wrote for an output lies where the output is written now."""
        config, path = self.configs[node.name], self.outputs[node.name]
        template = PathTemplate.parse(config.path)
        if "of" in entry and template.steady_but_for_files:
            return bool(entry["of"] == self.whole(node))
        if not template.steady:
            return True
        if "mark" in entry and not is_local(config.path):
            return bool(entry["path"] == self.ledger_path(node))
        first = self.places / entry.get("instead_of", entry["path"])
        return bool(first.parent == path.parent if config.split else first == path)

    def moved(self, plan: Plan, head: Entry) -> set[str]:
        """The outputs, and "dlq", that the last epoch wrote elsewhere than they are written now."""
        written = [(node, head.nodes.get(node.name, {}).get("files", [])) for node in file_outputs(plan)]
        found = {node.name for node, entries in written if entries and (not self._at_its_path(node, entries[0]) or self._was_refused(node, entries))}
        return found if self._dlq_at_its_path(head) else {*found, "dlq"}

    def _was_refused(self, node: Node, entries: Sequence[Mapping[str, Any]]) -> bool:
        """Whether somebody else's object took a name of an output, which may have another one."""
        return self.configs[node.name].if_exists == "unique_suffix" and bool(self._occupied([self.places / entry["path"] for entry in entries]))

    def changes(self, plan: Plan, head: Entry) -> OutputChanges:
        """The outputs, and `dlq`, that moved since the last epoch, and the outputs whose files changed or are gone."""
        moved = self.moved(plan, head)
        return OutputChanges(frozenset(moved), frozenset(node.name for node in file_outputs(plan) if not self.intact(node, head)))

    def _is_intact(self, entry: Mapping[str, Any]) -> bool:
        if "mark" not in entry:
            return is_intact(entry, self.places)
        return table_is_intact(entry, str(self.places / entry["path"]) if is_local(entry["path"]) else entry["path"])

    def dlq_intact(self, head: Entry) -> bool:
        """Whether the DLQ file is as the last epoch left it: there, at its present path, or rightly absent."""
        return self._dlq_at_its_path(head) and all(is_intact(entry, self.places) for entry in self.of_dlq(head).values())

    def _dlq_at_its_path(self, head: Entry) -> bool:
        """Whether the live rejects were written to the file that the pipeline names now, if it names one, with the columns that it asks for."""
        if self.dlq is None or not head.counters.get("rejected"):
            return True
        return self.dlq in self.of_dlq(head) and head.nodes["dlq"].get("form", self.dlq_form) == self.dlq_form

    def of_dlq(self, head: Entry) -> dict[Place, Mapping[str, Any]]:
        """The DLQ file that the last epoch wrote, if it did."""
        return {self.places / entry["path"]: entry for entry in head.nodes.get("dlq", {}).get("files", [])}

    def leftovers(self, head: Entry | None) -> dict[Place, Mapping[str, Any]]:
        """The files that the last epoch was to remove and that are there all the same, since its run died before it came to that."""
        entries = () if head is None else head.counters.get("gone", ())
        return {self.places / entry["path"]: entry for entry in entries if is_intact(entry, self.places)}

    def forgotten(self, plan: Plan, history: Sequence[Entry]) -> dict[Place, Mapping[str, Any]]:
        """The files of changes that the forgotten epochs in `history` wrote, of the outputs that still have the same path for changes."""
        wanted = {node.name: changes.path for node in file_outputs(plan) if (changes := self.configs[node.name].changelog) is not None}
        written = [(name, one) for entry in history for name in wanted for one in entry.nodes.get(name, {}).get("files", [])]
        return {self.places / one["path"]: one for name, one in written if one.get(CHANGES) == wanted[name]}

    def note_gone(self, node: Node, head: Entry | None, written: Sequence[Place], exports: StagedFiles) -> None:
        """Parts of an output that is or was split, and files of source files, that are not written any more at the output's present path are removed."""
        if head is None:
            return
        kept = {below(str(path), self.folder) for path in written}
        exports.gone |= {self.places / entry["path"]: entry for entry in self._data(node, head) if entry["path"] not in kept}

    def whole(self, node: Node) -> str:
        """The ledger's mark of each part of an output: the present path of the whole, without a suffix, whichever source file it may be for."""
        return below(str(self.path_for(node, ANY_FILE)), self.folder)

    def part_of(self, node: Node) -> dict[str, Any]:
        """The ledger's further member for each file of the data: the whole that it is a part of, where there are several."""
        return {"of": self.whole(node)} if self.by_source_file(node) or self.configs[node.name].split is not None else {}

    def _data(self, node: Node, head: Entry) -> list[Mapping[str, Any]]:
        """Return the parts that the last epoch wrote for an output at its present path, and the single file from before the output was split."""
        entries, whole = head.nodes.get(node.name, {}).get("files", []), self.whole(node)
        parted = bool(self.part_of(node))
        return [entry for entry in entries if entry.get("of") == whole or (parted and entry["path"] == whole and CHANGES not in entry)]


def file_outputs(plan: Plan) -> list[Node]:
    """The outputs that are files or tables of files, not tables of databases."""
    return [node for node in plan.of_kind("output") if not cast("Output", node.operator).in_database]


def dlq_form(plan: Plan) -> dict[str, Any]:
    """The settings of a pipeline for the columns of the DLQ file, as the ledger keeps them."""
    dlq = plan.model.error_handling.dlq
    sources = [(node.name, node.operator.output) for node in plan.of_kind("source")] if dlq.include_source_row else []
    return dlq.model_dump(mode="json", exclude={"path"}) | {"columns": {name: [*output.data, *output.riding(CK)] for name, output in sources}}


def _plain(place: Place) -> str:
    """A path without needless steps; a URI unchanged."""
    return os.path.normpath(place) if isinstance(place, Path) else str(place)


def _names_before(node: Node, places: Places, head: Entry | None, *, tables: bool) -> dict[Place, Place]:
    """The files, or the tables, that the last epoch wrote for an output, by the path at which each was wanted."""
    written = [] if head is None else head.nodes.get(node.name, {}).get("files", [])
    entries = [entry for entry in written if ("mark" in entry) == tables]
    return {places / entry.get("instead_of", entry["path"]): places / entry["path"] for entry in entries if not tables or is_local(entry["path"])}


def _files(head: Entry | None) -> list[Mapping[str, Any]]:
    return [] if head is None else [entry for node in head.nodes.values() for entry in node.get("files", [])]


def _present(path: Place, config: OutputConfig) -> list[Place]:
    """The files in the way of an output: its path, or for a split one whatever a first part would replace."""
    if config.split is None:
        return [path] if path.exists() else []

    first = path.with_name(SplitPlan(**config.split.model_dump()).name(path.name, 1))
    return [first] if first.exists() else []


def _sidecar_of(path: Place, config: OutputConfig) -> list[Place]:
    """The file beside an output that tells which run wrote it."""
    return [path.with_name(f"{path.name}.meta.json")] if config.write_meta and config.split is None else []


def _tokens(node: Node, context: OutputContext) -> TokenValues:
    plan, this = context.plan, context.this_run
    return TokenValues(plan.source_stems(node.name), this.batch_id, this.execution_id, this.started, plan.hash(), plan.settings.channel, epoch=this.epoch)


def _moves(path: str) -> bool:
    """Whether each run writes another file at a path with tokens."""
    return not PathTemplate.parse(path).steady_but_for_files


def _target(node: Node, plan: Plan, values: TokenValues) -> Place:
    config = cast("Output", node.operator).config
    text = PathTemplate.parse(config.path).render(values)
    relative = is_local(config.path) and not Path(config.path).is_absolute()
    if relative and not plan.settings.allow_absolute_paths and leads_out(plan.settings.folder, text):
        raise StorageFailed(f"output '{node.name}': '{text}' leads out of the pipeline's folder")
    return plan.settings.places / text


def _table_beside(node: Node, wanted: Mapping[str, Place], places: Places, head: Entry | None) -> Place:
    """Where an output is written that is `wanted` at a path: a table that may stand beside foreign ones where the last epoch wrote it, else at the first free path."""
    output, path = cast("Output", node.operator), wanted[node.name]
    if not (output.config.if_exists == "unique_suffix" and output.versioned and is_local(output.config.path)):
        return path
    return FreeNames(output.config.unique_suffix_width, lambda one: one.exists(), _names_before(node, places, head, tables=True), frozenset(wanted.values()))(path)
