"""The `cxl` command: eval, check, fmt, fn.

Exit codes: 0 success or warnings only, 1 the program or a record has an error, 2 input cannot be read or the call is wrong,
70 the engine failed on a program.
"""

import sys
from collections.abc import Sequence

import click

from cxl.commands import check, evaluate, fmt, functions

OK, FAILED, BAD_INPUT = 0, 1, 2


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, help="CXL, the expression language of Errata.")
@click.version_option(package_name="errata", prog_name="cxl", message="%(prog)s %(version)s")
def cli() -> None:
    """The group of commands."""


for _command in (evaluate.command, check.command, fmt.command, functions.command):
    cli.add_command(_command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code. It never exits."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        outcome = cli.main(arguments, prog_name="cxl", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show(sys.stderr)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return 130
    return outcome if isinstance(outcome, int) else OK


def run() -> None:
    """The entry point of the installed command."""
    sys.exit(main())


if __name__ == "__main__":
    run()
