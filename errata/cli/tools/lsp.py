"""`errata lsp`: the language server for editors."""

import sys
from typing import TYPE_CHECKING

import click

from errata.cli.help import Command
from errata.cli.parameters import common_options
from errata.core.failures import Exit, LibraryMissing

if TYPE_CHECKING:
    from errata.editor import server
else:
    from changelog.lazy_imports import Lazy

    server = Lazy("errata.editor.server")

NEEDED = ("pygls", "lsprotocol")
"""The libraries of the extra."""


@click.command("lsp", cls=Command)
@click.option("--log", type=click.Path(dir_okay=False, writable=True), help="A file for what the server notes of itself.")
@click.option("--stdio", is_flag=True, help="Standard input and output, as always; some editors ask for it.")
@common_options
def command(quiet: bool, verbose: int, no_color: bool, log: str | None, stdio: bool) -> int:
    r"""Serve an editor over standard input and output, by the Language Server Protocol.

    An editor starts it; docs/how-to/editors.md shows how. It checks pipelines, compositions, channels and CXL while they are written, starts no engine and writes no
    file but --log.

    \b
    Examples:
      errata lsp
      errata lsp --log /tmp/errata-lsp.log -v
    """
    import logging
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise LibraryMissing.of_extra("errata lsp", missing[0], "lsp")
    handler = logging.FileHandler(log, encoding="utf-8") if log else logging.StreamHandler(sys.stderr)
    logging.basicConfig(handlers=[handler], level=logging.DEBUG if verbose else logging.WARNING, force=True)
    try:
        known = version("errata")
    except PackageNotFoundError:
        known = "0"
    server.make_server(known).start_io()
    return Exit.CLEAN
