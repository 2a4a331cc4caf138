"""Paths in pipeline files: relative to the pipeline's folder, never out of it (QUALITY, Security; SPEC-DECISIONS, Paths)."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from operators.settings import PipelineSettings


def check_path(text: str, place: tuple[str | int, ...], report: Callable[..., Any], settings: PipelineSettings, *, pattern: bool = False) -> bool:
    """Report a path that may not stand in a pipeline file; `pattern`: a regular expression, of which only the plain faults show."""
    if not text or "\x00" in text:
        report("E230", "a path may not be empty", place)
    elif text.startswith("~"):
        report("E230", f"'{text}': ~ is not expanded", place, "write the path relative to the pipeline file")
    elif _absolute(text) and not settings.allow_absolute_paths:
        report("E231", f"'{text}' is an absolute path", place, "write it relative to the pipeline file, or run with --allow-absolute-paths")
    elif not pattern and ".." in PurePosixPath(text.replace("\\", "/")).parts:
        report("E232", f"'{text}' leads out of the pipeline's folder", place, "paths with a '..' step are refused")
    elif not pattern and not settings.allow_absolute_paths and leads_out(settings.folder, text):
        report("E232", f"'{text}' leads out of the pipeline's folder by a link", place, "write what the link leads to with --allow-absolute-paths")
    else:
        return True
    return False


def leads_out(folder: Path, text: str) -> bool:
    """Whether some step of a path below a folder is a link to somewhere else."""
    return not (folder / text).resolve().is_relative_to(folder.resolve())


def _absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("^/")
