"""`retraction_scope: record`: a failing record goes alone behind relaxed aggregates, while its mates stay counted there (SPEC-DECISIONS, The engine 16).

Where the mates' own rows also come to outputs, they are rolled back like all of a group, and their rows in the source's changelog say that
they count (`_counted`): the relaxed aggregates and the row-wise nodes that lead to them read these too, nobody else does.
"""

from __future__ import annotations

from collections.abc import Mapping

from errata.plan.correlation import key_fields
from errata.plan.plan import Node

COUNTED = "_counted"


def takers(nodes: Mapping[str, Node]) -> frozenset[str]:
    """The relaxed aggregates, and the nodes that map row by row on the way to them."""
    found: set[str] = set()
    for node in reversed(list(nodes.values())):
        leads = any(name in found for name, one in nodes.items() if any(above == node.name for above, _ in one.inputs))
        if _is_relaxed(node) or (leads and not node.is_output and node.operator.explain_class == "linear"):
            found.add(node.name)
    return frozenset(found)


def splitting(nodes: Mapping[str, Node], taking: frozenset[str]) -> list[Node]:
    """The sources with a correlation key whose rows come both to relaxed aggregates and, not through one, to outputs."""
    direct: set[str] = set()
    counting: set[str] = set()
    for node in reversed(list(nodes.values())):
        below = [one for one in nodes.values() if any(above == node.name for above, _ in one.inputs)]
        if node.is_output or any(one.name in direct and not _is_relaxed(one) for one in below):
            direct.add(node.name)
        if any(one.name in taking for one in below):
            counting.add(node.name)
    return [node for node in nodes.values() if node.is_source and key_fields(node) and node.name in direct & counting]


def keeps_mates(nodes: Mapping[str, Node], source: Node) -> bool:
    """Whether the mates of a source's failing record are not touched at all: its rows come to outputs through relaxed aggregates alone."""
    work = [source.name]
    while work:
        name = work.pop()
        for node in nodes.values():
            if any(above == name for above, _ in node.inputs) and not _is_relaxed(node):
                if node.is_output:
                    return False
                work.append(node.name)
    return True


def _is_relaxed(node: Node) -> bool:
    return bool(getattr(node.operator, "relaxed", False))
