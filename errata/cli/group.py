"""The `errata` command. Its subcommands are the modules of `errata.cli.commands` and `errata.cli.tools`, each imported when it is called."""

import importlib
import pkgutil
from typing import Any

import click

from errata.core.diagnostics import did_you_mean

PACKAGES = ("errata.cli.commands", "errata.cli.tools")
"""Where commands are found: those over a pipeline's state, and those for people who write pipelines."""


class Commands(click.Group):
    """A group whose command NAME is `NAME.command` in one of `PACKAGES`."""

    @staticmethod
    def places() -> dict[str, str]:
        """Return the module of each command by its name."""
        packages = [importlib.import_module(name) for name in PACKAGES]
        return {module.name: f"{package.__name__}.{module.name}" for package in packages for module in pkgutil.iter_modules(package.__path__)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all commands in alphabetical order."""
        return sorted(self.places())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, None where there is none."""
        place = self.places().get(cmd_name)
        if place is None:
            return None
        command: click.Command = importlib.import_module(place).command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, and suggest the nearest command for a misspelt one."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command '{args[0]}'{f'; {hint}' if hint else ''}", ctx)
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"errata {version('errata')}")
        except PackageNotFoundError:
            click.echo("errata (not installed)")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}, no_args_is_help=True)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version and exit.")
def errata() -> None:
    """A changelog engine for data that gets corrected.

    `errata init` makes a small project to start from; `errata run pipeline.yaml` runs it, the first time everything,
    afterwards only what changed.
    """
