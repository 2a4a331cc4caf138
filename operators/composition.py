"""Composition nodes as node types: they are expanded before nodes are bound, so that only their name and keys are registered here."""

from typing import Any

from operators.core.binding import Binding
from operators.core.config import Strict
from operators.core.registry import node_type
from operators.core.settings import NodeSpec


class CompositionConfig(Strict):
    """Values of a composition's parameters; which there are, its file says."""

    model_config = Strict.model_config | {"extra": "allow"}


@node_type("composition", CompositionConfig, wiring="any", config_optional=True)
def bind(spec: NodeSpec, binding: Binding) -> Any:
    """Never asked: a plan holds the nodes of a composition's body."""
    raise NotImplementedError(f"composition '{spec.name}' was not expanded")
