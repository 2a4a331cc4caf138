"""Keys lead back to the record of a source or the row of an aggregate that is inside them, whatever operators put around it."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from changelog.keys.encoding import encode_key
from changelog.keys.positions import row_label
from errata.rollback.provenance import leads_of
from operators.core.row_type import KeyShape
from tests.unit.changelog.test_keys import VALUES
from tests.unit.changelog.test_labels import labels


@st.composite
def own_keys(draw, shape):
    """The key of a record or of a group."""
    if shape.types is not None:
        return encode_key([draw(st.none() | VALUES[kind]) for kind in shape.types], shape.types)
    return draw(st.binary(min_size=1, max_size=1)) + row_label(draw(labels)) + row_label(draw(labels))


@st.composite
def keys_of(draw, shape):
    """A key of a shape, and what is inside it: the node, the key there, whether it is a group."""
    if shape.kind == "merge":
        number = draw(st.integers(0, len(shape.parts)))  # the last is no input
        if number == len(shape.parts):
            return bytes([number]), (None, None, None)
        key, lead = draw(keys_of(shape.parts[number]))
        return bytes([number]) + key, lead
    if shape.parts:
        key, lead = draw(keys_of(shape.parts[0]))
        return key + draw(st.binary(max_size=4)), lead
    if not shape.source:
        return draw(st.binary(max_size=5)), (None, None, None)
    key = draw(own_keys(shape))
    return key, (shape.source, key, shape.kind == "group")


types = st.none() | st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3).map(tuple)
leaves = st.builds(KeyShape, st.just("source"), st.sampled_from(["a", "b"]), types)
leaves |= st.builds(KeyShape, st.just("group"), st.just("totals"), types.filter(bool)) | st.just(KeyShape("group"))
shapes = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: KeyShape("merge", parts=tuple(parts))),
        st.builds(lambda kind, part: KeyShape(kind, parts=(part,)), st.sampled_from(["index", "join"]), inner),
    ),
    max_leaves=4,
)


@given(data=st.data(), shape=shapes)
def test_what_is_inside_keys(data, shape):
    drawn = data.draw(st.lists(keys_of(shape), max_size=4))
    found = leads_of(shape, pl.Series([key for key, _ in drawn], dtype=pl.Binary))
    assert found.rows() == [lead for _, lead in drawn]
