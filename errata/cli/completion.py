"""Completion of a shell behind a pipeline: names of its nodes and sources, its epochs, codes of diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

MOST_EPOCHS = 100
"""How many epochs are offered, the last ones."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(found: Callable[[click.Context], Iterable[tuple[str, str]]]) -> Completer:
    """A completer of names and what is said about each; it offers nothing where they cannot be found."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(Exception):  # a shell that completes a word has no place for a message
            return [CompletionItem(name, help=about) for name, about in found(ctx) if name.startswith(incomplete)]
        return []

    return complete


def _pipeline(ctx: click.Context) -> Path:
    """The pipeline file. Behind an option without its value, click has not told arguments apart yet."""
    return Path(ctx.params.get("pipeline") or ctx.args[0])


def _nodes(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """The nodes of the pipeline file with their types, also of one with errors."""
    from errata.yaml import read_yaml  # the command line starts without it

    value: Any = read_yaml(_pipeline(ctx), env={}).value
    for node in value["nodes"]:
        if isinstance(node, dict) and isinstance(node.get("name"), str):
            yield node["name"], str(node.get("type", ""))


def _sources(ctx: click.Context) -> Iterator[tuple[str, str]]:
    return ((name, kind) for name, kind in _nodes(ctx) if kind == "source")


def _epochs(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """The last committed epochs with the times of their runs, the last one first."""
    from errata.api.pipeline import stored  # the command line starts without it

    snapshot = stored(_pipeline(ctx), ctx.params.get("state"))
    runs = [] if snapshot is None else list(snapshot.runs())[-MOST_EPOCHS:]
    return ((str(run["epoch"]), f"{run['started']:%Y-%m-%d %H:%M:%S}") for run in reversed(runs))


def _codes(ctx: click.Context) -> Iterator[tuple[str, str]]:
    from errata.core.codes import registered  # the command line starts without it

    return ((code, "") for code in registered())


node_names, source_names, epochs, codes = (_completer(found) for found in (_nodes, _sources, _epochs, _codes))
