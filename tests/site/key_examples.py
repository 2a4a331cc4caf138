"""Examples of keys: the shortest value that each key has in the pipelines of `examples/` and of the documents."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import yaml

from tests.site.pages import DOCS, ROOT

PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "diagnostics")
"""The pages whose blocks are examples. Pages of diagnostics show mistakes."""
LONGEST = 120
"""The most letters of an example."""
BLOCK = re.compile(r'^```(yaml|toml)(?: title="[^"]*")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@cache
def examples() -> Mapping[tuple[str, str, str], str]:
    """Return the examples by section, place and key, as the page of keys names them."""
    found: dict[tuple[str, str, str], str] = {}
    for section, place, value in sorted(placed(), key=lambda one: one[:2]):
        for at, name, inner in keys(value, place):
            text = flow({name: inner})
            known = found.get((section, at, name))
            if text is not None and (known is None or (len(text), text) < (len(known), known)):
                found[section, at, name] = text
    return found


def placed() -> Iterator[tuple[str, str, Any]]:
    """Yield the values of all files with the section and the place that they belong to."""
    for document in documents():
        nodes = [node for node in document.get("nodes") or () if isinstance(node, dict) and isinstance(node.get("config"), dict)]
        if "nodes" in document or "pipeline" in document:
            yield "Pipeline file", "", {name: value for name, value in document.items() if name != "nodes"}
        if "channel" in document:
            yield "Channel file", "", document
        for node in nodes:
            kind, config = str(node.get("type")), node["config"]
            yield f"Node: {kind}", "", node
            side = {"source": "sources", "output": "outputs"}.get(kind)
            if side and isinstance(config.get("options"), dict):
                yield f"Options: {config.get('type')} {side}", "", config["options"]
            if isinstance(config.get("envelope"), dict):
                yield "Document sections", "", config["envelope"]
    for settings in settings_files():
        yield "Workspace file", "", settings


def documents() -> Iterator[dict[str, Any]]:
    """Yield the YAML files of the examples, and the YAML blocks of the pages that are whole maps."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.yaml"))]
    texts += [block[2] for path in PAGES for block in BLOCK.finditer(path.read_text(encoding="utf-8")) if block[1] == "yaml"]
    for text in texts:
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(document, dict):
            yield document if "config" not in document or "type" in document else {"nodes": [{"type": kind_of(document["config"]), **document}]}


def kind_of(config: object) -> str:
    """Return the type of node that a block with a bare `config` is of."""
    return "source" if isinstance(config, dict) and "schema" in config else "output"


def settings_files() -> Iterator[dict[str, Any]]:
    """Yield the TOML blocks of the pages."""
    for path in PAGES:
        for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
            if block[1] == "toml":
                with suppress(tomllib.TOMLDecodeError):
                    yield tomllib.loads(block[2])


def keys(value: object, place: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the keys of all maps in a value, each with its place: the one by its name, and the one by any name."""
    if isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{place}[]")
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield place, str(name), inner
            for step in (str(name), "*"):
                yield from keys(inner, f"{place}.{step}" if place else step)


def flow(value: object) -> str | None:
    """Return a value as YAML on one line, None for one that is too long."""
    try:
        text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True).strip()
    except yaml.YAMLError:
        return None
    text = re.sub(r"^\{(.*)\}$", r"\1", text)
    return text if len(text) <= LONGEST and not re.search(r"`|…|\.\.\.", text) and json.dumps(text)[1:-1].find("\\n") < 0 else None
