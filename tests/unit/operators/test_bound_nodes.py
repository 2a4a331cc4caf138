"""Bound nodes change only by copies."""

import pytest

from operators.core.node import BoundNode
from operators.core.row_type import GROUP_KEY, UNKNOWN, RowType


def test_a_bound_node_is_frozen() -> None:
    node = BoundNode("totals", (), UNKNOWN, {})
    bound = node.with_hidden((), frozenset())
    with pytest.raises(AttributeError, match="node 'totals' is bound: its 'fingerprint' cannot change"):
        bound.fingerprint = {"changed": True}
    other = bound.with_attributes(output=RowType(UNKNOWN.data, ("_file",), key=GROUP_KEY))
    assert (other.output.hidden, bound.output) == (("_file",), node.output)
