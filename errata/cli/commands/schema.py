"""`errata schema`: the JSON Schema of pipeline files, for editors."""

import click

from errata.cli.parameters import common_options, console_of


@click.command("schema")
@common_options
def command(quiet: bool, verbose: int, no_color: bool) -> int:
    """Print the JSON Schema of pipeline files."""
    import json

    from errata.project.json_schema import pipeline_schema

    console_of(quiet, verbose, no_color).answer([json.dumps(pipeline_schema(), indent=2, ensure_ascii=False), "\n"])
    return 0
