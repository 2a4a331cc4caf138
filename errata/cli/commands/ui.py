"""`errata ui`: pages about a pipeline and its state in a browser of this machine."""

from typing import TYPE_CHECKING, Any

import click

from errata.cli.help import Command
from errata.cli.loading import load_pipeline
from errata.cli.parameters import common_options, console_of, engine_of, engine_options, option, pipeline_options

if TYPE_CHECKING:
    from errata.api.pipeline import Pipeline


@click.command("ui", cls=Command)
@pipeline_options
@option("--port", metavar="N", type=click.IntRange(0, 65_535), default=0, help="Port on this machine; 0: a free one.")
@option("--write", is_flag=True, help="Also take corrections and retries.")
@engine_options
@common_options
def command(quiet: bool, verbose: int, no_color: bool, port: int, write: bool, **words: Any) -> int:
    r"""Show a pipeline and its state in a browser.

    The pages are for this machine alone; the address that is printed holds a token. Ctrl-C ends the server.

    \b
    Look at nodes, corrections, epochs and rejected records:
      errata ui pipeline.yaml
    Correct records and try groups again, at an address that stays:
      errata ui pipeline.yaml --write --port 8765
    """
    from errata.ui.start import start  # the command line starts without what serves pages

    console = console_of(quiet, verbose, no_color)
    engine = engine_of(words)

    def load() -> "Pipeline":
        return load_pipeline(console, dict(words))

    def announce(address: str) -> None:
        console.note("Corrections and retries are taken." if write else "Read only; --write takes corrections and retries.")
        console.answer([f"{address}\n"])

    start(load, words["pipeline"], state=words["state"], port=port, writes=write, engine=engine, announce=announce)
    console.note("The server has ended.")
    return 0
