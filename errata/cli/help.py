"""Commands with help in which the options of the command come first, and shared options in groups behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import click


class OptionGroup(NamedTuple):
    """Options that many commands share: the heading in help, their name in a sentence, the names of the options."""

    title: str
    label: str
    names: Sequence[str]


GROUPS = (
    OptionGroup("Options of pipelines", "of pipelines", ("channel", "variables", "base_dir", "rules_path", "allow_absolute_paths", "environment", "state")),
    OptionGroup("Options of engines", "of engines", ("engine", "master", "remote", "memory_limit", "threads", "engine_wait")),
    OptionGroup("Options of all commands", "of all commands", ("quiet", "verbose", "color", "no_color")),
)


class Command(click.Command):
    r"""A command with grouped options in its help. A line with `\b` alone keeps the lines of the paragraph behind it."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.help = None if self.help is None else self.help.replace("\\b\n", "\b\n")

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return both names, whatever the context: click keeps the option that it makes first."""
        return ["-h", "--help"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command, then the groups of shared ones."""
        records = [(_group_of(param), record) for param in self.get_params(ctx) if isinstance(param, click.Option) and (record := param.get_help_record(ctx))]
        for title in ("Options", *(group.title for group in GROUPS)):
            rows = [record for group, record in records if group == title]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _group_of(param: click.Option) -> str:
    """The heading of an option."""
    if "--help" in param.opts:
        return GROUPS[-1].title
    return next((group.title for group in GROUPS if param.name in group.names), "Options")
