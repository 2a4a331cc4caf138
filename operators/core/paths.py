"""Paths in pipeline files: relative to the pipeline's folder, never out of it (QUALITY, Security; SPEC-DECISIONS, Paths)."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from operators.core.settings import PipelineSettings


def check_path(text: str, place: tuple[str | int, ...], report: Callable[..., Any], settings: PipelineSettings, *, pattern: bool = False) -> bool:
    """Report a path that may not stand in a pipeline file; `pattern`: a regular expression, of which only the plain faults show."""
    fault = _plain_fault(text, settings) or (None if pattern else _way_out(text, settings))
    if fault is not None:
        code, message, help_text = fault
        report(code, message, place, help_text)
    return fault is None


def _plain_fault(text: str, settings: PipelineSettings) -> tuple[str, str, str | None] | None:
    if not text or "\x00" in text:
        return "E230", "a path may not be empty", None
    if text.startswith("~"):
        return "E230", f"'{text}': ~ is not expanded", "write the path relative to the pipeline file"
    if _absolute(text) and not settings.allow_absolute_paths:
        return "E231", f"'{text}' is an absolute path", "write it relative to the pipeline file, or run with --allow-absolute-paths"
    return None


def _way_out(text: str, settings: PipelineSettings) -> tuple[str, str, str | None] | None:
    if ".." in PurePosixPath(text.replace("\\", "/")).parts:
        return "E232", f"'{text}' leads out of the pipeline's folder", "paths with a '..' step are refused"
    if not settings.allow_absolute_paths and leads_out(settings.folder, text):
        return "E232", f"'{text}' leads out of the pipeline's folder by a link", "write what the link leads to with --allow-absolute-paths"
    return None


def leads_out(folder: Path, text: str) -> bool:
    """Whether some step of a path below a folder is a link to somewhere else."""
    return not (folder / text).resolve().is_relative_to(folder.resolve())


def _absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("^/")
