"""`cxl fmt`: programs in one style, comments kept."""

from pathlib import Path

import click

from cxl.commands.terminal import common_options, read_text, show
from cxl.diagnostics.diagnostics import CxlErrors
from cxl.syntax.format import format_text


@click.command(name="fmt")
@click.argument("files", nargs=-1, required=True)
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit 1 where a file is not formatted.")
@click.option("--write", is_flag=True, help="Write the files in place instead of printing them.")
@common_options
def command(files: tuple[str, ...], only_check: bool, write: bool) -> int:
    """Print programs in canonical format; - is standard input."""
    results = [_format(file, only_check, write) for file in files]
    return max(results)


def _format(file: str, only_check: bool, write: bool) -> int:
    text = read_text(file)
    try:
        formatted = format_text(text, file)
    except CxlErrors as errors:
        show(errors.diagnostics)
        return 1
    if only_check:
        if formatted != text:
            click.echo(f"{file} is not formatted", err=True)
        return int(formatted != text)
    if write and file != "-":
        return _write(Path(file), text, formatted)
    click.echo(formatted, nl=False)
    return 0


def _write(file: Path, text: str, formatted: str) -> int:
    if formatted != text:
        file.write_bytes(formatted.encode("utf-8"))
    return 0
