"""A chain that was read, as text: blocks never change, so that the next reader begins behind the kept head.

What is kept is a convenience. Without it, or where the head does not lead to it, a chain is read to its seed.
"""

from __future__ import annotations

import json
from datetime import datetime

from storage.odf.chain import Chain, Slice
from storage.odf.columns import Vocabulary

__all__ = ["kept", "kept_text"]


def kept_text(chain: Chain) -> str:
    """A chain as text. Of its schema the block is kept that set it."""
    moments = {name: None if moment is None else moment.isoformat() for name, moment in (("watermark", chain.watermark), ("begun", chain.begun))}
    content = {
        "head": chain.head, "number": chain.number, "identity": chain.identity.hex(), "system_time": chain.system_time.isoformat(), "vocabulary": chain.vocabulary.names,
        "schema_block": chain.schema_block, "source_state": chain.source_state, **moments, "slices": [[one.name, one.size, one.start, one.end] for one in chain.slices],
    }  # fmt: skip
    return json.dumps(content)


def kept(text: str | bytes) -> Chain | None:
    """The chain of a text; None where the text is none of a chain."""
    try:
        content = json.loads(text)
        slices = [Slice(*one) for one in content["slices"]]
        watermark, begun = (None if content[name] is None else datetime.fromisoformat(content[name]) for name in ("watermark", "begun"))
        return Chain(
            content["head"], content["number"], bytes.fromhex(content["identity"]), datetime.fromisoformat(content["system_time"]), Vocabulary(*content["vocabulary"]), slices=slices,
            watermark=watermark, source_state=content["source_state"], begun=begun, schema_block=content["schema_block"],
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        return None
