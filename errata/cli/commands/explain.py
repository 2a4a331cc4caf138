"""`errata explain`: the plan of a pipeline, the origin of a parameter's value, or the page of a diagnostic code."""

from typing import Any

import click

from errata.cli.completion import codes
from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, option, pipeline_options
from errata.core.codes import page, registered
from errata.core.diagnostics import did_you_mean
from errata.core.failures import Usage


@click.command("explain", cls=Command)
@pipeline_options
@option(
    "--format", "form", type=click.Choice(["text", "json", "dot"]), default="text", env="EXPLAIN_FORMAT", help="How the plan is printed."
)
@option("--field", metavar="NODE.PARAM", help="Where the value of a composition's parameter comes from.")
@option("--code", metavar="CODE", shell_complete=codes, help="The page of a diagnostic's code; needs no pipeline.")
@common_options
def command(quiet: bool, verbose: int, no_color: bool, form: str, field: str | None, code: str | None, **words: Any) -> int:
    r"""Show the plan of a pipeline, or explain a code.

    \b
    The plan as a picture, by Graphviz:
      errata explain pipeline.yaml --format dot | dot -Tsvg -o plan.svg
    The page of a code:
      errata explain --code E210
    """
    console = console_of(quiet, verbose, no_color)
    if code:
        console.answer([_page(code)])
        return 0
    if words["pipeline"] is None:
        raise click.UsageError("name a pipeline, or a code with --code", click.get_current_context())
    pipeline = load_pipeline(console, words)
    if field:
        node, dot, parameter = field.partition(".")
        if not dot or not parameter:
            raise click.UsageError(f"'{field}' is not written NODE.PARAM", click.get_current_context())
        console.explain(pipeline.explain_field(node, parameter))
        return 0
    console.explain(pipeline.explain(form))
    return 0


command.params[0].required = False


def _page(code: str) -> str:
    """The page of a code. Raises Usage with all codes for one that is not registered."""
    text = page(code)
    if text is None:
        known = registered()
        near = did_you_mean(code, known)
        raise Usage(f"there is no code '{code}'", help=f"{near} " * bool(near) + f"known: {', '.join(known)}")
    return text
