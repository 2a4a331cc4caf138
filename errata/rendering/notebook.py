"""A marimo notebook over a pipeline: text of a Python file that uses the Python interface alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

HERE = "HERE"
"""The folder of the notebook, in its text."""

_TEXT = """\
# A notebook over a pipeline of Errata. Open it with: marimo edit {name}

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title={title})


@app.cell
def _():
    from pathlib import Path

    import errata
    import marimo as mo

    HERE = Path(__file__).resolve().parent
    return HERE, errata, mo


@app.cell
def _(HERE, errata):
    pipeline = errata.load({arguments})
    pipeline.plan
    return (pipeline,)


@app.cell
def _(mo):
    start = mo.ui.run_button(label="Run the pipeline")
    start
    return (start,)


@app.cell
def _(pipeline, start):
    # A run changes state and outputs, so it waits for the button.
    result = pipeline.run(engine="sail") if start.value else None
    result
    return (result,)


@app.cell
def _(mo, pipeline, result):
    # The cells below follow each run, as they read `result`.
    head = pipeline.head_epoch() if result is None else result.epoch
    node = mo.ui.dropdown(list(pipeline.node_names), value=pipeline.node_names[-1], label="Node")
    epoch = mo.ui.number(start=0, stop=head or 0, value=head or 0, label="Epoch")
    mo.hstack([node, epoch], justify="start")
    return epoch, head, node


@app.cell
def _(epoch, head, mo, node, pipeline):
    # Live rows: .to_pandas(), .to_polars(), .to_arrow() and .to_spark() take them elsewhere.
    rows = pipeline.rows(node.value, at=epoch.value) if head and epoch.value else None
    rows if rows is not None else mo.md("No run yet: press the button above.")
    return (rows,)


@app.cell
def _(epoch, head, node, pipeline):
    # What the epoch took back and added.
    changes = pipeline.changes(node.value, epoch.value) if head and epoch.value else None
    changes
    return (changes,)


@app.cell
def _(head, mo, pipeline):
    expectations = list(pipeline.expectations()) if head else []
    mo.ui.table(expectations, selection=None) if expectations else mo.md("No expectations, or no run yet.")
    return (expectations,)


@app.cell
def _(head, mo, pipeline):
    dead = list(pipeline.dlq_list()) if head else []
    mo.ui.table(dead, selection=None) if dead else mo.md("No dead letters.")
    return (dead,)


if __name__ == "__main__":
    app.run()
"""


def notebook(name: str, title: str, arguments: Mapping[str, str]) -> str:
    """Return the text of a notebook.

    Args:
        name: The name of its file.
        title: The name of the pipeline.
        arguments: The arguments of `errata.load` as Python expressions, by name; `path` comes first.
    """
    given = ", ".join(text if argument == "path" else f"{argument}={text}" for argument, text in arguments.items())
    parts = {"name": repr(name), "title": repr(title), "arguments": given}
    return re.sub(r"\{(name|title|arguments)\}", lambda found: parts[found[1]], _TEXT)


def below_here(relative: str) -> str:
    """Return the expression of a path beside the notebook."""
    return f"{HERE} / {relative!r}"
