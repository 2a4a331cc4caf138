"""The `transport:` block of a source that reads a REST service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Pagination(_Strict):
    """How the next page is found, and which one is the last."""

    strategy: Literal["none", "offset", "cursor_token", "link_header"] = Field(default="none", description="How the next page is found.")
    limit: int | None = Field(default=None, ge=1, description="The records of a page; offset needs it.", examples=[100])
    offset_param: str = Field(default="offset", description="The query parameter of the first record's number.", examples=["skip"])
    limit_param: str = Field(default="limit", description="The query parameter of the page's size.", examples=["size"])
    cursor_param: str | None = Field(default=None, description="The query parameter of the token; cursor_token needs it.", examples=["after"])
    next_token_pointer: str | None = Field(default=None, description="The JSON pointer to the next token, such as /next; cursor_token needs it.", examples=["/next"])

    def misfits(self) -> Iterator[str]:
        """Messages on keys that do not go together."""
        for key, strategy in _KEYS.items():
            if key in self.model_fields_set and strategy != self.strategy:
                yield f"'{key}' belongs to strategy '{strategy}', not '{self.strategy}'"
        if self.strategy == "offset" and self.limit is None:
            yield "strategy 'offset' needs limit, the records of a page"
        if self.strategy == "cursor_token" and not (self.cursor_param and self.next_token_pointer):
            yield "strategy 'cursor_token' needs cursor_param and next_token_pointer"
        if self.next_token_pointer is not None and not self.next_token_pointer.startswith("/"):
            yield f"next_token_pointer '{self.next_token_pointer}' does not begin with '/'"


_KEYS = {
    "limit": "offset", "offset_param": "offset", "limit_param": "offset", "cursor_param": "cursor_token", "next_token_pointer": "cursor_token",
}  # fmt: skip


class Auth(_Strict):
    """The credential of every request."""

    scheme: Literal["none", "bearer", "header"] = Field(default="none", description="How requests prove who asks.")
    token: SecretStr | None = Field(default=None, description="The bearer token; write ${secret:NAME}.", examples=["${secret:SHOP_TOKEN}"])
    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", description="The name of the header, under scheme header.", examples=["X-Api-Key"])
    value: SecretStr | None = Field(default=None, description="The value of the header; write ${secret:NAME}.", examples=["${secret:SHOP_KEY}"])

    def misfits(self) -> Iterator[str]:
        """Messages on keys that do not go together."""
        needed = {"none": set(), "bearer": {"token"}, "header": {"name", "value"}}[self.scheme]
        given = {key for key in ("token", "name", "value") if getattr(self, key) is not None}
        if needed - given:
            yield f"scheme '{self.scheme}' needs {' and '.join(sorted(needed))}"
        if given - needed:
            yield f"scheme '{self.scheme}' takes no {min(given - needed)}"

    def headers(self) -> dict[str, str]:
        """The headers of a request to the declared origin."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token.get_secret_value()}"}
        return {self.name: self.value.get_secret_value()} if self.name and self.value else {}


class Rest(_Strict):
    """A REST service that is read by paginated GETs.

    Args:
        kind: always `rest`
        url: the URL of the first page
        max_pages: the largest number of pages of a pull
        max_records: the largest number of records of a pull
        pagination: how the next page is found
        auth: the credential
        retries: further attempts after a transient failure
        timeout_secs: seconds for one request
        allow_http: whether the URL may be without encryption
        allow_private: whether the host may have an address that is not public
        max_bytes: the largest number of bytes of a pull
        max_seconds: the largest number of seconds of a pull
    """

    kind: Literal["rest"] = Field(description="Says that the source reads a REST service.")
    url: str = Field(description="The URL of the first page, without credentials.", examples=["https://api.example/orders"])
    max_pages: int = Field(ge=1, description="The most pages of one pull; more are not read, with a warning.", examples=[100])
    max_records: int | None = Field(default=None, ge=1, description="The most records of one pull; more are not read, with a warning.", examples=[10_000])
    pagination: Pagination = Field(default_factory=lambda: Pagination.model_validate({}), description="How the next page is found; by default there is one page.", examples=[{"strategy": "offset", "limit": 100}])
    auth: Auth = Field(default_factory=lambda: Auth.model_validate({}), description="The credential that every request carries; by default none.", examples=[{"scheme": "bearer", "token": "${secret:SHOP_TOKEN}"}])
    retries: int = Field(default=3, ge=0, le=20, description="How many more attempts follow a 5xx answer or a failed connection.", examples=[5])
    timeout_secs: float = Field(default=30, gt=0, description="Seconds for one exchange, from the connection to the last byte.", examples=[10])
    allow_http: bool = Field(default=False, description="Whether the URL may be without TLS.")
    allow_private: bool = Field(default=False, description="Whether the host may have an address that is not public.")
    max_bytes: int = Field(default=1 << 28, ge=1, description="The most bytes of all pages of a pull, decompressed.", examples=[100_000_000])
    max_seconds: float = Field(default=3600, gt=0, description="Seconds for the whole pull, with attempts and pauses.", examples=[600])

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an http or https URL with a host is needed")
        if parts.username is not None or parts.password is not None:
            raise ValueError("credentials belong to auth, not into the URL")
        return value

    def misfits(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Messages on keys that do not go together, each with the path of its block."""
        if self.url.startswith("http:") and not self.allow_http:
            yield (), "an http URL is not encrypted: use https, or say allow_http: true"
        yield from ((("pagination",), message) for message in self.pagination.misfits())
        yield from ((("auth",), message) for message in self.auth.misfits())
