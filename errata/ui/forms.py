"""The forms that browsers send: bounded, and checked to come from a page of this server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from errata.core.failures import Usage

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_BYTES = 1_000_000
MOST_FIELDS = 5_000


async def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a form. Raises Usage for one that is too long or no form."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Usage("this is no form of a page")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise Usage("the form is too long")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Usage("the form cannot be read") from None


def below(form: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the fields whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): text for name, text in form.items() if name.startswith(prefix)}
