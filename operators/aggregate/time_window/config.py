"""Configuration of a time window: `tumbling`, `hopping` or `session`, and the allowed lateness."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from operators.core.config import Strict, microseconds

FOREVER = "forever"


def _positive(text: str) -> str:
    if microseconds(text) == 0:
        raise ValueError(f"'{text}' is no time at all; a window needs more")
    return text


def _lateness(text: str) -> str:
    if text != FOREVER:
        microseconds(text)
    return text


Duration = Annotated[str, AfterValidator(_positive)]
Lateness = Annotated[str, AfterValidator(_lateness)]


class Tumbling(Strict):
    """Windows of one size, side by side, aligned to 1970."""

    size: Duration = Field(description="The length of each window, such as 1h; windows are aligned to 1970.")


class Hopping(Strict):
    """Windows of one size that begin every `slide`."""

    size: Duration = Field(description="The length of each window, such as 1h.")
    slide: Duration = Field(description="The time from one window's start to the next.")


class Session(Strict):
    """Windows that end where nothing comes for longer than the gap."""

    gap: Duration = Field(description="The longest time between two records of one session.")


class TimeWindow(Strict):
    """One of the three."""

    tumbling: Tumbling | None = Field(default=None, description="Windows of one size, side by side: a record is in one.")
    hopping: Hopping | None = Field(default=None, description="Windows of one size that overlap: a record is in each that holds its time.")
    session: Session | None = Field(default=None, description="Windows that end where nothing comes for longer than the gap.")

    @model_validator(mode="after")
    def _one(self) -> "TimeWindow":
        given = [name for name in ("tumbling", "hopping", "session") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a time window is one of tumbling, hopping, session; here {' and '.join(given) or 'none'} is given")
        return self

    @property
    def size(self) -> int:
        """Microseconds of a window that does not grow; of a session its gap."""
        return microseconds(self.session.gap if self.session else (self.tumbling or self.hopping).size)  # type: ignore[union-attr]  # one of them is given

    @property
    def slide(self) -> int:
        """Microseconds from one window's start to the next."""
        return microseconds(self.hopping.slide) if self.hopping else self.size
