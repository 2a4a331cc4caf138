"""Options that commands share. Each can be set by `ERRATA_<OPTION>` or `CLINKER_<OPTION>` too."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from errata.cli.console import LEVELS, Console
from errata.core.files import binary_size
from errata.core.options import EngineOptions
from errata.rendering.rows import FORMATS

Function = TypeVar("Function", bound=Callable[..., Any])


def option(*names: str, env: str | None = None, **settings: Any) -> Callable[[Function], Function]:
    """Return a click option with its environment variables.

    Args:
        env: The variables' name without prefix, where it is not the option's.
    """
    long = next(name for name in names if name.startswith("--"))
    word = env or long.removeprefix("--").replace("-", "_").upper()
    settings.setdefault("show_default", settings.get("default") not in (None, "") and not settings.get("is_flag"))
    return click.option(*names, envvar=[f"ERRATA_{word}", f"CLINKER_{word}"], **settings)


def together(*decorators: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return several options as one decorator. Help lists them in this order."""

    def apply(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


class Size(click.ParamType[int]):
    """A number of bytes: `512M`; K, M and G are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes."""
        size = binary_size(value)
        if size is None:
            self.fail(f"'{value}' is not a size such as 512M or 2G", param, ctx)
        return size


class Assignment(click.ParamType[tuple[str, str]]):
    """`NAME=VALUE`."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return name and value."""
        if isinstance(value, tuple):
            return value
        name, sign, text = str(value).partition("=")
        if not sign or not name:
            self.fail(f"'{value}' is not written NAME=VALUE", param, ctx)
        return name, text


def pairs(given: Sequence[tuple[str, str]], what: str) -> Mapping[str, str]:
    """Return assignments as a map. Raises click.UsageError for a name that comes twice."""
    result = dict(given)
    if len(result) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in names if names.count(name) > 1)
        raise click.UsageError(f"{what} {twice} is given twice")
    return result


def _set_on_console(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback of an option that only the console reads."""

    def take(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        console = ctx.find_object(Console)
        if console is not None:
            setattr(console, name, value)

    return take


common_options = together(
    option("--quiet", "-q", is_flag=True, help="No progress and no notes; warnings and errors are still printed."),
    option("--verbose", "-v", count=True, help="Print more; -vv still more."),
    option(
        "--color", type=click.Choice(["auto", "always", "never"]), default="auto", expose_value=False, callback=_set_on_console("color_choice"),
        help="Colours of ops, verdicts and messages: auto is on a terminal, unless NO_COLOR is set.",
    ),
    option("--no-color", is_flag=True, help="Plain text, as --color never and NO_COLOR."),
)  # fmt: skip
"""For every command; `console_of` turns them into a Console."""


def console_of(quiet: bool, verbose: int, no_color: bool, log_level: str = "info") -> Console:
    """Return the console for the common options."""
    most = LEVELS.index("warn") if quiet else len(LEVELS) - 1
    level = LEVELS[min(LEVELS.index(log_level) + verbose, most)]
    console = click.get_current_context().find_object(Console) or Console()
    console.level = level
    if no_color:
        console.color_choice = "never"
    return console


wide_option = option(
    "--wide", is_flag=True, expose_value=False, callback=_set_on_console("wide"), help="Show all columns whole, also where they do not fit the terminal."
)

format_option = together(option("--format", type=click.Choice(FORMATS), default="text", help="How rows are printed."), wide_option)

state_option = option("--state", metavar="DIR", help="Where the state lives: a folder, or a URI such as s3://bucket/path.")

pipeline_argument = click.argument("pipeline", type=click.Path(path_type=Path))

pipeline_options = together(
    pipeline_argument,
    option("--channel", metavar="FILE", type=click.Path(path_type=Path), help="Channel to overlay: a file, or a name."),
    option(
        "--var", "variables", metavar="SCOPE.NAME=VALUE", multiple=True, type=Assignment(), env="VAR", help="Override a declared variable."
    ),
    option("--base-dir", metavar="DIR", type=click.Path(path_type=Path), help="Folder for relative paths [default: the pipeline's]."),
    option("--rules-path", metavar="DIR", type=click.Path(path_type=Path), help="Folder of CXL modules [default: rules]."),
    option("--allow-absolute-paths", is_flag=True, help="Permit absolute paths in the pipeline."),
    option("--env", "environment", metavar="NAME", env="ENV", help="Active environment."),
    state_option,
)
"""For commands of a pipeline. `load_pipeline` reads them."""

PIPELINE_WORDS = ("pipeline", "channel", "variables", "base_dir", "rules_path", "allow_absolute_paths", "environment", "state")

engine_option = option(
    "--engine", type=click.Choice(["auto", "spark", "sail"]), default="auto", help="auto: spark for a cluster and for work that exceeds memory, else sail."
)

engine_options = together(
    engine_option,
    option("--master", metavar="URL", help="Spark master."),
    option("--remote", metavar="URL", help="Spark Connect server, sc://host:port."),
    option("--memory-limit", metavar="SIZE", type=Size(), help="Memory for the engine, such as 512M or 2G; overrides the pipeline."),
    option("--threads", metavar="N", type=click.IntRange(min=1), help="Cores for the engine [default: all]."),
    option("--engine-wait", metavar="SECONDS", type=click.IntRange(min=1), default=120, help="How long to wait for executors of a cluster, or for a server's answer."),
)
"""For commands that may start an engine. `engine_of` reads them."""

ENGINE_WORDS = ("engine", "master", "remote", "memory_limit", "threads", "engine_wait")


def engine_of(words: dict[str, Any]) -> EngineOptions:
    """Remove the engine options from a command's words and return them."""
    chosen = {name: words.pop(name) for name in ENGINE_WORDS}
    if chosen["remote"] and chosen["engine"] == "sail":
        raise click.UsageError("--remote names a Spark server; it does not go with --engine sail")
    if chosen["remote"] and chosen["master"]:
        raise click.UsageError("--remote and --master exclude each other")
    return EngineOptions(**chosen)
