"""`errata schema`: the JSON Schema of pipeline files, for editors; that of events, for programs that read them."""

import click

from errata.cli.help import Command
from errata.cli.parameters import common_options, console_of


@click.command("schema", cls=Command)
@click.option("--events", is_flag=True, help="Print the schema of the events that run --events writes.")
@common_options
def command(quiet: bool, verbose: int, no_color: bool, events: bool) -> int:
    r"""Print the JSON Schema of pipeline files.

    \b
    For an editor:
      errata schema > errata.schema.json
    For a program that reads events:
      errata schema --events
    """
    import json

    from errata.project.json_schema import pipeline_schema
    from errata.rendering.event_schema import event_schema

    schema = event_schema() if events else pipeline_schema()
    console_of(quiet, verbose, no_color).answer([json.dumps(schema, indent=2, ensure_ascii=False), "\n"])
    return 0
