"""A file checked as `errata check` checks it, from texts that may not be saved; everything that was found is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cxl.compiler import module_findings, notes_of
from cxl.diagnostics.diagnostics import Diagnostic as CxlDiagnostic
from cxl.typed.lineage import origins
from cxl.typed.modules import Module, Modules, read_module
from cxl.typed.notes import Note
from cxl.types.types import Schema, Type
from errata.core.diagnostics import Diagnostic, PipelineErrors, from_cxl, ordered
from errata.core.env_references import collected_secrets, process_environment, redacted
from errata.core.failures import Failure
from errata.editor.files import kind_of
from errata.editor.names import Name
from errata.editor.programs import is_module, program_target
from errata.plan.column_lineage import program_of
from errata.plan.loader import Choices, OpenedPipeline, open_pipeline
from errata.plan.planner import Draft, body_draft
from errata.project.channels.files import COMPOSITION
from errata.project.compositions.signature import Signature, declared_type, signature
from errata.project.findings import CxlText, Findings
from errata.project.texts import Texts
from errata.project.workspace import find_workspace
from errata.yaml import Document
from operators.core.row_type import UNKNOWN, RowType
from operators.core.settings import PipelineSettings, Variable


class Superseded(Exception):
    """The text changed while it was checked, so nobody waits for the answer."""


def _read(name: str, inputs: Mapping[str, str]) -> Name:
    """The column of an input that a program reads as `name` or `qualifier.name`."""
    qualifier, _, own = name.partition(".")
    if own and qualifier in inputs:
        return Name("column", inputs[qualifier], own)
    return Name("column", next(iter(inputs.values())), name)


Asked = Callable[[], bool]
"""Whether the answer is still asked for."""


def _always() -> bool:
    return True


@dataclass(slots=True)
class _Watched(Findings):
    """Findings that end the check when nobody asks for it any more."""

    asked: Asked = _always

    def program(self, text: CxlText) -> None:
        """Keep a CXL text. Raises Superseded."""
        if not self.asked():
            raise Superseded
        self.programs.append(text)


@dataclass(frozen=True)
class Analysis:
    """The analysis of a file and of the files that belong to it.

    Attributes:
        file: The file that was checked.
        diagnostics: Its errors and warnings, and the ones in the other files.
        documents: The YAML files by name, the checked one first.
        programs: The CXL texts, with what each is compiled against.
        modules: The modules that programs use.
        rules: How modules are found.
        signature: What the file declares, of a composition that is looked at by itself.
    """

    file: str
    diagnostics: tuple[Diagnostic, ...] = ()
    documents: Mapping[str, Document] = field(default_factory=dict)
    draft: Draft | None = None
    programs: tuple[CxlText, ...] = ()
    modules: tuple[Module, ...] = ()
    rules: Modules | None = None
    signature: Signature | None = None

    @property
    def document(self) -> Document | None:
        """The checked YAML file."""
        return self.documents.get(self.file)

    @property
    def files(self) -> frozenset[str]:
        """The files that the analysis depends on."""
        return frozenset({self.file, *self.documents, *(module.file for module in self.modules if module.file)})

    @cached_property
    def _notes(self) -> dict[int, tuple[Note, ...]]:
        return {}

    def notes(self, program: CxlText) -> tuple[Note, ...]:
        """Return what the names of a CXL text mean."""
        if id(program) not in self._notes:
            self._notes[id(program)] = notes_of(program.text, program.target)
        return self._notes[id(program)]

    def rows(self, node: str) -> RowType | None:
        """Return the columns that a node gives, or is likely to give; None for an output and for a name without a node."""
        if self.draft is None:
            return None
        found = self.draft.nodes.get(node)
        return found.operator.output if found is not None else self.draft.guesses.get(node)

    def columns(self, node: str) -> Mapping[str, Type]:
        """Return the columns of `rows` by name."""
        row = self.rows(node)
        return {} if row is None else row.data

    @cached_property
    def column_inputs(self) -> Mapping[tuple[str, str], list[Name]]:
        """The columns of its inputs that a node computes a column from, by node and column."""
        found: dict[tuple[str, str], list[Name]] = {}
        for node in self.draft.nodes.values() if self.draft else ():
            program = program_of(node.operator)
            inputs = {ref.qualifier or ref.node: ref.node for ref in node.spec.inputs}
            for column, read in origins(program).items() if program is not None and inputs else ():
                found[node.name, column] = [_read(name, inputs) for name in sorted(read)]
        return found

    def programs_at(self, file: str, path: tuple[str | int, ...]) -> list[CxlText]:
        """Return the CXL texts at a place: several where a composition is used more than once."""
        return [one for one in self.programs if one.path == path and one.document.file == file]


def analyse(file: str, texts: Texts, text: str, asked: Asked = _always) -> Analysis:
    """Check a file. Raises Superseded.

    Args:
        text: The file's text, which says what the file is.
        asked: Whether the answer is still asked for; the check ends soon after it is not.
    """
    kind = kind_of(file, text)
    if kind == "other":
        return Analysis(file)
    with collected_secrets():
        if kind == "cxl":
            found = _cxl(file, text, texts)
        elif kind == "composition":
            found = _composition(file, texts, asked)
        else:
            found = _channel(file, texts, asked) if kind == "channel" else _pipeline(file, Choices(texts=texts), asked)
        return replace(found, diagnostics=tuple(_shown(one, file) for one in ordered(found.diagnostics)))


def _shown(one: Diagnostic, file: str) -> Diagnostic:
    """A diagnostic without secrets. One without a file belongs to the checked one."""
    return replace(one, message=redacted(one.message), help=redacted(one.help), file=one.file or file)


def _pipeline(file: str, choices: Choices, asked: Asked) -> Analysis:
    findings = _Watched(asked=asked)
    opened: OpenedPipeline | None = None
    draft: Draft | None = None
    try:
        opened = open_pipeline(Path(file), choices, findings)
        draft = opened.draft()
        loaded = opened.loaded(draft)
        diagnostics = list(loaded.diagnostics)
        loaded.protected_files()
    except PipelineErrors as errors:
        diagnostics = [*(one for one in findings.diagnostics if not one.is_error), *errors.diagnostics]
    except Failure as failure:
        diagnostics = [*findings.diagnostics, Diagnostic("FILE-001", failure.message, file=file, help=failure.help)]
    documents = [] if opened is None else [opened.document, *(draft.expansion.documents if draft else ())]
    rules = opened.settings.modules if opened else None
    return Analysis(
        file, tuple(diagnostics), {one.file: one for one in documents}, draft, tuple(findings.programs), rules.loaded if rules else (), rules
    )


def _channel(file: str, texts: Texts, asked: Asked) -> Analysis:
    """A channel file over the pipeline that it is for; by itself where that is no file, or for a composition."""
    environment = process_environment(None)
    document = texts.yaml(file, environment)
    target = _target(document, Path(file), texts)
    if target is None:
        return Analysis(file, document.diagnostics, {file: document})
    found = _pipeline(str(target), Choices(channel=file, texts=texts), asked)
    own = tuple(one for one in found.diagnostics if one.file == file)
    return replace(found, file=file, diagnostics=own, documents={file: document, **found.documents})


def _target(document: Document, file: Path, texts: Texts) -> Path | None:
    """The pipeline file that a channel is for."""
    value: Any = document.value
    identity = value.get("channel") if isinstance(value, dict) else None
    target = identity.get("target") if isinstance(identity, dict) else None
    if not isinstance(target, str) or not target or target.endswith(COMPOSITION) or "\0" in target:
        return None
    return next((place for folder in (file.parent, file.parent.parent) if texts.exists(place := folder / target)), None)


def _composition(file: str, texts: Texts, asked: Asked) -> Analysis:
    """A composition by itself: its ports have the fields that they ask for, and any others."""
    environment = process_environment(None)
    document = texts.yaml(file, environment)
    findings = _Watched(list(document.diagnostics), asked=asked)
    try:
        workspace = find_workspace(Path(file))
        signed = signature(document, findings) if document.value is not None or not findings.failed else None
        folder = Path(file).resolve().parent
        rules = next((place for one in (folder, workspace.folder) if (place := one / "rules").is_dir()), folder / "rules")
        settings = PipelineSettings("composition", folder, variables=_variables(signed), modules=texts.modules(rules))
        draft = body_draft(document, settings, {} if signed is None else _ports(signed), findings, texts)
    except PipelineErrors as errors:
        return Analysis(file, (*findings.diagnostics, *errors.diagnostics), {file: document})
    documents = {one.file: one for one in (document, *draft.expansion.documents)}
    return Analysis(file, tuple(findings.diagnostics), documents, draft, tuple(findings.programs), settings.modules.loaded, settings.modules, signed)


def _ports(signed: Signature) -> dict[str, RowType]:
    return {name: RowType(Schema((one.name, declared_type(one.type).or_null) for one in port.schema_)).opened() if port.schema_ else UNKNOWN for name, port in signed.inputs.items()}


def _variables(signed: Signature | None) -> dict[tuple[str, str], Variable]:
    """The parameters as `$vars`, and the variables of the pipeline around that the body may use."""
    if signed is None:
        return {}
    parameters = {("vars", name): declared_type(one.type) for name, one in signed.parameters.items()}
    scoped = {key: declared_type(text) for key, text in signed.scoped.items()}
    return {(scope, name): Variable(scope, name, type_.or_null) for (scope, name), type_ in {**parameters, **scoped}.items()}


def _cxl(file: str, text: str, texts: Texts) -> Analysis:
    """A file of CXL: a module, or a program over any fields."""
    rules = texts.modules(rules_above(Path(file)))
    text = text.removeprefix("\ufeff")
    if is_module(text):
        module = read_module(Path(file).stem, text, file)
        found: tuple[CxlDiagnostic, ...] = module_findings(module, rules)
        return Analysis(file, tuple(from_cxl(one) for one in found), modules=(module, *rules.loaded), rules=rules)
    _, found = program_target(text, file, rules)
    return Analysis(file, tuple(from_cxl(one) for one in found), modules=rules.loaded, rules=rules)


def rules_above(file: Path) -> Path:
    """Return the folder `rules` that holds a file of CXL, else the one beside it."""
    return next((folder for folder in file.parents if folder.name == "rules"), file.parent / "rules")
