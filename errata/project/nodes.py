"""The nodes of a document, read one by one with every problem of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from errata.core.diagnostics import did_you_mean
from errata.project.expectations import read_expectations
from errata.project.findings import Findings
from errata.project.model import NodeHeader
from errata.project.validation import model_problems
from errata.yaml import Document
from operators.core import registry
from operators.core.settings import InputRef, NodeSpec

_NODE_KEYS = frozenset({"type", "name", "description", "_notes", "expect", "config"})


@dataclass(frozen=True, slots=True)
class RawNode:
    """A node of a document before its configuration is read, and its place."""

    document: Document
    path: tuple[str | int, ...]
    value: Mapping[str, Any]
    name: str


def raw_nodes(document: Document, findings: Findings) -> Iterable[RawNode]:
    """Yield the nodes of a file in order. Reports items that are no map."""
    value: Any = document.value
    nodes = value.get("nodes") if isinstance(value, dict) else None
    if not isinstance(nodes, list):
        return
    for index, value in enumerate(nodes):
        path: tuple[str | int, ...] = ("nodes", index)
        if isinstance(value, dict):
            yield RawNode(document, path, value, str(value.get("name", "")))
        else:
            findings.diagnostics.append(document.error(path, "YAML-010", "a node is a map with 'type', 'name' and 'config'"))


def read_node(raw: RawNode, findings: Findings) -> NodeSpec | None:
    """Return a node with its configuration, None where it has problems. The problems are reported."""
    reporter = findings.node(raw.document, raw.path, raw.name)
    kind = raw.value.get("type")
    found = registry.find(kind) if isinstance(kind, str) else None
    found = None if found is not None and found.made else found
    if kind is not None and found is None:
        _report_unknown(str(kind), reporter)
        return None
    wiring = () if found is None else _allowed_wiring(found.wiring)
    header = {key: value for key, value in raw.value.items() if found is None or key not in wiring}
    problems = _validate(NodeHeader, header, raw, (), wiring)
    findings.diagnostics.extend(problems)
    if found is None:
        return None
    inputs = _read_inputs(found.wiring, raw, findings)
    config, partial = _read_config(found, raw, findings)
    if inputs is None or config is None or not good_name(raw.name, reporter):
        return None
    ports = (*getattr(config, "branches", ()),)
    expect = read_expectations(raw.value.get("expect"), reporter, ports)
    return NodeSpec(raw.name, found.name, config, (*inputs, *_side_inputs(config, inputs)), raw.path, raw.document, partial=partial, expect=expect)


def _report_unknown(kind: str, reporter: Any) -> None:
    known = registry.names()
    reporter.report("E012", f"unknown node type '{kind}'", ("type",), help=reporter.similar(kind, known) or f"known: {', '.join(known)}")


def named_nodes(raw: RawNode) -> Iterator[tuple[tuple[str | int, ...], InputRef]]:
    """Yield every reference in the wiring of a node with its place, also where the node cannot be read."""
    for key in ("input", "inputs", *(("outputs",) if raw.value.get("type") == "composition" else ())):
        value = raw.value.get(key)
        places: Iterable[tuple[tuple[str | int, ...], Any]] = (
            [((key, name), item) for name, item in value.items()] if isinstance(value, dict)
            else [((key, index), item) for index, item in enumerate(value)] if isinstance(value, list)
            else [((key,), value)]
        )  # fmt: skip
        yield from ((place, InputRef.parse(item)) for place, item in places if isinstance(item, str))


def _read_config(found: registry.NodeType, raw: RawNode, findings: Findings) -> tuple[BaseModel | None, frozenset[str]]:
    """The configuration by the node type's model, and its keys with problems, which are reported.

    With problems, the configuration is what can be read without these keys, or None.
    """
    written = raw.value.get("config")
    if written is None and not found.config_optional:
        help_text = "every node but a merge needs a 'config:' block"
        findings.node(raw.document, raw.path, raw.name).report("E013", f"node '{raw.name}' has no config", (), help=help_text)
        return None, frozenset()
    given = {} if written is None else written
    problems = _validate(found.config, given, raw, ("config",))
    findings.diagnostics.extend(problems)
    return _without_problems(found.config, given) if problems else (found.config.model_validate(given), frozenset())


ESSENTIAL = frozenset({"analytic_window", "conditions", "cxl", "declares", "default", "drive", "group_by", "phase", "schema", "scope", "set", "time_window", "transport", "where"})
"""Keys of configurations that change the meaning of other keys."""


LOOSE = frozenset({"log", "split", "validations"})
"""Keys of configurations whose members are independent of each other."""
STAND_INS: Mapping[str, Any] = {"propagate_ck": "driver"}
"""Values for wrong keys that have no default and that no other key depends on."""


def _without_problems(model: type[BaseModel], given: Any) -> tuple[BaseModel | None, frozenset[str]]:
    """The configuration without its wrong keys, and those keys. None where the rest means nothing without one of them."""
    try:
        return model.model_validate(given), frozenset()
    except ValidationError as error:
        places = [tuple(one["loc"]) for one in error.errors()]
    wrong = frozenset(str(place[0]) if place else "" for place in places)
    if wrong & ESSENTIAL or "" in wrong or not isinstance(given, dict):
        return None, wrong
    bare = {key: value for key, value in given.items() if key not in wrong} | {key: value for key, value in STAND_INS.items() if key in wrong}
    found = _valid(model, bare | _loosened(given, wrong, places))
    return _valid(model, bare) if found is None else found, wrong


def _loosened(given: Mapping[str, Any], wrong: frozenset[str], places: Sequence[tuple[str | int, ...]]) -> dict[str, Any]:
    """The wrong keys in LOOSE with their valid members."""
    inner = {key: [place[1:] for place in places if place[0] == key] for key in wrong & LOOSE & given.keys()}
    return {key: _without_members(given[key], members) for key, members in inner.items() if all(members)}


def _valid(model: type[BaseModel], given: Mapping[str, Any]) -> BaseModel | None:
    try:
        return model.model_validate(given)
    except ValidationError:
        return None


def _without_members(value: Any, places: Sequence[tuple[str | int, ...]]) -> Any:
    """A value without the members of its maps at some places. Lists keep their positions."""
    if isinstance(value, dict):
        inner = {key: [place[1:] for place in places if place[0] == key and len(place) > 1] for key in value}
        return {key: _without_members(member, inner[key]) for key, member in value.items() if (key,) not in places}
    if isinstance(value, list):
        return [_without_members(member, [place[1:] for place in places if len(place) > 1 and place[0] == index]) for index, member in enumerate(value)]
    return value


def _side_inputs(config: BaseModel, inputs: tuple[InputRef, ...]) -> Iterator[InputRef]:
    """Further inputs that the configuration names."""
    for name in getattr(config, "side_inputs", {}).values():
        ref = InputRef.parse(name)
        if ref not in inputs:
            yield ref


def _validate(model: type[BaseModel], value: Any, raw: RawNode, path: tuple[str | int, ...], further: Sequence[str] = ()) -> list[Any]:
    try:
        model.model_validate(value)
    except ValidationError as error:
        return list(model_problems(error, raw.document, (*raw.path, *path), model, node=raw.name, further=further))
    return []


def good_name(name: str, reporter: Any) -> bool:
    """Whether a name is allowed for a node. Reports why not."""
    if "." in name:
        reporter.report("E010", f"the name '{name}' has a dot; dots are for ports", ("name",), help=f"write '{name.replace('.', '_')}'")
        return False
    if not name or not (name[0].isalpha() or name[0] == "_") or not all(c.isascii() and (c.isalnum() or c in "_-") for c in name) or len(name) > 128:
        reporter.report("E010", f"'{name}' is no node name", ("name",), help="letters, digits, _ and -, not beginning with a digit, 128 at most")
        return False
    return True


def _allowed_wiring(wiring: str) -> tuple[str, ...]:
    return {"none": (), "inputs": ("inputs",), "input": ("input",), "map": ("input",), "any": ("input", "inputs", "outputs", "use", "alias")}[wiring]


def _read_inputs(wiring: str, raw: RawNode, findings: Findings) -> tuple[InputRef, ...] | None:
    """References to upstream ports in order; None where the wiring is wrong. Unknown keys are reported by the header."""
    reporter = findings.node(raw.document, raw.path, raw.name)
    if wiring in ("none", "any"):
        return ()
    key = "inputs" if wiring == "inputs" else "input"
    value = raw.value.get(key)
    if value is None:
        if key in raw.value or not any(did_you_mean(str(other), [key]) for other in raw.value if other not in _NODE_KEYS):  # a misspelt key is reported as such
            reporter.report("E014", f"node '{raw.name}' has no '{key}'", (), help=f"name the node that it reads: '{key}: ...'")
        return None
    if wiring == "map":
        return _map_inputs(value, reporter)
    return _listed_inputs(value, reporter) if wiring == "inputs" else _one_input(value, reporter)


def _listed_inputs(value: Any, reporter: Any) -> tuple[InputRef, ...] | None:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        reporter.report("E015", "'inputs' is a list of node names", ("inputs",), help="write inputs: [FIRST, SECOND]")
        return None
    return tuple(InputRef.parse(item) for item in value)


def _one_input(value: Any, reporter: Any) -> tuple[InputRef, ...] | None:
    if not isinstance(value, str):
        reporter.report("E015", "'input' is the name of one node, or 'node.port'", ("input",), help="a merge node puts the rows of several nodes together, a combine node joins them")
        return None
    return (InputRef.parse(value),)


def _map_inputs(value: Any, reporter: Any) -> tuple[InputRef, ...] | None:
    if not isinstance(value, dict) or len(value) < 2 or not all(isinstance(item, str) for item in value.values()):
        reporter.report("E015", "'input' of a combine maps two or more qualifiers to node names", ("input",), help="write input: { o: ORDERS, c: CUSTOMERS }; its expressions then say o.amount and c.city")
        return None
    return tuple(InputRef.parse(item, qualifier) for qualifier, item in value.items())
