"""`errata notebook`: a marimo notebook over a pipeline."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, option, pairs, pipeline_options
from errata.core.failures import StorageFailed
from errata.core.files import replace_file
from errata.rendering.notebook import below_here, notebook
from storage.uris import is_local


@click.command("notebook", cls=Command)
@pipeline_options
@option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="The notebook [default: NAME.notebook.py beside the pipeline].")
@option("--force", is_flag=True, help="Replace a file that exists.")
@common_options
def command(quiet: bool, verbose: int, no_color: bool, output: Path | None, force: bool, **words: Any) -> int:
    r"""Write a marimo notebook over the Python interface: plan, run, rows, changes, expectations, dead letters.

    \b
    A notebook beside the pipeline, and how to open it:
      errata notebook pipeline.yaml
      marimo edit pipeline.notebook.py
    Of another state, elsewhere:
      errata notebook pipeline.yaml --state /data/state -o notes/orders.py

    marimo is needed to open it: pip install 'errata[notebook]'.
    """
    console = console_of(quiet, verbose, no_color)
    given = dict(words)
    pipeline = load_pipeline(console, words)
    source = Path(given["pipeline"])
    target = output or source.with_name(f"{source.stem}.notebook.py")
    if target.exists() and not force:
        raise StorageFailed(f"{target} exists", help="--force replaces it, -o FILE writes another one")
    arguments = dict(_arguments(given, target.resolve().parent))
    replace_file(target, notebook(target.name, pipeline.loaded.name, arguments))
    console.note(f"Wrote {target}; open it with: marimo edit {target}")
    return 0


def _arguments(words: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """The arguments of `errata.load` as expressions; paths are relative to the notebook's folder."""

    def beside(path: Any) -> str:
        return below_here(os.path.relpath(Path(path).resolve(), folder))

    yield "path", beside(words["pipeline"])
    if words.get("channel"):
        channel = words["channel"]
        yield "channel", beside(channel) if Path(channel).exists() else repr(str(channel))
    if variables := pairs(words["variables"], "variable"):
        yield "variables", repr(variables)
    yield from ((name, beside(words[name])) for name in ("base_dir", "rules_path") if words.get(name))
    if words.get("environment"):
        yield "environment", repr(words["environment"])
    if words.get("allow_absolute_paths"):
        yield "allow_absolute_paths", "True"
    if state := words.get("state"):
        yield "state", f"str({beside(state)})" if is_local(state) else repr(state)
