"""The configuration of a corrections node."""

from __future__ import annotations

from pydantic import Field

from operators.core.config import Strict


class CorrectionsConfig(Strict):
    """The files with the corrections, and the columns that name a record in them."""

    path: str = Field(min_length=1, description="The file of the corrections, or a pattern such as corrections/*.yaml; YAML, CSV or a workbook (E480).")
    key: list[str] = Field(min_length=1, description="The columns whose values name a record in the files (E481).")
